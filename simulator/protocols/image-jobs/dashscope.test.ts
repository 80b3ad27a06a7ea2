import { describe, expect, test } from "bun:test"
import type { BehaviourOf } from "../../behaviour.ts"
import { call, polls, postJson, type Seen } from "../../testing/job-client.ts"
import { standWith } from "../../testing/stand.ts"
import { picture } from "../pictures.ts"

const stand = standWith("dashscope")
const submitPath = "/api/v1/services/aigc/text2image/image-synthesis"
const asyncHeader = { "X-DashScope-Async": "enable" }
const ask = { model: "wanx", input: { prompt: "a fox" }, parameters: { size: "1024*1024", n: 2 } }

async function submit(
  step: Partial<BehaviourOf<"image_job">> = {},
  path = submitPath,
  body: object = ask,
): Promise<string> {
  stand.vendor.behave({ kind: "image_job", ...step })
  const { status, body: answer } = await postJson(`${stand.home}${path}`, body, asyncHeader)
  expect(status).toBe(200)
  expect(answer).toMatchObject({ output: { task_status: expect.any(String) }, request_id: expect.any(String) })
  return (answer.output as { task_id: string }).task_id
}

const poll = (id: string): Promise<Seen> => call(`${stand.home}/api/v1/tasks/${id}`)
const outcome = async (step: Partial<BehaviourOf<"image_job">>): Promise<Record<string, unknown>> =>
  (await poll(await submit({ waitPolls: 0, ...step }))).body

test("a task is pending, running, then done, with a picture at each address", async () => {
  const id = await submit()
  const seen = await polls(3, () => poll(id))
  expect(seen.map(({ body }) => (body.output as { task_status: string }).task_status)).toEqual([
    "PENDING",
    "RUNNING",
    "SUCCEEDED",
  ])
  const { output, usage } = seen[2]!.body as { output: { results: { url: string }[] }; usage: object }
  expect(output).toMatchObject({ task_id: id, task_metrics: { TOTAL: 2, SUCCEEDED: 2, FAILED: 0 } })
  expect(usage).toEqual({ image_count: 2 })
  const response = await fetch(output.results[1]!.url)
  expect(Buffer.from(await response.arrayBuffer()).equals(picture(1))).toBe(true)
  expect(stand.vendor.calls.map(({ method }) => method)).toEqual(["POST", "GET", "GET", "GET", "GET"])
})

test("the newer models answer with choices, as a task or at once", async () => {
  const input = { messages: [{ role: "user", content: [{ text: "a fox" }] }] }
  const choices = { choices: [{ message: { content: [{ image: expect.stringContaining("/files/") }] } }] }
  const id = await submit({ waitPolls: 0 }, "/api/v1/services/aigc/image-generation/generation", {
    model: "wan",
    input,
  })
  expect((await poll(id)).body).toMatchObject({ output: { task_status: "SUCCEEDED", ...choices } })
  const sync = `${stand.home}/api/v1/services/aigc/multimodal-generation/generation`
  expect((await postJson(sync, { model: "wan", input })).body).toMatchObject({
    output: choices,
    usage: { image_count: 1 },
  })
  stand.vendor.behave({ kind: "image_job", outcome: "moderated" })
  expect(await postJson(sync, { model: "wan", input })).toMatchObject({
    status: 400,
    body: { code: "DataInspectionFailed" },
  })
})

describe("what becomes of a task", () => {
  test("failed, moderated, expired, or a word of its own", async () => {
    expect(await outcome({ outcome: "failed", message: "no" })).toMatchObject({
      output: { task_status: "FAILED", code: "InternalError.Algo", message: "no" },
    })
    expect(await outcome({ outcome: "moderated" })).toMatchObject({
      output: { task_status: "FAILED", code: "DataInspectionFailed" },
    })
    expect(await outcome({ outcome: "expired" })).toMatchObject({ output: { task_status: "UNKNOWN" } })
    expect(await outcome({ finalWord: "DONE_ISH" })).toMatchObject({ output: { task_status: "DONE_ISH" } })
    expect((await poll("never-was")).body).toMatchObject({ output: { task_status: "UNKNOWN" } })
  })
  test("a picture missing is told beside the others, and not counted", async () => {
    expect(await outcome({ outcome: "partial" })).toMatchObject({
      output: {
        task_status: "SUCCEEDED",
        results: [{ url: expect.any(String) }, { code: "InternalError.Timeout" }],
        task_metrics: { TOTAL: 2, SUCCEEDED: 1, FAILED: 1 },
      },
      usage: { image_count: 1 },
    })
  })
  test("it waits as long as told, with words as told, and may be stuck", async () => {
    const slow = await submit({ waitMs: 400, waitingWord: "SUSPENDED" })
    expect((await poll(slow)).body).toMatchObject({ output: { task_status: "SUSPENDED" } })
    await Bun.sleep(420)
    expect((await poll(slow)).body).toMatchObject({ output: { task_status: "SUCCEEDED" } })
    const stuck = await submit({ outcome: "stuck" })
    const last = (await polls(20, () => poll(stuck))).at(-1)
    expect(last!.body).toMatchObject({ output: { task_status: "RUNNING" } })
  })
  test("only a pending task can be cancelled", async () => {
    const cancel = (id: string): Promise<Seen> => postJson(`${stand.home}/api/v1/tasks/${id}/cancel`, {})
    const early = await submit()
    expect((await cancel(early)).status).toBe(200)
    expect((await poll(early)).body).toMatchObject({ output: { task_status: "CANCELED" } })
    const late = await submit()
    await polls(2, () => poll(late))
    expect(await cancel(late)).toMatchObject({ status: 400, body: { code: "UnsupportedOperation" } })
  })
})

test("polls get what they are told first, which does not move the task on, and is recorded", async () => {
  const faults = [
    { kind: "status", status: 429 },
    { kind: "status", status: 200, body: '{"output":' },
    { kind: "html", status: 503 },
    { kind: "reset" },
  ] as const
  const id = await submit({ waitPolls: 0, polls: faults })
  const url = `${stand.home}/api/v1/tasks/${id}`
  const statuses: (number | string)[] = []
  for (const _ of faults) {
    statuses.push(
      // On a connection of its own: Bun sends a GET again by itself when a reused one is reset.
      await fetch(url, { keepalive: false }).then(
        ({ status }) => status,
        (error: { code: string }) => error.code,
      ),
    )
  }
  expect(statuses).toEqual([429, 200, 503, "ECONNRESET"])
  expect((await poll(id)).body).toMatchObject({ output: { task_status: "SUCCEEDED" } })
  expect(stand.vendor.calls.map(({ answeredWith }) => answeredWith)).toEqual([
    "image_job",
    "status",
    "status",
    "html",
    "reset",
    "image_job",
  ])
})

test("a submit is refused in the vendor's words", async () => {
  const url = `${stand.home}${submitPath}`
  expect(await postJson(url, ask)).toMatchObject({ status: 403, body: { code: "AccessDenied" } })
  expect(await postJson(url, { model: "m" }, asyncHeader)).toMatchObject({
    status: 400,
    body: { code: "InvalidParameter" },
  })
  stand.vendor.behave({ kind: "status", status: 429 })
  expect(await postJson(url, ask, asyncHeader)).toMatchObject({ status: 429, body: { code: "Throttling.RateQuota" } })
  stand.vendor.expectKey("sk-right")
  expect(await postJson(url, ask, asyncHeader)).toMatchObject({ status: 401, body: { code: "InvalidApiKey" } })
  expect(stand.vendor.memory.jobs.size).toBe(0)
})
