import { expect, test } from "bun:test"
import type { BehaviourOf } from "../../behaviour.ts"
import { call, polls, postJson, type Seen } from "../../testing/job-client.ts"
import { standWith } from "../../testing/stand.ts"

const stand = standWith("images-eu")
const key = { "x-key": "bfl-key" }
const ask = { prompt: "a fox", width: 1024, height: 768, seed: 7 }

interface Submitted {
  readonly id: string
  readonly polling_url: string
}

async function submit(step: Partial<BehaviourOf<"image_job">> = {}): Promise<Submitted> {
  stand.vendor.behave({ kind: "image_job", ...step })
  const { status, body } = await postJson(`${stand.home}/v1/flux-2-pro`, ask, key)
  expect(status).toBe(200)
  return { id: String(body.id), polling_url: String(body.polling_url) }
}

const poll = ({ polling_url }: Submitted): Promise<Seen> => call(polling_url, { headers: key })
const outcome = async (step: Partial<BehaviourOf<"image_job">>): Promise<unknown> =>
  (await poll(await submit({ waitPolls: 0, ...step }))).body

test("a task is pending, then ready, with the picture at its address", async () => {
  const task = await submit()
  expect(task.polling_url).toBe(`${stand.home}/v1/get_result?id=${task.id}`)
  const seen = await polls(3, () => poll(task))
  expect(seen.map(({ body }) => body.status)).toEqual(["Pending", "Pending", "Ready"])
  expect(seen[0]!.body).toMatchObject({ id: task.id, result: null })
  const { sample, seed, prompt } = seen[2]!.body.result as { sample: string; seed: number; prompt: string }
  expect([seed, prompt]).toEqual([7, "a fox"])
  expect((await fetch(sample)).headers.get("content-type")).toBe("image/png")
})

test("the address to poll can stand on another host", async () => {
  const task = await submit({ pollHost: "localhost", waitPolls: 0 })
  expect(new URL(task.polling_url).host).toBe(`localhost:${stand.simulator.port}`)
  expect((await poll(task)).body.status).toBe("Ready")
})

test("the vendor's words for every outcome", async () => {
  expect(await outcome({ outcome: "moderated" })).toMatchObject({ status: "Content Moderated", result: null })
  expect(await outcome({ outcome: "moderated", finalWord: "Request Moderated" })).toMatchObject({
    status: "Request Moderated",
  })
  expect(await outcome({ outcome: "failed" })).toMatchObject({ status: "Error", result: null })
  expect(await outcome({ outcome: "expired" })).toMatchObject({ status: "Task not found" })
  expect(await outcome({ waitPolls: 1, waitingWord: "Thinking" })).toMatchObject({ status: "Thinking" })
  expect((await call(`${stand.home}/v1/get_result?id=never`)).body).toMatchObject({ status: "Task not found" })
})

test("results can be data, or a file that is hard to get", async () => {
  const sampleOf = (body: unknown): string => (body as { result: { sample: string } }).result.sample
  expect(sampleOf(await outcome({ results: "data" }))).toStartWith("data:image/png;base64,iVBOR")
  const guarded = sampleOf(await outcome({ file: { needsKey: true } }))
  expect((await fetch(guarded)).status).toBe(403)
})

test("a submit is refused in the vendor's words", async () => {
  const url = `${stand.home}/v1/flux-2-pro`
  expect(await postJson(url, {}, key)).toMatchObject({ status: 422, body: { detail: [{ loc: ["body", "prompt"] }] } })
  for (const status of [402, 429, 503]) {
    stand.vendor.behave({ kind: "status", status })
    expect(await postJson(url, ask, key)).toMatchObject({ status, body: { detail: expect.any(String) } })
  }
})

test("any model's path is the vendor's only if its key or its name says so", async () => {
  expect((await postJson(`${stand.home}/v1/flux-2-pro`, ask)).status).toBe(404)
  expect((await postJson(`${stand.simulator.url}/bfl/v1/flux-2-pro`, ask)).status).toBe(200)
  expect((await postJson(`${stand.simulator.url}/bfl-eu/v1/flux-2-pro`, ask)).status).toBe(200)
})
