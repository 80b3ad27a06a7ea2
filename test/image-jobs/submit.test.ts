import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { headerOf } from "../support/gateway.ts"
import { imageScene, job, jobVendorNames, jobVendors, otherVendor, picturesOf } from "../support/image-scene.ts"
import { expectError } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => simulator.stop())

/** Every vendor, with each row of a table. */
function across<T extends readonly unknown[]>(rows: readonly T[]) {
  return jobVendorNames.flatMap((name) => rows.map((row) => [name, ...row] as const))
}

describe("a submit that fails goes where the failure table says", () => {
  const rows: readonly (readonly [string, Behaviour, attempts: number])[] = [
    ["401", { kind: "status", status: 401 }, 1],
    ["402", { kind: "status", status: 402 }, 1],
    ["403", { kind: "status", status: 403 }, 1],
    ["404", { kind: "status", status: 404 }, 1],
    ["429", { kind: "status", status: 429 }, 1],
    ["429 for long", { kind: "status", status: 429, headers: { "retry-after": "60" } }, 1],
    ["500", { kind: "status", status: 500 }, 2],
    ["503", { kind: "status", status: 503 }, 2],
    ["529", { kind: "status", status: 529 }, 2],
    ["a reset", { kind: "reset" }, 2],
    ["something that is no HTTP", { kind: "garbage" }, 2],
    ["a web page", { kind: "html", status: 200 }, 2],
    ["an empty object", { kind: "status", status: 200, json: {} }, 2],
    ["a redirect", { kind: "status", status: 307, headers: { location: "/elsewhere" } }, 1],
  ]
  test.concurrent.each(across(rows))(
    "%s: after %s the next vendor makes the image",
    async (name, _, step, attempts) => {
      const other = otherVendor(name)
      await using stage = await imageScene(simulator, [name, other])
      stage.vendor(name).behave(step)
      stage.vendor(other).behave(job())
      const answer = await stage.ask()
      expect(picturesOf(answer)).toHaveLength(1)
      expect(stage.vendor(name).calls).toHaveLength(attempts)
      expect(stage.submits(other)).toHaveLength(1)
      expect(answer.story.attempts.at(-1)).toMatchObject({ upstream: other, why: "next", outcome: "answered" })
      const [header, value] = jobVendors[other].auth(`credential-of-${other}`)
      expect(headerOf(stage.submits(other)[0]!, header)).toBe(value)
      expect(JSON.stringify(stage.vendor(other).calls[0]!.headers)).not.toContain(`credential-of-${name}`)
    },
  )

  test.concurrent.each(jobVendorNames)("%s: 429 with a short retry-after is waited for", async (name) => {
    await using stage = await imageScene(simulator, [name, otherVendor(name)])
    stage.vendor(name).behave({ kind: "status", status: 429, headers: { "retry-after": "1" } }, job())
    const answer = await stage.ask()
    expect(picturesOf(answer)).toHaveLength(1)
    expect(answer.attempts).toEqual([`${name}:first:status`, `${name}:waited:answered`])
    expect(answer.pauseAfter(0)).toBeGreaterThanOrEqual(998)
  })

  test.concurrent.each(jobVendorNames)(
    "%s: a vendor of plain calls can take over, and the other way round",
    async (name) => {
      await using there = await imageScene(simulator, [name, "plain"])
      there.vendor(name).behave({ kind: "status", status: 429 })
      there.vendor("plain").behave({ kind: "images", format: "url" })
      const passed = await there.ask({ size: "1280x1280", quality: "low" })
      expect(passed.attempts).toEqual([`${name}:first:status`, "plain:next:answered"])
      expect(JSON.parse(Buffer.from(there.vendor("plain").calls[0]!.body).toString())).toEqual({
        model: "gpt-image-1",
        prompt: "a fox in the snow",
        size: "1280x1280",
        quality: "low",
      })
      await using back = await imageScene(simulator, ["plain", name])
      back.vendor("plain").behave({ kind: "status", status: 402 })
      back.vendor(name).behave(job())
      const made = await back.ask()
      expect(picturesOf(made)).toHaveLength(1)
      expect(made.attempts).toEqual(["plain:first:status", `${name}:next:answered`])
    },
  )

  const passedAtOnce = [400, 409, 413, 422, 451]
  test.concurrent.each(across(passedAtOnce.map((status) => [status] as const)))(
    "%s: %d is the caller's: passed at once, unchanged but for our credential",
    async (name, status) => {
      const other = otherVendor(name)
      await using stage = await imageScene(simulator, [name, other])
      const body = `{"detail" : "no: credential-of-${name}", "code":"x"}`
      const headers = { "retry-after": "7", "x-request-id": `seen-credential-of-${name}`, "set-cookie": "a=b" }
      stage.vendor(name).behave({ kind: "status", status, body, headers })
      const answer = await stage.ask()
      expect({ status: answer.status, text: answer.text }).toEqual({
        status,
        text: `{"detail" : "no: ***", "code":"x"}`,
      })
      expect(answer.headers.get("content-type")).toBe("application/json")
      expect(answer.headers.get("retry-after")).toBe("7")
      expect(answer.headers.get("x-upstream-request-id")).toBe("seen-***")
      expect(answer.headers.get("set-cookie")).toBeNull()
      expect([stage.vendor(name).calls.length, stage.vendor(other).calls.length]).toEqual([1, 0])
      expect(answer.story).toMatchObject({ ending: "refused", status })
    },
  )

  test.concurrent.each(jobVendorNames)("%s: the last vendor's 4xx is passed in its own words", async (name) => {
    const other = otherVendor(name)
    await using stage = await imageScene(simulator, [other, name])
    stage.vendor(other).behave({ kind: "status", status: 401 })
    stage.vendor(name).behave({ kind: "status", status: 429, json: { detail: "later" } })
    const answer = await stage.ask()
    expect({ status: answer.status, text: answer.text }).toEqual({ status: 429, text: '{"detail":"later"}' })
  })

  test.concurrent.each(jobVendorNames)("%s alone: what is left is our own error", async (name) => {
    const rest: readonly (readonly [Behaviour, string])[] = [
      [{ kind: "status", status: 500 }, "upstream_error"],
      [{ kind: "reset" }, "upstream_unreachable"],
      [{ kind: "html", status: 200 }, "upstream_invalid_response"],
      [{ kind: "status", status: 302, headers: { location: "http://127.0.0.1:1/" } }, "upstream_invalid_response"],
    ]
    for (const [step, code] of rest) {
      await using stage = await imageScene(simulator, [name])
      stage.vendor(name).behave(step)
      expectError(await stage.ask(), 502, "api_error", code)
      expect(stage.vendor(name).calls).toHaveLength(code.endsWith("response") && step.kind === "status" ? 1 : 2)
    }
  })

  test.concurrent("a second key of the pool is used after the first was refused", async () => {
    const apiKeys = ["first-key-0123456789", "second-key-0123456789"]
    await using stage = await imageScene(simulator, ["fal"], { upstream: { apiKeys } })
    stage.vendor("fal").behave(job())
    stage.vendor("fal").expectKey("second-key-0123456789")
    expect((await stage.ask()).status).toBe(401)
    expect(picturesOf(await stage.ask())).toHaveLength(1)
    expect(picturesOf(await stage.ask())).toHaveLength(1)
    const keys = stage.vendor("fal").calls.map((call) => headerOf(call, "authorization"))
    expect(keys.filter((key) => key === `Key ${apiKeys[0]}`)).toHaveLength(1)
  })
})

