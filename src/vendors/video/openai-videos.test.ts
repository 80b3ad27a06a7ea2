import { describe, expect, test } from "bun:test"
import type { VideoAsk } from "../../core/video-vendor.ts"
import { replay } from "../fixtures/recording.ts"
import { oddReplies } from "./fixtures/odd-replies.ts"
import { base, calls, id, recording } from "./fixtures/openai-videos.ts"
import { openaiVideos } from "./openai-videos.ts"

const context = { baseUrl: base, upstreamModel: "sora-2", settings: {}, jobId: "job_1" }
const plain: VideoAsk = { prompt: "a fox in snow", size: null, duration: null, image: null, extra: {} }

function submit(ask: Partial<VideoAsk>, upstreamModel = "sora-2") {
  return openaiVideos.submit({ ...plain, ...ask }, { ...context, upstreamModel })
}

function readSubmit(name: string) {
  return openaiVideos.readSubmit(replay(recording, name), context)
}

describe("requests", () => {
  test("from text: the seconds are a text", () => {
    const ask = { size: { width: 1280, height: 720 }, duration: 8, extra: { seed: 7 } }
    expect(submit(ask)).toStrictEqual({ seconds: 8, call: calls["text to video"] })
  })

  test("from a picture by its address", () => {
    const image = { url: "https://pictures.test/fox.png" }
    expect(submit({ image })).toStrictEqual({ seconds: 4, call: calls["picture by address"] })
  })

  test("from a picture as data", () => {
    const image = { mediaType: "image/png", base64: "iVBORw0KGgo=" }
    expect(submit({ image })).toStrictEqual({ seconds: 4, call: calls["picture as data"] })
  })

  test("sizes and lengths that the protocol's own models do not make are refused; of others the server is the judge", () => {
    const large = { size: { width: 1792, height: 1024 } }
    expect(submit(large, "sora-2-pro").call.body).toMatchObject({ size: "1792x1024" })
    expect(() => submit(large)).toThrow("it takes 720x1280, 1280x720")
    expect(() => submit({ duration: 5 })).toThrow("it takes 4, 8, 12 seconds")
    expect(submit({ duration: 5, size: { width: 640, height: 360 } }, "some-video").call.body).toStrictEqual({
      model: "some-video",
      prompt: "a fox in snow",
      seconds: "5",
      size: "640x360",
    })
  })

  test("the caller's fields go along, but none that sends the video elsewhere or takes the place of ours", () => {
    const extra = {
      metadata: { a: 1 },
      model: "x",
      prompt: "a wolf",
      seconds: "12",
      n: 4,
      webhook: "https://strangers.test",
      webhook_url: "https://strangers.test",
      callback_url: "https://strangers.test",
    }
    expect(submit({ extra }).call.body).toStrictEqual({
      metadata: { a: 1 },
      model: "sora-2",
      prompt: "a fox in snow",
      seconds: "4",
    })
  })
})

describe("replies to a submit", () => {
  test.each([
    ["queued", id],
    ["a compatible server's job", "task_1"],
  ])("%s is asked after by its id", (name, vendorId) => {
    const submitted = readSubmit(name)
    if (submitted.kind !== "accepted") throw new Error(submitted.kind)
    expect(submitted.vendorId).toBe(vendorId)
    expect(openaiVideos.poll(submitted.ref, context)).toStrictEqual({
      method: "GET",
      url: `${base}/videos/${vendorId}`,
    })
  })

  test("an id cannot lead to another path", () => {
    expect(openaiVideos.poll({ id: "../files?x" }, context).url).toBe(`${base}/videos/..%2Ffiles%3Fx`)
  })

  // biome-ignore format: a table
  test.each([
    ["wrong key", { kind: "refused", status: 401, message: "Incorrect API key provided" }],
    ["wrong size", { kind: "refused", status: 400, message: "Invalid size" }],
    ["quota used up", { kind: "refused", status: 429, message: "You exceeded your quota" }],
    ["error in a 200", { kind: "refused", status: 502, message: "No channel for this model" }],
    ["its own error", { kind: "refused", status: 503, message: "Overloaded" }],
    ["another's error", { kind: "unreadable", why: "HTTP 502: Bad gateway" }],
    ["a time-out", { kind: "unreadable", why: "HTTP 504: Timed out" }],
    ["a proxy's error", { kind: "unreadable", why: "HTTP 500" }],
  ] as const)("%s", (name, expected) => {
    expect<object>(readSubmit(name)).toEqual(expected)
  })

  test("an id in an error makes no job of it", () => {
    const named = replay(recording, "queued")
    expect(openaiVideos.readSubmit({ ...named, status: 422 }, context).kind).toBe("refused")
    expect(openaiVideos.readSubmit({ ...named, status: 502 }, context).kind).toBe("unreadable")
  })

  test("a success that names no job may still be one: nobody knows", () => {
    expect(readSubmit("no id").kind).toBe("unreadable")
  })
})

describe("replies to a poll", () => {
  const content = { kind: "succeeded", url: `${base}/videos/${id}/content`, needsCredential: true } as const
  const elsewhere = { kind: "succeeded", url: "https://cdn.test/x.mp4", seconds: 4 } as const

  // biome-ignore format: a table
  test.each([
    ["queued", { kind: "queued" }],
    ["in progress", { kind: "running" }],
    ["submitted", { kind: "queued" }],
    ["processing", { kind: "running" }],
    ["unknown", { kind: "running" }],
    ["a word of tomorrow", { kind: "running", oddWord: "paused" }],
    ["completed", { ...content, seconds: 4 }],
    ["completed in other letters", { ...content, seconds: 4 }],
    ["completed without a length", { ...content, seconds: null }],
    ["completed with an address", elsewhere],
    ["completed with an address in its metadata", elsewhere],
    ["completed with an address of the server", { ...content, url: "https://videos.test/files/x.mp4", seconds: 4 }],
    ["completed with no address", { ...content, seconds: 4 }],
    ["failed", { kind: "failed", reason: "Blocked by moderation" }],
    ["failed without a reason", { kind: "failed", reason: "the vendor gave no reason" }],
    ["not found", { kind: "missing", why: "HTTP 404: No such video" }],
    ["asked too often", { kind: "unreadable", why: "HTTP 429: Slow down" }],
  ] as const)("%s", (name, expected) => {
    expect<object>(openaiVideos.readPoll(replay(recording, name), { id }, context)).toEqual(expected)
  })

  test("a status of something that is no job is nobody's verdict", () => {
    expect(openaiVideos.readPoll(replay(recording, "someone else's status"), { id }, context).kind).toBe("unreadable")
  })

  test("what tells nothing is no verdict and no job", () => {
    for (const reply of oddReplies) {
      expect(["refused", "unreadable"]).toContain(openaiVideos.readSubmit(reply, context).kind)
      expect(["running", "missing", "unreadable"]).toContain(openaiVideos.readPoll(reply, { id }, context).kind)
    }
  })
})
