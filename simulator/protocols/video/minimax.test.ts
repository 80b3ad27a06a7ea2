import { expect, test } from "bun:test"
import { standWith } from "../../testing/stand.ts"
import { clientOf } from "../../testing/video-client.ts"
import { at, ended, lasting, videoVendors } from "../../testing/video-vendors.ts"

const stand = standWith("minimax")
const client = clientOf(stand, videoVendors, "minimax")
const ask = { model: "MiniMax-Hailuo-2.3", prompt: "A man picks up a book [Pan left]", duration: 6, resolution: "768P" }
const ok = { status_code: 0, status_msg: "success" }

test("a task has a file, and the file an address that is new each time", async () => {
  const id = await client.begin(ended({ seconds: 5.875, resultLivesMs: 60_000 }), ask)
  expect(id).toMatch(/^\d{15}$/)
  const done = (await client.look(id)).body
  expect(done).toEqual({
    task_id: id,
    status: "Success",
    file_id: expect.stringMatching(/^\d{15}$/),
    video_width: 1366,
    video_height: 768,
    base_resp: ok,
  })
  const retrieve = () => client.get(`/v1/files/retrieve?file_id=${done.file_id}`)
  const { body } = await retrieve()
  const url = String(at(body, "file.download_url"))
  expect(at(body, "file.file_id")).toBe(Number(done.file_id))
  expect(body).toMatchObject({ file: { filename: "output_aigc.mp4", purpose: "video_generation" }, base_resp: ok })
  expect((await fetch(url)).headers.get("content-type")).toBe("video/mp4")
  await Bun.sleep(2)
  expect(at((await retrieve()).body, "file.download_url")).not.toBe(url)
  expect((await client.get("/v1/files/retrieve?file_id=1")).body).toMatchObject({ base_resp: { status_code: 2013 } })
})

test("a task that waits is first prepared, then queued", async () => {
  const id = await client.begin(lasting.queued)
  expect([(await client.look(id)).body.status, (await client.look(id)).body.status]).toEqual(["Preparing", "Queueing"])
})

test.each([
  ["moderated", { status: "Fail", base_resp: { status_code: 1027, status_msg: "output new_sensitive" } }],
  ["failure", { status: "Fail", base_resp: { status_code: 1000 } }],
] as const)("it ends %s, with status 200", async (outcome, body) => {
  expect(await client.outcome(ended({ outcome }), ask)).toMatchObject({ status: 200, body })
})

test("a success without an address has a file without one", async () => {
  const { body } = await client.outcome(ended({ outcome: "no_url" }), ask)
  const file = await client.get(`/v1/files/retrieve?file_id=${body.file_id}`)
  expect(file.body).toMatchObject({ file: { download_url: "" } })
})

test.each([
  [{ resolution: "1080P", duration: 10 }],
  [{ duration: "6" }],
  [{ duration: 5 }],
  [{ resolution: "720P" }],
  [{ resolution: "512P" }],
  [{ prompt: "x".repeat(2001) }],
  [{ model: "MiniMax-Hailuo-2.3-Fast" }],
  [{ model: "T2V-01", resolution: "768P" }],
  [{ model: "sora-2" }],
  [{ first_frame_image: "aGVsbG8=" }],
])("what the vendor does not take, told with status 200: %j", async (wrong) => {
  expect(await client.submit(undefined, { ...ask, ...wrong })).toMatchObject({
    status: 200,
    body: { task_id: "", base_resp: { status_code: 2013 } },
  })
  expect(stand.vendor.memory.videos.size).toBe(0)
})

test("a missing key and a wrong one have different codes", async () => {
  const url = `${stand.home}/v1/query/video_generation?task_id=1`
  const missing = await (await fetch(url)).json()
  expect(missing).toMatchObject({ base_resp: { status_code: 1004 } })
  const wrong = await (await fetch(url, { headers: { authorization: "Token x" } })).json()
  expect(wrong).toMatchObject({ base_resp: { status_code: 2049 } })
})

const second = clientOf(stand, videoVendors, "minimax-2")
const text = { type: "text", text: "A man picks up a book" }
const secondAsk = { model: "MiniMax-H3", content: [text], resolution: "2K", ratio: "16:9", duration: 5 }

test("the second version tells film and length with the task", async () => {
  const { body } = await second.outcome(ended({ seconds: 5.04 }), secondAsk)
  expect(body).toMatchObject({
    task: {
      model: "MiniMax-H3",
      status: "succeeded",
      content: { url: expect.stringContaining("/cdn/") },
      resolution: "2K",
      duration: 5,
      ratio: "16:9",
      usage: { total_seconds: 5.04, input_seconds: 0, output_seconds: 5.04 },
    },
  })
  const silent = (await second.outcome(ended({ reports: false }), secondAsk)).body.task
  expect(silent).not.toHaveProperty("usage")
  expect(silent).not.toHaveProperty("duration")
})

test.each([
  ["moderated", { task: { status: "failed", error: { code: "1027" } } }],
  ["expired", { task: { status: "expired" } }],
  ["cancelled", { task: { status: "cancelled" } }],
] as const)("the second version ends %s", async (outcome, body) => {
  expect(await second.outcome(ended({ outcome }), secondAsk)).toMatchObject({ status: 200, body })
})

test.each([
  [{ content: [text, text] }],
  [{ content: [] }],
  [{ ratio: undefined }],
  [{ ratio: "adaptive" }],
  [{ duration: 4 }],
  [{ resolution: "1080P" }],
  [{ model: "MiniMax-Hailuo-2.3" }],
])("what the second version does not take has a status of its own: %j", async (wrong) => {
  expect(await second.submit(undefined, { ...secondAsk, ...wrong })).toMatchObject({
    status: 400,
    body: { type: "error", error: { type: "invalid_request_error", http_code: "400" }, request_id: expect.any(String) },
  })
})
