import { expect, test } from "bun:test"
import { standWith } from "../../testing/stand.ts"
import { clientOf } from "../../testing/video-client.ts"
import { ended, lasting, videoVendors } from "../../testing/video-vendors.ts"

const stand = standWith("volcengine-ark")
const client = clientOf(stand, videoVendors, "volcengine-ark")
const tasks = "/api/v3/contents/generations/tasks"
const text = { type: "text", text: "drone over an autumn valley" }
const ask = { model: "dreamina-seedance-2-0-260128", content: [text], resolution: "720p", ratio: "16:9", duration: 5 }

test("a task is told as the vendor's pages show it", async () => {
  const id = await client.begin(ended(), { ...ask, generate_audio: false })
  expect(id).toMatch(/^cgt-\d{14}-[a-z\d]{5}$/)
  expect((await client.look(id)).body).toMatchObject({
    id,
    model: ask.model,
    status: "succeeded",
    content: { video_url: expect.stringContaining("/cdn/") },
    usage: { completion_tokens: 108_000, total_tokens: 108_000 },
    resolution: "720p",
    ratio: "16:9",
    duration: 5,
    framespersecond: 24,
    generate_audio: false,
  })
})

test("the length is told in frames where it was asked so, or not at all", async () => {
  const { duration: _, ...timeless } = ask
  const inFrames = await client.outcome(ended(), { ...timeless, frames: 60 })
  expect(inFrames.body).toMatchObject({ frames: 60, framespersecond: 24 })
  expect(inFrames.body).not.toHaveProperty("duration")
  expect((await client.outcome(ended({ reports: false }), ask)).body).not.toHaveProperty("duration")
})

test("the oldest models obey what the prompt says of the length", async () => {
  const typed = { ...ask, model: "seedance-1-0-pro-250528", content: [{ type: "text", text: "a valley --dur 12" }] }
  expect((await client.outcome(ended(), typed)).body).toMatchObject({ duration: 12 })
  expect((await client.outcome(ended(), { ...typed, model: ask.model })).body).toMatchObject({ duration: 5 })
})

test.each([
  ["moderated", { status: "failed", error: { code: "OutputVideoSensitiveContentDetected" } }],
  ["failure", { status: "failed", error: { code: "InternalServiceError" } }],
  ["expired", { status: "expired" }],
  ["cancelled", { status: "cancelled" }],
  ["no_url", { status: "succeeded", content: null }],
] as const)("it ends %s", async (outcome, body) => {
  expect(await client.outcome(ended({ outcome }), ask)).toMatchObject({ status: 200, body })
})

test("a task is cancelled while it waits, left alone while it runs, deleted when it is over", async () => {
  const waiting = await client.begin(lasting.queued)
  expect((await client.send("DELETE", `${tasks}/${waiting}`)).status).toBe(200)
  expect((await client.look(waiting)).body.status).toBe("cancelled")
  const running = await client.begin(lasting.running)
  expect((await client.send("DELETE", `${tasks}/${running}`)).status).toBe(409)
  expect((await client.look(running)).body.status).toBe("running")
  const over = await client.begin(ended())
  expect((await client.send("DELETE", `${tasks}/${over}`)).status).toBe(200)
  expect((await client.look(over)).status).toBe(404)
})

test("many tasks can be asked for at once", async () => {
  const [first, second] = [await client.begin(ended()), await client.begin(lasting.queued)]
  const { body } = await client.get(`${tasks}?filter.task_ids=${first}&filter.task_ids=${second}`)
  expect(body).toMatchObject({
    total: 2,
    items: [
      { id: first, status: "succeeded" },
      { id: second, status: "queued" },
    ],
  })
  expect((await client.get(`${tasks}?filter.status=queued`)).body).toMatchObject({ total: 1, items: [{ id: second }] })
})

const picture = (url: string, role?: string): object => ({ type: "image_url", image_url: { url }, role })

test.each([
  [{ duration: "5" }, "duration"],
  [{ duration: 3 }, "duration"],
  [{ duration: 5.5 }, "duration"],
  [{ resolution: "1080P" }, "resolution"],
  [{ resolution: "1080p", model: "doubao-seedance-2-0-fast-260128" }, "resolution"],
  [{ ratio: "2:1" }, "ratio"],
  [{ content: [text, picture("ftp://x/a.png")] }, "content[1].image_url"],
  [{ content: [text, picture("https://x/a.png", "middle")] }, "content[1].role"],
])("what the vendor does not take: %j", async (wrong, param) => {
  const refused = await client.submit(undefined, { ...ask, ...wrong })
  expect(refused).toMatchObject({
    status: 400,
    body: { error: { code: "InvalidParameter", param, type: "BadRequest" } },
  })
})

test("missing things and unknown models have codes of their own", async () => {
  const { content: _, ...empty } = ask
  expect((await client.submit(undefined, empty)).body).toMatchObject({ error: { code: "MissingParameter" } })
  expect(await client.submit(undefined, { ...ask, model: "gpt-5" })).toMatchObject({
    status: 404,
    body: { error: { code: "InvalidEndpointOrModel.NotFound" } },
  })
  const framed = { ...ask, content: [text, picture("data:image/png;base64,aGVsbG8=", "first_frame")], duration: -1 }
  expect((await client.submit(undefined, framed)).status).toBe(200)
})
