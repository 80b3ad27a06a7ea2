import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Fault } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { eventually, headerOf } from "../support/gateway.ts"
import {
  expectJobError,
  type ImageScene,
  imageScene,
  type JobVendorName,
  job,
  jobVendorNames,
  jobVendors,
  otherVendor,
  picturesOf,
  prompt,
  slowJob,
} from "../support/image-scene.ts"
import { rawConnection, rawRequest } from "../support/raw-http.ts"
import { expectError } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => simulator.stop())

/** A time-out that fires this late on a busy machine still fired by its own limit and not by another. */
const late = 2000
/** Longer than any pause between two polls of a job that is new. */
const quietMs = 1200

/** The job is no longer asked after. */
async function expectNoMorePolls(stage: ImageScene, name: JobVendorName): Promise<void> {
  const before = stage.polls(name).length
  await Bun.sleep(quietMs)
  expect(stage.polls(name)).toHaveLength(before)
}

/** The vendor is told to stop once, with its credential, where it has a call for that. */
async function expectCancelled(stage: ImageScene, name: JobVendorName, since: number): Promise<void> {
  const { cancels, auth } = jobVendors[name]
  if (cancels === null) return
  const call = await eventually(() => stage.cancels(name)[0])
  expect(call.at - since).toBeLessThan(1000)
  const [header, value] = auth(`credential-of-${name}`)
  expect(headerOf(call, header)).toBe(value)
}

describe("the vendor's verdict", () => {
  const sensitive = "The input or output was flagged as sensitive. Please try again with different inputs. (E005)"
  const flagged = "The content could not be processed because it contained material flagged by a content checker."
  const reasons: Readonly<Record<JobVendorName, Readonly<Record<string, string>>>> = {
    dashscope: {
      failed: "The task failed. (InternalError.Algo)",
      moderated:
        "refused by the vendor's moderation: Input data may contain inappropriate content. (DataInspectionFailed)",
    },
    bfl: {
      failed: "Error: generation failed",
      moderated: "the image was refused by the vendor's moderation (Content Moderated: Derivative Works Filter)",
      expired: "Task not found: generation failed",
    },
    replicate: {
      failed: "Prediction failed.",
      moderated: sensitive,
      expired: "the result has expired: the vendor has removed it",
    },
    fal: { failed: "Internal Server Error", moderated: `prompt: ${flagged}` },
  }
  const cases = jobVendorNames.flatMap((name) =>
    Object.entries(reasons[name]).map(([outcome, reason]) => [name, outcome, reason] as const),
  )
  test.concurrent.each(cases)(
    "%s: %s is told with its reason, and nobody makes it again",
    async (name, outcome, reason) => {
      const other = otherVendor(name)
      await using stage = await imageScene(simulator, [name, other])
      stage.vendor(name).behave(slowJob({ outcome: outcome as "failed" }))
      expectJobError(await stage.ask(), reason)
      expect(stage.submits(name)).toHaveLength(1)
      expect(stage.vendor(other).calls).toEqual([])
      expect(stage.cancels(name)).toEqual([])
      // The verdict is about the request, not about the vendor's health.
      expect(stage.gateway.circuits).toEqual([])
    },
  )

  test.concurrent.each(jobVendorNames)("%s: a job without any image is a failure", async (name) => {
    await using stage = await imageScene(simulator, [name, otherVendor(name)])
    stage.vendor(name).behave(job({ images: 0 }))
    expectJobError(await stage.ask(), "the vendor finished the job without an image")
    expect(stage.submits(name)).toHaveLength(1)
  })

  test.concurrent.each(jobVendorNames)(
    "%s: a long reason is cut to a readable line without our credential",
    async (name) => {
      await using stage = await imageScene(simulator, [name])
      const message = `no\n\tluck with credential-of-${name} ${"x".repeat(5000)}`
      stage.vendor(name).behave(slowJob({ outcome: "failed", message }))
      const { message: told } = JSON.parse((await stage.ask()).text).error
      expect(told).toContain("no luck with *** xxx")
      expect(told.length).toBeLessThan(400)
      expect(JSON.stringify(stage.gateway.failedAttempts)).not.toContain(`credential-of-${name}`)
    },
  )

  test.concurrent("replicate: a failure told in the answer to the submit", async () => {
    await using stage = await imageScene(simulator, ["replicate", "fal"])
    stage.vendor("replicate").behave(job({ outcome: "failed", message: "CUDA out of memory" }))
    expectJobError(await stage.ask(), "CUDA out of memory")
    expect([stage.vendor("replicate").calls.length, stage.vendor("fal").calls.length]).toEqual([1, 0])
  })
})

