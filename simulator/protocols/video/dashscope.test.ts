import { expect, test } from "bun:test"
import { standWith } from "../../testing/stand.ts"
import { clientOf } from "../../testing/video-client.ts"
import { at, ended, lasting, videoVendors } from "../../testing/video-vendors.ts"

const stand = standWith("dashscope")
const client = clientOf(stand, videoVendors, "dashscope")
const path = "/api/v1/services/aigc/video-generation/video-synthesis"
const ask = { model: "wan2.6-t2v", input: { prompt: "A kitten" }, parameters: { size: "1280*720", duration: 5 } }
const framed = {
  model: "wan2.7-i2v",
  input: { media: [{ type: "first_frame", url: "https://x/a.png" }] },
  parameters: {},
}

test("a task is told as the vendor's pages show it", async () => {
  const id = await client.begin(ended({ seconds: 5.04 }), ask)
  expect((await client.look(id)).body).toMatchObject({
    request_id: expect.any(String),
    output: {
      task_id: id,
      task_status: "SUCCEEDED",
      submit_time: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$/),
      end_time: expect.any(String),
      orig_prompt: "A kitten",
      video_url: expect.stringContaining("/cdn/"),
    },
    usage: { duration: 5.04, output_video_duration: 5, video_count: 1, SR: 720, size: "1280*720" },
  })
})

test("the oldest models tell the length elsewhere, and none does if told so", async () => {
  const old = { ...ask, model: "wan2.2-t2v-plus" }
  expect((await client.outcome(ended(), old)).body.usage).toEqual({
    video_count: 1,
    video_ratio: "standard",
    video_duration: 5,
  })
  expect((await client.outcome(ended({ reports: false }), ask)).body.usage).toEqual({
    video_count: 1,
    SR: 720,
    size: "1280*720",
  })
})

test("a submit has to say that it will not wait", async () => {
  const refused = await client.send("POST", path, ask, { "x-dashscope-async": "" })
  expect(refused).toMatchObject({
    status: 403,
    body: { code: "AccessDenied", message: "current user api does not support synchronous calls." },
  })
  expect(stand.vendor.memory.videos.size).toBe(0)
})

test.each([
  ["moderated", { output: { task_status: "FAILED", code: "DataInspectionFailed" } }],
  ["failure", { output: { task_status: "FAILED", code: "InternalError.Algo" } }],
  ["cancelled", { output: { task_status: "CANCELED" } }],
  ["expired", { output: { task_status: "UNKNOWN" } }],
] as const)("it ends %s", async (outcome, body) => {
  expect(await client.outcome(ended({ outcome }), ask)).toMatchObject({ status: 200, body })
})

test("a task can be cancelled while it is pending", async () => {
  const cancel = (id: string) => client.send("POST", `/api/v1/tasks/${id}/cancel`)
  const waiting = await client.begin(lasting.queued)
  expect((await cancel(waiting)).status).toBe(200)
  expect(at((await client.look(waiting)).body, "output.task_status")).toBe("CANCELED")
  expect(await cancel(await client.begin(lasting.running))).toMatchObject({
    status: 400,
    body: { code: "UnsupportedOperation" },
  })
})

test("each model takes its own kind of picture and size, at its own path", async () => {
  const image = "data:image/png;base64,aGVsbG8="
  const old = { model: "wan2.6-i2v", input: { img_url: image }, parameters: { resolution: "1080P", duration: 15 } }
  expect((await client.outcome(ended(), old)).body).toMatchObject({ usage: { SR: 1080, duration: 15 } })
  expect((await client.submit(undefined, framed)).status).toBe(200)
  const frames = { first_frame_url: image, last_frame_url: image }
  const between = { model: "wan2.2-kf2v-flash", input: frames, parameters: { duration: 5 } }
  expect((await client.submit(undefined, between)).status).toBe(400)
  expect((await client.submit(undefined, between, "/api/v1/services/aigc/image2video/video-synthesis")).status).toBe(
    200,
  )
})

test.each([
  [{ parameters: { size: "1280x720" } }],
  [{ parameters: { duration: "5" } }],
  [{ parameters: { duration: 16 } }],
  [{ model: "wan2.5-t2v-preview", parameters: { duration: 7 } }],
  [{ model: "wan2.7-t2v", parameters: { resolution: "720p" } }],
  [{ model: "wan2.7-t2v", parameters: { size: "1280*720" } }],
  [{ input: {} }],
  [{ model: "wan2.6-i2v", input: { prompt: "x" }, parameters: {} }],
  [{ ...framed, input: { img_url: "https://x/a.png" } }],
])("what the vendor does not take: %j", async (wrong) => {
  expect(await client.submit(undefined, { ...ask, ...wrong })).toMatchObject({
    status: 400,
    body: { code: "InvalidParameter", request_id: expect.any(String) },
  })
})

test("image tasks are asked for at the same address", async () => {
  stand.vendor.behave({ kind: "image_job", waitPolls: 0 })
  const picture = { model: "wan2.5-t2i", input: { prompt: "a fox" }, parameters: { n: 1 } }
  const id = String(
    at(
      (await client.submit(undefined, picture, "/api/v1/services/aigc/text2image/image-synthesis")).body,
      "output.task_id",
    ),
  )
  expect((await client.look(id)).body).toMatchObject({ output: { task_status: "SUCCEEDED", results: [{}] } })
})
