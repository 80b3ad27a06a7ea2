import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { FileOptions } from "../../simulator/behaviour.ts"
import type { RecordedCall } from "../../simulator/calls.ts"
import { picture } from "../../simulator/protocols/pictures.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { eventually, headerOf } from "../support/gateway.ts"
import {
  expectJobError,
  type ImageScene,
  imageScene,
  type JobVendorName,
  job,
  jobVendorNames,
  picturesOf,
  slowJob,
} from "../support/image-scene.ts"
import { expectError } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => simulator.stop())

const base64 = { response_format: "b64_json" }
/** Vendors whose replies say where to ask after a job; DashScope's addresses are built here. */
const withAddresses = ["bfl", "replicate", "fal"] as const

const filesOf = (stage: ImageScene, name: JobVendorName): readonly RecordedCall[] =>
  stage.vendor(name).calls.filter(({ path }) => path.includes("/files/"))

/** Nothing of the operator's or the caller's: the headers a plain fetch has. */
function expectNothingOfOurs(call: RecordedCall): void {
  const names = call.headers.map(([name]) => name.toLowerCase()).sort()
  const usual = ["accept", "accept-encoding", "connection", "content-length", "host", "user-agent"]
  expect(names.filter((name) => !usual.includes(name))).toEqual([])
  expect(headerOf(call, "user-agent")).toStartWith("tollgate/")
}

/** A port that counts who comes; nobody may. */
function trap() {
  let visitors = 0
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        visitors++
        socket.end()
      },
      data() {},
    },
  })
  return {
    port: listener.port,
    visitors: () => visitors,
    [Symbol.dispose]: () => listener.stop(true),
  }
}

/** Spellings of this machine and its neighbourhood, as a vendor's reply might have them. */
const insideHosts = [
  "127.0.0.1",
  "127.1",
  "2130706433",
  "0x7f000001",
  "0177.0.0.1",
  "0.0.0.0",
  "localhost",
  "[::1]",
  "[::ffff:127.0.0.1]",
  "10.0.0.1",
  "169.254.169.254",
  "100.100.100.200",
]

describe("addresses to ask after a job", () => {
  const caller = { headers: { "idempotency-key": "once", "user-agent": "client/1" } }
  const operator = { upstream: { headers: { "X-Operator": "blue" } } }

  test.concurrent.each([...withAddresses])(
    "%s: on a foreign host they are asked without any credential",
    async (name) => {
      await using stage = await imageScene(simulator, [name], operator)
      stage.vendor(name).behave(slowJob({ pollHost: "localhost" }))
      expect(picturesOf(await stage.ask({}, caller))).toHaveLength(1)
      const polls = stage.polls(name)
      expect(polls.length).toBeGreaterThanOrEqual(2)
      for (const call of polls) {
        expect(headerOf(call, "host")).toBe(`localhost:${simulator.port}`)
        expectNothingOfOurs(call)
      }
    },
  )

  test.concurrent.each(["replicate", "fal"] as const)("%s: nor does a cancel take it there", async (name) => {
    await using stage = await imageScene(simulator, [name], { ...operator, timeouts: { nonStream: 1200 } })
    stage.vendor(name).behave(slowJob({ pollHost: "localhost", outcome: "stuck" }))
    expectError(await stage.ask({}, caller), 504, "timeout_error", "request_timeout")
    expectNothingOfOurs(await eventually(() => stage.cancels(name)[0]))
  })

  test.concurrent.each([...withAddresses])("%s: another port of the same host is a foreign host", async (name) => {
    const neighbour = await startSimulator()
    await using stage = await imageScene(simulator, [name], { ...operator, timeouts: { nonStream: 1200 } })
    stage.vendor(name).behave(slowJob({ pollHost: `127.0.0.1:${neighbour.port}`, outcome: "stuck" }))
    await stage.ask({}, caller)
    const calls = neighbour.vendor(stage.vendor(name).name).calls
    expect(calls.length).toBeGreaterThanOrEqual(1)
    for (const call of calls) expectNothingOfOurs(call)
    await neighbour.stop()
  })

  test.concurrent.each([...withAddresses])(
    "%s: foreign and not https is refused where private addresses are",
    async (name) => {
      await using stage = await imageScene(simulator, [name], { allowPrivateAddresses: false })
      stage.vendor(name).behave(slowJob({ pollHost: "localhost" }))
      expectJobError(await stage.ask(), "only https addresses are fetched, not http://")
      expect(stage.vendor(name).calls).toHaveLength(1)
    },
  )

  test.concurrent.each(insideHosts)("https://%s is refused, and nobody comes there", async (host) => {
    using port = trap()
    await using stage = await imageScene(simulator, ["bfl", "fal"], { allowPrivateAddresses: false })
    const address = `https://${host}:${port.port}/v1/get_result?id=1`
    stage.vendor("bfl").behave({ kind: "status", status: 200, json: { id: "1", polling_url: address } })
    expectJobError(await stage.ask(), `${new URL(address).hostname.replace(/[[\]]/g, "")} is not a public address`)
    expect([stage.vendor("bfl").calls.length, stage.vendor("fal").calls.length]).toEqual([1, 0])
    expect(port.visitors()).toBe(0)
  })

  test.concurrent("the upstream's own private address is the operator's choice", async () => {
    for (const name of jobVendorNames) {
      await using stage = await imageScene(simulator, [name], { allowPrivateAddresses: false })
      stage.vendor(name).behave(slowJob())
      expect(picturesOf(await stage.ask())).toHaveLength(1)
    }
  })
})

