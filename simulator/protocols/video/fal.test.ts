import { expect, test } from "bun:test"
import { standWith } from "../../testing/stand.ts"
import { clientOf } from "../../testing/video-client.ts"
import { at, ended, lasting, type Plan, videoVendors } from "../../testing/video-vendors.ts"

const stand = standWith("fal")
const client = clientOf(stand, videoVendors, "fal")
const ask = { prompt: "a fox in snow", aspect_ratio: "16:9", duration: "8s" }

/** A job's own addresses: status, result, cancel. */
async function links(plan: Plan, body: object = ask, path?: string): Promise<readonly [string, string, string]> {
  const { body: told } = await client.submit(plan, body, path)
  return [String(told.status_url), String(told.response_url), String(told.cancel_url)]
}

test("the addresses drop the app's sub-path, and 202 stands for unfinished", async () => {
  const [status, result] = await links(lasting.queued)
  expect(result).toMatch(/\/fal\/fal-ai\/veo3\.1\/requests\/[\w-]{36}$/)
  expect(status).toBe(`${result}/status`)
  expect(await client.get(`${status}?logs=0`)).toMatchObject({
    status: 202,
    body: { status: "IN_QUEUE", queue_position: 1 },
  })
  expect(await client.get(result)).toMatchObject({ status: 400, body: { detail: "Request is still in progress" } })
  const [running] = await links(lasting.running)
  expect(await client.get(running)).toMatchObject({ status: 202, body: { status: "IN_PROGRESS", logs: null } })
  expect((await client.get(`${running}?logs=1`)).body).toMatchObject({ logs: [{ level: "INFO" }] })
  expect((await client.get(status.replace("veo3.1", "kling-video"))).status).toBe(404)
})

test("a film has its size, and its length only if told so", async () => {
  const [status, result] = await links(ended({ resultBytes: 5000 }))
  expect(await client.get(status)).toMatchObject({
    status: 200,
    body: { status: "COMPLETED", metrics: { inference_time: 0 } },
  })
  const { video } = (await client.get(result)).body
  expect(video).toMatchObject({ content_type: "video/mp4", file_size: 5000 })
  expect(video).not.toHaveProperty("duration")
  expect((await fetch(String(at(video, "url")))).headers.get("content-length")).toBe("5000")
  const [, told] = await links(ended({ reports: true, seconds: 7.9, shape: "list" }))
  expect((await client.get(told)).body).toMatchObject({ videos: [{ duration: 7.9 }] })
})

test.each([
  ["failure", 500, { error_type: "internal_error" }],
  ["moderated", 422, { detail: [{ type: "content_policy_violation" }] }],
  ["expired", 504, { detail: "Request timed out", error_type: "request_timeout" }],
  ["cancelled", 499, { error_type: "client_cancelled" }],
  ["no_url", 200, { video: null }],
] as const)("what ends %s is completed, and only its result tells", async (outcome, status, body) => {
  const [state, result] = await links(ended({ outcome }))
  expect(await client.get(state)).toMatchObject({ status: 200, body: { status: "COMPLETED" } })
  expect(await client.get(result)).toMatchObject({ status, body })
})

test("a job can be cancelled until it is over", async () => {
  const [, result, cancel] = await links(lasting.running)
  expect(await client.send("PUT", cancel)).toMatchObject({ status: 202, body: { status: "CANCELLATION_REQUESTED" } })
  expect((await client.get(result)).status).toBe(499)
  expect(await client.send("PUT", cancel)).toMatchObject({ status: 400, body: { status: "ALREADY_COMPLETED" } })
})

test.each([
  ["/fal-ai/veo3", { duration: "8" }, "duration"],
  ["/fal-ai/veo3", { duration: 8 }, "duration"],
  ["/fal-ai/kling-video/v2.5-turbo/pro/text-to-video", { duration: "5s" }, "duration"],
  ["/fal-ai/luma-dream-machine/ray-2", { duration: "5" }, "duration"],
  ["/fal-ai/kling-video/v2.5-turbo/pro/image-to-video", { duration: "5" }, "image_url"],
  ["/fal-ai/veo3", { prompt: undefined }, "prompt"],
])("each app has its own way to say how long, and refuses others: %s %j", async (path, wrong, field) => {
  expect(await client.submit(undefined, { ...ask, ...wrong }, path)).toMatchObject({
    status: 422,
    body: { detail: [{ loc: ["body", field], msg: expect.any(String), type: expect.any(String) }] },
  })
})

test.each([
  ["/fal-ai/kling-video/v2.5-turbo/pro/text-to-video", { duration: "10" }, 10],
  ["/fal-ai/luma-dream-machine/ray-2", { duration: "9s" }, 9],
  ["/fal-ai/wan/v2.2-a14b/text-to-video", { num_frames: 80 }, 5],
  ["/fal-ai/ltx-video", { duration: 6 }, 6],
])("%s is asked for its length its own way", async (path, length, seconds) => {
  const [, result] = await links(ended({ reports: true }), { prompt: "x", ...length }, path)
  expect((await client.get(result)).body).toMatchObject({ video: { duration: seconds } })
})

test("images still come from apps that make images, and films from any that is told to", async () => {
  stand.vendor.behave()
  const image = (await client.submit(undefined, { prompt: "x" }, "/fal-ai/flux/dev")).body
  expect(stand.vendor.memory.jobs.has(String(image.request_id))).toBe(true)
  const film = (await client.submit(ended(), { prompt: "x" }, "/some/app")).body
  expect(stand.vendor.memory.videos.has(String(film.request_id))).toBe(true)
})
