import { expect, test } from "bun:test"
import OpenAI, { toFile } from "openai"
import { failureOf, standWith } from "../../simulator/testing/stand.ts"
import { ended, key, lasting } from "../../simulator/testing/video-vendors.ts"

const stand = standWith("openai-compatible")
const ask = { model: "sora-2", prompt: "A cat on a wall", seconds: "4", size: "1280x720" } as const

function client(apiKey = key): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${stand.home}/v1`, maxRetries: 0 })
}

test("a video is created, retrieved and downloaded with the SDK's own code", async () => {
  const { videos } = client()
  stand.vendor.behave({ ...lasting.queued, words: ["in_progress"] })
  const waiting = await videos.create(ask)
  expect(waiting).toMatchObject({ object: "video", status: "queued", seconds: "4", size: "1280x720", error: null })
  expect((await videos.retrieve(waiting.id)).status).toBe("in_progress")
  stand.vendor.behave(ended({ seconds: 4.2 }))
  const { id } = await videos.create({ ...ask, input_reference: await toFile(Buffer.from("picture"), "a.png") })
  expect(await videos.retrieve(id)).toMatchObject({ status: "completed", progress: 100, seconds: "4.2" })
  const content = await videos.downloadContent(id)
  const bytes = Buffer.from(await content.arrayBuffer())
  expect(content.headers.get("content-type")).toBe("video/mp4")
  expect(bytes.readUInt32BE(bytes.indexOf("mvhd") + 20)).toBe(4200)
})

test("videos are listed and deleted", async () => {
  const { videos } = client()
  stand.vendor.behave(ended())
  const first = await videos.create(ask)
  const second = await videos.create(ask)
  const listed: string[] = []
  for await (const { id } of videos.list()) listed.push(id)
  expect(listed).toEqual([second.id, first.id])
  expect(await videos.delete(first.id)).toMatchObject({ id: first.id, deleted: true })
  expect(await failureOf(videos.retrieve(first.id))).toBeInstanceOf(OpenAI.NotFoundError)
})

test("a blocked video says why", async () => {
  stand.vendor.behave(ended({ outcome: "moderated" }))
  const { videos } = client()
  const { id } = await videos.create(ask)
  expect(await videos.retrieve(id)).toMatchObject({ status: "failed", error: { code: "moderation_blocked" } })
  expect(await failureOf(videos.downloadContent(id))).toBeInstanceOf(OpenAI.NotFoundError)
})

test("a wrong key and a wrong size are the SDK's own errors", async () => {
  const wrong = await failureOf(client().videos.create({ ...ask, size: "1792x1024" }))
  expect(wrong).toBeInstanceOf(OpenAI.BadRequestError)
  expect(wrong).toMatchObject({ param: "size" })
  stand.vendor.expectKey("another")
  expect(await failureOf(client().videos.create(ask))).toBeInstanceOf(OpenAI.AuthenticationError)
})