describe("no verdict", () => {
  test.concurrent.each(jobVendorNames)("%s: an unknown status word keeps waiting", async (name) => {
    await using stage = await imageScene(simulator, [name])
    stage.vendor(name).behave(slowJob({ waitPolls: 2, waitingWord: "WARMING_UP" }))
    expect(picturesOf(await stage.ask())).toHaveLength(1)
    expect(stage.submits(name)).toHaveLength(1)
    expect(stage.polls(name).length).toBeGreaterThanOrEqual(3)
  })

  test.concurrent.each(jobVendorNames)(
    "%s: a job that ends with an unknown word is waited for until the limit",
    async (name) => {
      await using stage = await imageScene(simulator, [name], { timeouts: { nonStream: 1500 } })
      stage.vendor(name).behave(slowJob({ finalWord: "DONE_IN_A_WAY" }))
      expectError(await stage.ask(), 504, "timeout_error", "request_timeout")
      expect(stage.submits(name)).toHaveLength(1)
    },
  )

  const json = { "content-type": "application/json" }
  const troubles: Readonly<Record<string, readonly Fault[]>> = {
    "error statuses": [
      { kind: "status", status: 429, headers: { "retry-after": "1" } },
      { kind: "status", status: 500 },
      { kind: "status", status: 503, body: "" },
      { kind: "status", status: 401 },
    ],
    "bodies that are not the vendor's": [
      { kind: "html", status: 502 },
      { kind: "html", status: 200 },
      { kind: "status", status: 200, body: '{"status":' },
      { kind: "status", status: 200, json: [] },
    ],
    "replies without a state": [
      { kind: "status", status: 200, json: null },
      { kind: "status", status: 200, json: { status: 7, output: "x", result: [] } },
      { kind: "status", status: 200, json: { status: null, output: { task_status: {} } } },
      { kind: "status", status: 302, headers: { location: "/elsewhere" } },
    ],
    "broken connections": [
      { kind: "reset" },
      { kind: "close" },
      { kind: "garbage" },
      { kind: "stream", body: '{"status":', headers: json, end: "fin" },
      { kind: "stream", body: '{"status":', headers: json, end: "rst" },
    ],
  }
  const cases = jobVendorNames.flatMap((name) => Object.keys(troubles).map((trouble) => [name, trouble] as const))
  test.concurrent.each(cases)("%s: %s while asking are no verdict", async (name, trouble) => {
    const other = otherVendor(name)
    await using stage = await imageScene(simulator, [name, other])
    const polls = troubles[trouble]!
    stage.vendor(name).behave(slowJob({ polls }))
    const answer = await stage.ask()
    expect(picturesOf(answer)).toHaveLength(1)
    expect(answer.attempts).toEqual([`${name}:first:answered`])
    expect(stage.submits(name)).toHaveLength(1)
    expect(stage.polls(name).length).toBeGreaterThanOrEqual(polls.length + 1)
    expect(stage.vendor(other).calls).toEqual([])
  })

  test.concurrent("a poll that is never answered is asked again", async () => {
    await using stage = await imageScene(simulator, ["bfl"])
    stage.vendor("bfl").behave(slowJob({ waitPolls: 0, polls: [{ kind: "hang" }] }))
    expect(picturesOf(await stage.ask())).toHaveLength(1)
    expect(stage.submits("bfl")).toHaveLength(1)
    const [hung, answered] = stage.polls("bfl")
    expect(hung!.closedByPeer).toBeTrue()
    expect(answered!.finished).toBeTrue()
  })

  test.concurrent.each(jobVendorNames)(
    "%s: a job that is stuck ends at the request's limit and is cancelled",
    async (name) => {
      const other = otherVendor(name)
      await using stage = await imageScene(simulator, [name, other], { timeouts: { nonStream: 1500 } })
      stage.vendor(name).behave(slowJob({ outcome: "stuck" }))
      const answer = await stage.ask()
      const over = performance.now()
      expectError(answer, 504, "timeout_error", "request_timeout")
      expect(answer.story.endedAt).toBeGreaterThanOrEqual(1498)
      expect(answer.story.endedAt).toBeLessThan(1500 + late)
      await expectCancelled(stage, name, over)
      await expectNoMorePolls(stage, name)
      expect(stage.submits(name)).toHaveLength(1)
      expect(stage.cancels(name)).toHaveLength(jobVendors[name].cancels === null ? 0 : 1)
      expect(stage.vendor(other).calls).toEqual([])
    },
  )

  test.concurrent.each(jobVendorNames)(
    "%s: a submit that is never answered ends at the request's limit",
    async (name) => {
      await using stage = await imageScene(simulator, [name, otherVendor(name)], { timeouts: { nonStream: 400 } })
      stage.vendor(name).behave({ kind: "hang" })
      expectError(await stage.ask(), 504, "timeout_error", "request_timeout")
      await eventually(() => stage.vendor(name).calls[0]!.closedByPeer)
      expect(stage.vendor(name).calls).toHaveLength(1)
    },
  )

  test.concurrent.each(["dashscope", "fal"] as const)(
    "%s: a job that its vendor has forgotten is no verdict either",
    async (name) => {
      await using stage = await imageScene(simulator, [name], { timeouts: { nonStream: 1500 } })
      stage.vendor(name).behave(slowJob({ outcome: "expired" }))
      expectError(await stage.ask(), 504, "timeout_error", "request_timeout")
      expect(stage.submits(name)).toHaveLength(1)
    },
  )
})