describe("what cannot be asked is refused before anything is sent", () => {
  const whole = "must be a whole number from 1 to 10"
  const side = 'must be "<width>x<height>", each side from 1 to 16384, or "auto"'
  const streams = "this model makes its images as jobs and does not stream; leave it out"
  const rows: readonly (readonly [Readonly<Record<string, unknown>>, string])[] = [
    [{ n: 0 }, `n: ${whole}`],
    [{ n: -1 }, `n: ${whole}`],
    [{ n: 11 }, `n: ${whole}`],
    [{ n: 1e9 }, `n: ${whole}`],
    [{ n: 1.5 }, `n: ${whole}`],
    [{ n: "2" }, `n: ${whole}`],
    [{ size: "large" }, `size: ${side}`],
    [{ size: "1024*1024" }, `size: ${side}`],
    [{ size: "0x1024" }, `size: ${side}`],
    [{ size: "99999x1" }, `size: ${side}`],
    [{ size: 1024 }, `size: ${side}`],
    [{ prompt: "" }, "prompt: must be a non-empty string"],
    [{ prompt: ["a"] }, "prompt: must be a non-empty string"],
    [{ prompt: undefined }, "prompt: must be a non-empty string"],
    [{ response_format: "png" }, "response_format: must be one of: url, b64_json"],
    [{ stream: true }, `stream: ${streams}`],
    [{ stream: "yes" }, `stream: ${streams}`],
  ]
  test.concurrent.each(jobVendorNames)("%s: 400 that names the field", async (name) => {
    const other = otherVendor(name)
    await using stage = await imageScene(simulator, [name, other])
    for (const [more, message] of rows) {
      const answer = await stage.ask(more)
      expectError(answer, 400, "invalid_request_error", "invalid_parameter")
      expect(JSON.parse(answer.text).error.message).toBe(message)
    }
    expect([stage.vendor(name).calls, stage.vendor(other).calls]).toEqual([[], []])
    expect(stage.gateway.circuits).toEqual([])
  })

  const limits: readonly (readonly [(typeof jobVendorNames)[number], object, string])[] = [
    ["dashscope", { n: 5 }, "n: this model makes at most 4 images per request"],
    ["dashscope", { size: "300x300" }, "size: this model does not make 300x300; it takes as many pixels"],
    ["bfl", { n: 2 }, "n: this model makes one image per request"],
    ["bfl", { size: "1000x1001" }, "size: this model does not make 1000x1001; it takes sides of 64 pixels or more"],
    ["bfl", { webhook_url: "https://example.com/" }, "webhook_url: cannot be used through the gateway"],
    ["replicate", { n: 5 }, "n: this model makes at most 4 images per request"],
    [
      "replicate",
      { size: "1000x100" },
      "size: this model does not make 1000x100; it takes sizes of the aspect ratios 1:1",
    ],
  ]
  test.concurrent.each([...limits])("%s: %j is more than the model makes", async (name, more, message) => {
    await using stage = await imageScene(simulator, [name])
    const answer = await stage.ask({ ...more })
    expectError(answer, 400, "invalid_request_error", "invalid_parameter")
    expect(JSON.parse(answer.text).error.message).toStartWith(message)
    expect(stage.vendor(name).calls).toEqual([])
  })

  test.concurrent("another route that makes it is taken", async () => {
    await using stage = await imageScene(simulator, ["bfl", "fal"])
    stage.vendor("fal").behave(job())
    expect(picturesOf(await stage.ask({ n: 2 }))).toHaveLength(2)
    expect(stage.vendor("bfl").calls).toEqual([])
  })
})
