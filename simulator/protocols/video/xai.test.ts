import { expect, test } from "bun:test"
import { standWith } from "../../testing/stand.ts"
import { clientOf } from "../../testing/video-client.ts"
import { ended, key, lasting, videoVendors } from "../../testing/video-vendors.ts"

const stand = standWith("xai")
const client = clientOf(stand, videoVendors, "xai")
const ask = { model: "grok-imagine-video", prompt: "A cat", duration: 6, aspect_ratio: "16:9", resolution: "720p" }

test("202 without a body, then 202 with one, then the film", async () => {
  const waiting = await client.begin(lasting.queued)
  const early = await fetch(`${stand.home}/v1/videos/${waiting}`, { headers: { authorization: `Bearer ${key}` } })
  expect([early.status, await early.text()]).toEqual([202, ""])
  expect(await client.outcome(lasting.running)).toMatchObject({ status: 202, body: { status: "pending", progress: 0 } })
  expect(await client.outcome(ended(), ask)).toMatchObject({
    status: 200,
    body: {
      status: "done",
      video: { url: expect.stringContaining("/cdn/"), duration: 6, respect_moderation: true },
      model: "grok-imagine-video",
      usage: { cost_in_usd_ticks: 3_000_000_000 },
    },
  })
  expect((await client.outcome(ended({ reports: false }))).body.video).not.toHaveProperty("duration")
})

test.each([
  ["failure", { status: "failed", error: { code: "internal_error" } }],
  ["expired", { status: "expired" }],
  ["no_url", { status: "done", video: { respect_moderation: true } }],
  ["moderated", { status: "done", video: { respect_moderation: false } }],
] as const)("it ends %s, with status 200", async (outcome, body) => {
  expect(await client.outcome(ended({ outcome }), ask)).toMatchObject({ status: 200, body })
})

test.each([
  [400, { duration: 16 }],
  [400, { duration: 0 }],
  [400, { resolution: "1080p" }],
  [400, { aspect_ratio: "21:9" }],
  [400, { image: { url: "ftp://x/a.png" } }],
  [400, { image: { url: "https://x/a.png" }, reference_images: [{ url: "https://x/b.png" }] }],
  [422, { duration: "6" }],
  [422, { prompt: undefined }],
  [422, { image: "https://x/a.png" }],
  [404, { model: "grok-4" }],
])("%d for what the vendor does not take: %j", async (status, wrong) => {
  const refused = await client.submit(undefined, { ...ask, ...wrong })
  expect(refused).toMatchObject({ status, body: { error: expect.any(String) } })
  expect("code" in refused.body).toBe(status !== 422)
})

test("the newer model is sharper", async () => {
  const sharp = { ...ask, model: "grok-imagine-video-1.5", resolution: "1080p" }
  expect((await client.submit(undefined, sharp)).status).toBe(200)
})