describe("the client leaves", () => {
  async function visit(stage: ImageScene, more: object = {}) {
    const client = await rawConnection(stage.gateway.url)
    const headers = [`Authorization: Bearer ${stage.gateway.key}`, "Content-Type: application/json"]
    client.send(rawRequest("/v1/images/generations", headers, JSON.stringify({ model: "m", prompt, ...more })))
    return client
  }

  async function expectGone(stage: ImageScene, leftAt: number): Promise<void> {
    const story = await eventually(() => stage.gateway.stories[0])
    expect(story).toMatchObject({ ending: "client_gone", error: null })
    expect(story.attempts).toHaveLength(1)
    await eventually(() => stage.gateway.inFlight === 0)
    expect(performance.now() - leftAt).toBeLessThan(1000)
    expect(stage.gateway.complaints).toEqual([])
  }

  test.concurrent.each(jobVendorNames)("%s: while its job runs: asking stops and the vendor is told", async (name) => {
    const other = otherVendor(name)
    await using stage = await imageScene(simulator, [name, other])
    stage.vendor(name).behave(slowJob({ outcome: "stuck" }))
    const client = await visit(stage)
    await eventually(() => stage.polls(name).length === 2)
    const leftAt = performance.now()
    client.leave()
    await expectGone(stage, leftAt)
    await expectCancelled(stage, name, leftAt)
    await expectNoMorePolls(stage, name)
    expect(stage.submits(name)).toHaveLength(1)
    expect(stage.cancels(name)).toHaveLength(jobVendors[name].cancels === null ? 0 : 1)
    expect(stage.vendor(other).calls).toEqual([])
  })

  test.concurrent.each(jobVendorNames)("%s: before the submit is answered: it is aborted", async (name) => {
    await using stage = await imageScene(simulator, [name, otherVendor(name)])
    stage.vendor(name).behave({ kind: "hang" })
    const client = await visit(stage)
    await eventually(() => stage.vendor(name).calls[0]?.bodyComplete)
    const leftAt = performance.now()
    client.leave()
    await expectGone(stage, leftAt)
    await eventually(() => stage.vendor(name).calls[0]!.closedByPeer)
    expect(stage.vendor(name).calls).toHaveLength(1)
  })

  test.concurrent("during a poll that hangs: it is aborted and the vendor is told", async () => {
    await using stage = await imageScene(simulator, ["dashscope"])
    stage.vendor("dashscope").behave(slowJob({ polls: [{ kind: "hang" }] }))
    const client = await visit(stage)
    await eventually(() => stage.polls("dashscope")[0])
    const leftAt = performance.now()
    client.leave()
    await expectGone(stage, leftAt)
    await eventually(() => stage.polls("dashscope")[0]!.closedByPeer)
    await expectCancelled(stage, "dashscope", leftAt)
  })

  test.concurrent("while its picture is fetched: the fetching stops", async () => {
    await using stage = await imageScene(simulator, ["bfl"])
    stage.vendor("bfl").behave(job({ file: { fault: { kind: "hang" } } }))
    const client = await visit(stage, { response_format: "b64_json" })
    const file = await eventually(() => stage.vendor("bfl").calls.find(({ path }) => path.includes("/files/")))
    const leftAt = performance.now()
    client.leave()
    await expectGone(stage, leftAt)
    await eventually(() => file.closedByPeer)
  })
})
