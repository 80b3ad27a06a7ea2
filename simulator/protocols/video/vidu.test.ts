import { expect, test } from "bun:test"
import { standWith } from "../../testing/stand.ts"
import { clientOf } from "../../testing/video-client.ts"
import { ended, lasting, videoVendors } from "../../testing/video-vendors.ts"

const stand = standWith("vidu")
const client = clientOf(stand, videoVendors, "vidu")
const ask = {
  model: "viduq3-pro",
  prompt: "A fox",
  duration: 5,
  aspect_ratio: "16:9",
  resolution: "720p",
  payload: "vid_1",
}
const image = "/ent/v2/img2video"

test("the poll tells the film, and only the list its length", async () => {
  const submitted = await client.submit(ended({ seconds: 5.04 }), ask)
  const id = String(submitted.body.task_id)
  expect(submitted.body).toMatchObject({ state: "created", duration: 5, credits: 40, payload: "vid_1", seed: 0 })
  const { body } = await client.look(id)
  expect(body).toMatchObject({
    state: "success",
    err_code: "",
    credits: 40,
    payload: "vid_1",
    creations: [{ url: expect.stringContaining("/cdn/"), cover_url: expect.any(String) }],
  })
  expect(JSON.stringify(body)).not.toContain("5.04")
  const list = (await client.get(`/ent/v2/tasks?task_ids=${id}`)).body
  expect(list).toMatchObject({
    next_page_token: "",
    tasks: [{ duration: 5, creations: [{ video: { duration: 5.04, fps: 24, resolution: { width: 1280 } } }] }],
  })
  expect((await client.get("/ent/v2/tasks?task_ids=1")).body).toEqual({ next_page_token: "", tasks: [] })
})

test("the list does not tell the length if told so", async () => {
  const id = await client.begin(ended({ reports: false, seconds: 5.04 }))
  expect(JSON.stringify((await client.get(`/ent/v2/tasks?task_ids=${id}`)).body)).not.toContain("5.04")
})

test.each([
  ["moderated", { state: "failed", err_code: "TaskPromptPolicyViolation", creations: [] }],
  ["failure", { state: "failed", err_code: "CreationFailed", creations: [] }],
] as const)("it ends %s", async (outcome, body) => {
  expect(await client.outcome(ended({ outcome }), ask)).toMatchObject({ status: 200, body })
})

test("a task for the quiet hours can be cancelled while it waits", async () => {
  const cancel = (id: string) => client.send("POST", `/ent/v2/tasks/${id}/cancel`)
  const quiet = await client.begin(lasting.queued, { ...ask, off_peak: true })
  expect((await cancel(quiet)).status).toBe(200)
  expect((await client.look(quiet)).body).toMatchObject({ state: "failed", err_code: "TaskCanceled" })
  expect((await cancel(await client.begin(lasting.queued))).status).toBe(400)
  expect((await cancel("1")).status).toBe(404)
})

test("submits are counted by their payload", async () => {
  await client.submit(lasting.queued, ask)
  expect(stand.vendor.memory.submits.get("vid_1")).toBe(1)
})

const text = "/ent/v2/text2video"
const picture = "https://x/a.png"
test.each([
  [{ duration: "5" }, text, "duration"],
  [{ duration: 17 }, text, "duration"],
  [{ duration: 12, model: "viduq2" }, text, "duration"],
  [{ model: "viduq1" }, text, "resolution"],
  [{ resolution: "4k" }, text, "resolution"],
  [{ aspect_ratio: "21:9" }, text, "aspect_ratio"],
  [{ images: [picture] }, image, "aspect_ratio"],
  [{}, image, "images"],
  [{ images: [picture, picture] }, image, "images"],
  [{ model: "sora" }, text, "model"],
  [{ prompt: undefined }, text, "prompt"],
])("what the vendor does not take: %j at %s", async (wrong, path, field) => {
  expect(await client.submit(undefined, { ...ask, ...wrong }, path)).toMatchObject({
    status: 400,
    body: {
      code: 400,
      reason: "FieldInvalid",
      message: `invalid field: ${field}`,
      metadata: { trace_id: expect.any(String) },
    },
  })
})
