import { expect, test } from "bun:test"
import { standWith } from "../../testing/stand.ts"
import { clientOf } from "../../testing/video-client.ts"
import { ended, videoVendors } from "../../testing/video-vendors.ts"

const stand = standWith("zhipu")
const client = clientOf(stand, videoVendors, "zhipu")
const ask = {
  model: "cogvideox-3",
  prompt: "A cat",
  quality: "quality",
  with_audio: true,
  size: "1920x1080",
  fps: 30,
  duration: 5,
}

test("a task is told as the vendor's pages show it", async () => {
  const submitted = await client.submit(ended(), ask)
  const id = String(submitted.body.id)
  expect(id).toMatch(/^\d{12}-\d{4}$/)
  expect(submitted.body).toMatchObject({
    model: "cogvideox-3",
    task_status: "PROCESSING",
    request_id: expect.any(String),
  })
  expect((await client.look(id)).body).toMatchObject({
    model: "cogvideox-3",
    task_status: "SUCCESS",
    video_result: [{ url: expect.stringContaining("/cdn/"), cover_image_url: expect.any(String) }],
  })
})

test("a failure does not say why", async () => {
  for (const outcome of ["failure", "moderated"] as const) {
    const { body } = await client.outcome(ended({ outcome }), ask)
    expect([Object.keys(body).sort(), body.task_status]).toEqual([["model", "request_id", "task_status"], "FAIL"])
  }
})

test("the caller's own id is used once, and counted", async () => {
  const named = { ...ask, request_id: "vid_1" }
  expect((await client.submit(undefined, named)).body).toMatchObject({ request_id: "vid_1" })
  expect(await client.submit(undefined, named)).toMatchObject({ status: 400, body: { error: { code: "1214" } } })
  expect(stand.vendor.memory.submits.get("vid_1")).toBe(1)
})

test.each([
  [400, { size: "1280*720" }],
  [400, { duration: 7 }],
  [400, { duration: "5" }],
  [400, { fps: 24 }],
  [400, { quality: "best" }],
  [400, { prompt: "x".repeat(513) }],
  [404, { model: "sora-2" }],
])("%d for what the vendor does not take: %j", async (status, wrong) => {
  expect(await client.submit(undefined, { ...ask, ...wrong })).toMatchObject({
    status,
    body: { error: { code: expect.any(String), message: expect.any(String) } },
  })
})
