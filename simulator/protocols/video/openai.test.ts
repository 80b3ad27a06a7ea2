import { expect, test } from "bun:test"
import { standWith } from "../../testing/stand.ts"
import { clientOf } from "../../testing/video-client.ts"
import { ended, key, lasting, videoVendors } from "../../testing/video-vendors.ts"

const stand = standWith("openai-compatible")
const client = clientOf(stand, videoVendors, "openai-compatible")
const ask = { model: "sora-2", prompt: "A cat", seconds: "4", size: "1280x720" }
const bearer = { authorization: `Bearer ${key}` }

test("a video is told as the vendor's pages show it", async () => {
  const submitted = (await client.submit(ended({ seconds: 4.2 }), ask)).body
  expect(submitted).toEqual({
    id: expect.stringMatching(/^video_\w+$/),
    object: "video",
    model: "sora-2",
    status: "queued",
    progress: expect.any(Number),
    created_at: expect.any(Number),
    completed_at: null,
    expires_at: null,
    seconds: "4",
    size: "1280x720",
    error: null,
    prompt: "A cat",
    remixed_from_video_id: null,
  })
  const done = (await client.look(String(submitted.id))).body
  expect(done).toMatchObject({ status: "completed", progress: 100, seconds: "4.2", completed_at: expect.any(Number) })
  expect((await client.outcome(ended({ reports: false }))).body).not.toHaveProperty("seconds")
})

test("a form does as well as JSON", async () => {
  const form = new FormData()
  for (const [name, value] of Object.entries(ask)) form.set(name, value)
  form.set("input_reference", new File([new Uint8Array(4)], "a.png", { type: "image/png" }))
  const response = await stand.post("/v1/videos", form, { headers: bearer })
  expect(await response.json()).toMatchObject({ object: "video", prompt: "A cat", seconds: "4" })
})

test("the film is behind the key, with ranges, once it is there", async () => {
  const content = (id: string, headers: Record<string, string> = bearer) =>
    fetch(`${stand.home}/v1/videos/${id}/content`, { headers })
  expect((await content(await client.begin(lasting.running))).status).toBe(404)
  for (const outcome of ["no_url", "expired", "failure"] as const) {
    expect((await content(await client.begin(ended({ outcome })))).status).toBe(404)
  }
  const id = await client.begin(ended({ resultBytes: 5000 }))
  expect((await content(id, {})).status).toBe(401)
  const whole = await content(id)
  expect([whole.status, whole.headers.get("content-type"), whole.headers.get("content-length")]).toEqual([
    200,
    "video/mp4",
    "5000",
  ])
  const part = await content(id, { ...bearer, range: "bytes=4-7" })
  expect([part.status, await part.text()]).toEqual([206, "ftyp"])
  const small = await fetch(`${stand.home}/v1/videos/${id}/content?variant=thumbnail`, { headers: bearer })
  expect(small.headers.get("content-type")).toStartWith("image/")
  expect((await content(await client.begin(ended({ resultLivesMs: 0 })))).status).toBe(404)
  const elsewhere = await content(await client.begin(ended({ file: { redirects: 1 } })))
  expect([elsewhere.url.includes("/cdn/"), elsewhere.status]).toEqual([true, 200])
})

test.each([
  ["failure", { status: "failed", error: { code: "video_generation_failed" } }],
  ["moderated", { status: "failed", error: { code: "moderation_blocked" } }],
] as const)("it ends %s", async (outcome, body) => {
  expect(await client.outcome(ended({ outcome }), ask)).toMatchObject({ status: 200, body })
})

test("only what is over can be deleted; the list has the newest first", async () => {
  const running = await client.begin(lasting.running)
  expect((await client.send("DELETE", `/v1/videos/${running}`)).status).toBe(409)
  const over = await client.begin(ended())
  expect((await client.get("/v1/videos?limit=1")).body).toMatchObject({ data: [{ id: over }], has_more: true })
  expect((await client.send("DELETE", `/v1/videos/${over}`)).body).toEqual({
    id: over,
    object: "video.deleted",
    deleted: true,
  })
  expect((await client.look(over)).status).toBe(404)
})

test.each([
  [{ seconds: 4 }, "seconds"],
  [{ seconds: "5" }, "seconds"],
  [{ size: "1920x1080" }, "size"],
  [{ size: "1792x1024" }, "size"],
  [{ prompt: undefined }, "prompt"],
])("what the vendor does not take: %j", async (wrong, param) => {
  expect(await client.submit(undefined, { ...ask, ...wrong })).toMatchObject({
    status: 400,
    body: { error: { type: "invalid_request_error", param } },
  })
})

test("other servers' models have their own lengths and sizes", async () => {
  const other = { ...ask, model: "wan-local", seconds: "7", size: "1920x1080" }
  expect((await client.submit(undefined, other)).body).toMatchObject({ seconds: "7", size: "1920x1080" })
})