describe("fetching a result for base64", () => {
  const good: Readonly<Record<string, FileOptions>> = {
    "another host": { host: "localhost" },
    "three redirects": { redirects: 3 },
    "another kind of picture": { contentType: "image/webp" },
    "no particular kind": { contentType: "application/octet-stream" },
    "a parameter in its type": { contentType: "image/png; charset=binary" },
  }
  test.concurrent.each(Object.keys(good))("works over %s, with nothing of ours", async (what) => {
    await using stage = await imageScene(simulator, ["bfl"], { upstream: { headers: { "X-Operator": "blue" } } })
    stage.vendor("bfl").behave(job({ file: good[what]! }))
    expect(picturesOf(await stage.ask(base64))).toEqual([{ b64_json: picture(0).toString("base64") }])
    const fetched = filesOf(stage, "bfl")
    expect(fetched).toHaveLength(1 + (good[what]!.redirects ?? 0))
    for (const call of fetched) expectNothingOfOurs(call)
  })

  const bad: readonly (readonly [string, FileOptions, reason: string, fetches: number])[] = [
    ["a fourth redirect", { redirects: 4 }, "the result's address redirects more than 3 times", 4],
    ["a redirect to a file", { redirectTo: "file:///etc/passwd" }, "only https addresses are fetched, not file://", 1],
    [
      "a redirect with a password",
      { redirectTo: "http://user:word@127.0.0.1:1/x.png" },
      "an address with a user name is not fetched",
      1,
    ],
    ["a web page", { contentType: "text/html" }, 'the result is no image but "text/html"', 1],
    ["a file that needs a key", { needsKey: true }, "the result's address answers 403", 1],
    [
      "a file that is gone",
      { fault: { kind: "status", status: 404, body: "<Error/>" } },
      "the result's address answers 404",
      1,
    ],
    ["a huge file", { megabytes: 400 }, "an answer of more than 33554432 bytes is not read", 1],
    ["a redirect to nowhere", { redirectTo: "http://127.0.0.1:1/x.png" }, "its address cannot be reached", 3],
    ["a reset", { fault: { kind: "reset" } }, "its address cannot be reached", 3],
    [
      "a file that breaks off",
      {
        fault: {
          kind: "stream",
          body: "PNG",
          headers: { "content-type": "image/png" },
          end: "rst",
          framing: "chunked",
        },
      },
      "its address cannot be reached",
      3,
    ],
  ]
  test.concurrent.each(jobVendorNames.flatMap((name) => bad.map((row) => [name, ...row] as const)))(
    "%s: %s is a clear error, and the images are not made again",
    async (name, _, file, reason, fetches) => {
      await using stage = await imageScene(simulator, [name, "plain"])
      stage.vendor(name).behave(job({ file }))
      expectJobError(await stage.ask(base64), `its result cannot be fetched: ${reason}`)
      expect(stage.submits(name)).toHaveLength(1)
      expect(filesOf(stage, name)).toHaveLength(fetches)
      expect(stage.vendor("plain").calls).toEqual([])
      // A huge file is not read to its end.
      for (const call of filesOf(stage, name)) expect(call.bytesSent).toBeLessThan(200 * 1024 * 1024)
    },
  )

  test.concurrent("the largest picture that is taken", async () => {
    await using stage = await imageScene(simulator, ["fal"])
    stage.vendor("fal").behave(job({ file: { megabytes: 31 } }))
    const [image] = picturesOf(await stage.ask(base64))
    const bytes = Buffer.from(image!.b64_json!, "base64")
    expect(bytes.length).toBeGreaterThan(31 * 1024 * 1024 - 1)
    expect(picture(0).equals(bytes.subarray(0, picture(0).length))).toBeTrue()
  })

  test.concurrent("an address that cannot be reached at first is tried again", async () => {
    let visits = 0
    const head = `HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: ${picture(5).length}\r\n\r\n`
    const listener = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        data(socket) {
          if (visits++ === 0) socket.terminate()
          else socket.end(Buffer.concat([Buffer.from(head), picture(5)]))
        },
      },
    })
    await using stage = await imageScene(simulator, ["bfl"])
    stage.vendor("bfl").behave(job({ file: { redirectTo: `http://127.0.0.1:${listener.port}/x.png` } }))
    expect(picturesOf(await stage.ask(base64))).toEqual([{ b64_json: picture(5).toString("base64") }])
    expect(visits).toBe(2)
    expect(stage.submits("bfl")).toHaveLength(1)
    listener.stop(true)
  })

  test.concurrent("one picture of several that cannot be had fails the whole", async () => {
    using server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => new Response(new Uint8Array(picture(1)), { headers: { "content-type": "image/png" } }),
    })
    const results = [{ url: server.url.href }, { url: "http://127.0.0.1:1/x.png" }]
    const json = { output: { task_status: "SUCCEEDED", results } }
    await using stage = await imageScene(simulator, ["dashscope"])
    stage.vendor("dashscope").behave(slowJob({ polls: [{ kind: "status", status: 200, json }] }))
    expectJobError(await stage.ask({ n: 2, ...base64 }), "its result cannot be fetched: its address cannot be reached")
    expect(stage.submits("dashscope")).toHaveLength(1)
  })

  test.concurrent("a file that never comes ends at the request's limit", async () => {
    await using stage = await imageScene(simulator, ["bfl", "fal"], { timeouts: { nonStream: 1200 } })
    stage.vendor("bfl").behave(job({ file: { fault: { kind: "hang" } } }))
    expectError(await stage.ask(base64), 504, "timeout_error", "request_timeout")
    await eventually(() => filesOf(stage, "bfl")[0]!.closedByPeer)
    expect([stage.submits("bfl").length, stage.vendor("fal").calls.length]).toEqual([1, 0])
  })

  test.concurrent.each(jobVendorNames)("%s: http is refused where private addresses are", async (name) => {
    await using stage = await imageScene(simulator, [name], { allowPrivateAddresses: false })
    stage.vendor(name).behave(job())
    expectJobError(
      await stage.ask(base64),
      "its result cannot be fetched: only https addresses are fetched, not http://",
    )
    expect(filesOf(stage, name)).toEqual([])
    // An address to hand over is the caller's business.
    expect(picturesOf(await stage.ask())).toHaveLength(1)
  })

  test.concurrent.each(insideHosts)("https://%s is refused, and nobody comes there", async (host) => {
    using port = trap()
    await using stage = await imageScene(simulator, ["dashscope"], { allowPrivateAddresses: false })
    const url = `https://${host}:${port.port}/x.png`
    const json = { output: { task_status: "SUCCEEDED", results: [{ url }] } }
    stage.vendor("dashscope").behave(slowJob({ polls: [{ kind: "status", status: 200, json }] }))
    const shown = new URL(url).hostname.replace(/[[\]]/g, "")
    expectJobError(await stage.ask(base64), `its result cannot be fetched: ${shown} is not a public address`)
    expect(port.visitors()).toBe(0)
  })

  test.concurrent("the setting in the config file lets them through as well", async () => {
    await using stage = await imageScene(simulator, ["bfl"], { allowPrivateAddresses: false })
    stage.vendor("bfl").behave(job())
    await stage.gateway.apply({ allowPrivateAddresses: true })
    expect(picturesOf(await stage.ask(base64))).toHaveLength(1)
  })
})
