import { expect, test } from "bun:test"
import { standWith } from "../../testing/stand.ts"
import { clientOf } from "../../testing/video-client.ts"
import { at, ended, lasting, videoVendors } from "../../testing/video-vendors.ts"

const stand = standWith("replicate")
const client = clientOf(stand, videoVendors, "replicate")
const path = "/v1/models/bytedance/seedance-1-pro/predictions"
const ask = { input: { prompt: "a fox", duration: 5, resolution: "720p" } }

test("a prediction is told as the vendor's pages show it", async () => {
  const created = await client.submit(ended({ runningMs: 1, seconds: 4.9 }), ask)
  const id = String(created.body.id)
  expect(created).toMatchObject({
    status: 201,
    body: { model: "bytedance/seedance-1-pro", input: ask.input, output: null, error: null, completed_at: null },
  })
  expect(String(at(created.body, "urls.get"))).toBe(`${stand.home}/v1/predictions/${id}`)
  await Bun.sleep(2)
  const done = (await client.get(String(at(created.body, "urls.get")))).body
  expect((await fetch(String(done.output))).status).toBe(200)
  // The time that was computed for, not the length of the film.
  expect(done).toMatchObject({ status: "succeeded", metrics: { predict_time: 0.001 }, data_removed: false })
  expect(JSON.stringify(done)).not.toContain("4.9")
})

test("some models answer with a list", async () => {
  const { body } = await client.outcome(ended({ shape: "list" }))
  expect(body.output).toEqual([expect.stringContaining("/cdn/")])
})

test.each([
  ["failure", { status: "failed", error: "Prediction failed." }],
  ["moderated", { status: "failed", error: expect.stringContaining("E005") }],
  ["cancelled", { status: "canceled" }],
  ["expired", { status: "succeeded", output: null, data_removed: true }],
  ["no_url", { status: "succeeded", output: null, data_removed: false }],
] as const)("it ends %s", async (outcome, body) => {
  expect(await client.outcome(ended({ outcome }), ask)).toMatchObject({ status: 200, body })
})

test("a prediction can be cancelled until it is over", async () => {
  const cancel = (id: string) => client.send("POST", `/v1/predictions/${id}/cancel`)
  expect((await cancel(await client.begin(lasting.running))).body).toMatchObject({ status: "canceled", output: null })
  expect((await cancel(await client.begin(lasting.queued))).body).toMatchObject({
    status: "canceled",
    started_at: null,
    metrics: { predict_time: 0 },
  })
  expect((await cancel(await client.begin(ended()))).body).toMatchObject({ status: "succeeded" })
})

test("the answer is held until the prediction is over, or the wait", async () => {
  const prefer = (wait: string) => client.send("POST", path, ask, { prefer: wait })
  stand.vendor.behave({ kind: "video_job", queuedMs: 5, runningMs: 5 })
  expect(await prefer("wait=5")).toMatchObject({ status: 201, body: { status: "succeeded" } })
  stand.vendor.behave(lasting.running)
  expect(await prefer("wait=0")).toMatchObject({ status: 202, body: { status: "processing" } })
})

test("input of the wrong type is refused", async () => {
  const wrong = { input: { ...ask.input, duration: "5" } }
  expect(await client.submit(undefined, wrong)).toMatchObject({
    status: 422,
    body: { title: "Input validation failed", detail: expect.stringContaining("duration"), status: 422 },
  })
  expect((await client.submit(undefined, { input: {} })).status).toBe(422)
})

test("images still come from models that make images", async () => {
  stand.vendor.behave()
  const { body } = await client.submit(
    undefined,
    { input: { prompt: "x" } },
    "/v1/models/black-forest-labs/flux-2-pro/predictions",
  )
  expect(stand.vendor.memory.jobs.has(String(body.id))).toBe(true)
})
