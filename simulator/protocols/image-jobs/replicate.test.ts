import { describe, expect, test } from "bun:test"
import type { BehaviourOf } from "../../behaviour.ts"
import { call, polls, postJson, type Seen } from "../../testing/job-client.ts"
import { standWith } from "../../testing/stand.ts"

const stand = standWith("replicate")
const ask = { input: { prompt: "a fox", num_outputs: 2 } }
const url = (): string => `${stand.home}/v1/models/black-forest-labs/flux-schnell/predictions`

function create(step: Partial<BehaviourOf<"image_job">> = {}, headers: Record<string, string> = {}): Promise<Seen> {
  stand.vendor.behave({ kind: "image_job", ...step })
  return postJson(url(), ask, headers)
}

const links = ({ body }: Seen): { get: string; cancel: string } => body.urls as { get: string; cancel: string }
const outcome = async (step: Partial<BehaviourOf<"image_job">>): Promise<unknown> =>
  (await call(links(await create({ waitPolls: 0, ...step })).get)).body

test("a prediction starts, is processed, then has its pictures", async () => {
  const created = await create()
  expect(created).toMatchObject({
    status: 201,
    body: { model: "black-forest-labs/flux-schnell", status: "starting", output: null, error: null, input: ask.input },
  })
  expect(links(created).get).toBe(`${stand.home}/v1/predictions/${created.body.id}`)
  const seen = await polls(3, () => call(links(created).get))
  expect(seen.map(({ body }) => body.status)).toEqual(["starting", "processing", "succeeded"])
  expect(seen[2]!.body).toMatchObject({ id: created.body.id, urls: created.body.urls, metrics: {} })
  const output = seen[2]!.body.output as string[]
  expect(output).toHaveLength(2)
  expect((await fetch(output[0]!)).status).toBe(200)
})

test("a version is predicted without a model's name", async () => {
  const created = await postJson(`${stand.home}/v1/predictions`, { version: "abc", ...ask })
  expect(created.status).toBe(201)
  expect((await call(links(created).get)).status).toBe(200)
})

describe("Prefer: wait", () => {
  test("the answer is held until the prediction is done", async () => {
    const began = performance.now()
    const created = await create({ waitMs: 60 }, { Prefer: "wait=5" })
    expect(performance.now() - began).toBeGreaterThanOrEqual(55)
    expect(created).toMatchObject({
      status: 201,
      body: { status: "succeeded", output: [expect.any(String), expect.any(String)] },
    })
  })
  test("a prediction that takes longer comes back unfinished, and goes on", async () => {
    const created = await create({ outcome: "stuck" }, { Prefer: "wait=1" })
    expect(created).toMatchObject({ status: 202, body: { status: "starting" } })
    const planned = await create({ waitPolls: 1 }, { Prefer: "wait" })
    expect(planned).toMatchObject({ status: 202, body: { status: "starting" } })
    const seen = await polls(2, () => call(links(planned).get))
    expect(seen.map(({ body }) => body.status)).toEqual(["starting", "succeeded"])
  })
})

test("the vendor's words for every outcome", async () => {
  expect(await outcome({ outcome: "failed", message: "no" })).toMatchObject({
    status: "failed",
    error: "no",
    output: null,
  })
  expect(await outcome({ outcome: "moderated" })).toMatchObject({
    status: "failed",
    error: expect.stringContaining("E005"),
  })
  expect(await outcome({ outcome: "expired" })).toMatchObject({ status: "succeeded", output: null, data_removed: true })
  expect(await outcome({ outcome: "failed", finalWord: "aborted" })).toMatchObject({ status: "aborted" })
  expect(await outcome({ shape: "single" })).toMatchObject({ output: expect.stringContaining("/files/") })
  expect((await outcome({ outcome: "partial" })) as { output: string[] }).toMatchObject({
    output: [expect.any(String)],
  })
  expect(await call(`${stand.home}/v1/predictions/never`)).toMatchObject({ status: 404, body: { title: "Not found" } })
})

test("a prediction can be cancelled until it is over", async () => {
  const created = await create()
  expect((await postJson(links(created).cancel, {})).body).toMatchObject({ status: "canceled", output: null })
  expect((await call(links(created).get)).body).toMatchObject({ status: "canceled" })
  const done = await create({ waitPolls: 0 })
  await call(links(done).get)
  expect((await postJson(links(done).cancel, {})).body).toMatchObject({ status: "succeeded" })
})

test("a submit is refused in the vendor's words", async () => {
  expect(await postJson(url(), { input: {} })).toMatchObject({
    status: 422,
    body: { title: "Input validation failed" },
  })
  for (const status of [401, 402, 429]) {
    stand.vendor.behave({ kind: "status", status })
    expect(await postJson(url(), ask)).toMatchObject({ status, body: { title: expect.any(String), status } })
  }
})
