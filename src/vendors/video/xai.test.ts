import { describe, expect, test } from "bun:test"
import type { VideoAsk } from "../../core/video-vendor.ts"
import { replay, replyOf } from "../fixtures/recording.ts"
import { oddReplies } from "./fixtures/odd-replies.ts"
import { calls, recording } from "./fixtures/xai.ts"
import { xai } from "./xai.ts"

const context = {
  baseUrl: "https://api.x.ai/v1",
  upstreamModel: "grok-imagine-video",
  settings: {},
  jobId: "vid_01HX",
}
const plain: VideoAsk = { prompt: "A cat playing with a ball", size: null, duration: null, image: null, extra: {} }
const ref = { id: "9f2b8b6a-1b8c-4a0c-9a1a-2d3c4e5f6a7b" }

function submit(ask: Partial<VideoAsk> = {}, upstreamModel = context.upstreamModel) {
  return xai.submit({ ...plain, ...ask }, { ...context, upstreamModel })
}

const readSubmit = (name: string) => xai.readSubmit(replay(recording, name), context)
const readPoll = (name: string) => xai.readPoll(replay(recording, name), ref, context)

describe("requests", () => {
  test("text-to-video", () => {
    const submitted = submit({ duration: 6, size: { width: 1280, height: 720 } })
    expect(submitted).toStrictEqual({ seconds: 6, call: calls.fromText })
  })

  test("image-to-video, by address and by data, at the usual length", () => {
    const byUrl = submit({ image: { url: "https://pictures.test/cat.png" } })
    expect(byUrl).toStrictEqual({ seconds: 8, call: calls.fromImage })
    const byData = submit({ image: { mediaType: "image/png", base64: "iVBORw0KGgo=" } })
    expect(byData).toStrictEqual({ seconds: 8, call: calls.fromData })
  })

  test("the caller's fields go along, but for the gateway's own and an address to upload to", () => {
    const extra = {
      user: "u1",
      reference_images: [{ url: "https://pictures.test/1.png" }],
      output: { upload_url: "https://elsewhere.test" },
      model: "other",
      duration: 60,
      resolution: "1080p",
      n: 4,
    }
    const body = submit({ extra, size: { width: 480, height: 480 } }).call.body
    expect(body).toStrictEqual({
      user: "u1",
      reference_images: [{ url: "https://pictures.test/1.png" }],
      model: "grok-imagine-video",
      prompt: "A cat playing with a ball",
      duration: 8,
      aspect_ratio: "1:1",
      resolution: "480p",
    })
  })

  test.each([
    ["grok-imagine-video", 848, 480, "16:9", "480p"],
    ["grok-imagine-video", 720, 1280, "9:16", "720p"],
    ["grok-imagine-video", 960, 720, "4:3", "720p"],
    ["grok-imagine-video-1.5", 1920, 1080, "16:9", "1080p"],
    ["grok-imagine-video-1.5", 1080, 1620, "2:3", "1080p"],
    ["grok-imagine-video-9", 1920, 1080, "16:9", "1080p"],
  ])("%s is told of %ix%i as %s at %s", (model, width, height, aspect_ratio, resolution) => {
    expect(submit({ size: { width, height } }, model).call.body).toMatchObject({ aspect_ratio, resolution })
  })

  test.each([
    ["grok-imagine-video", 1920, 1080, "whose short side is 480 (480p), 720 (720p)"],
    ["grok-imagine-video-1.5", 3840, 2160, "480 (480p), 720 (720p), 1080 (1080p)"],
    ["grok-imagine-video-1.5", 1680, 720, "the aspect ratios 16:9, 9:16, 1:1, 4:3, 3:4, 3:2, 2:3"],
  ])("%s refuses %ix%i and says what it takes", (model, width, height, takes) => {
    expect(() => submit({ size: { width, height } }, model)).toThrow(takes)
  })

  test("lengths from 1 to 15 seconds; of a model that is not known, the vendor is the judge", () => {
    expect(submit({ duration: 15 }).seconds).toBe(15)
    expect(() => submit({ duration: 16 })).toThrow("it takes 1 to 15 seconds")
    expect(submit({ duration: 30 }, "grok-imagine-video-9").seconds).toBe(30)
  })
})

describe("replies to a submit", () => {
  test("accepted, and asked after at its own address", () => {
    expect(readSubmit("submitted")).toEqual({ kind: "accepted", ref, vendorId: ref.id })
    expect(xai.poll(ref, context)).toStrictEqual(calls.poll)
    expect(() => xai.poll({}, context)).toThrow("internal error")
  })

  test.each([
    ["invalid argument", 400, "duration must be between 1 and 15"],
    ["wrong key", 401, "the vendor does not accept the upstream's credential"],
    ["not allowed", 403, "no access to this model"],
    ["missing field", 422, "missing field `prompt`"],
    ["rate limited", 429, "Too many requests"],
    ["trouble of its own", 503, "overloaded"],
  ])("%s: refused", (name, status, message) => {
    expect(readSubmit(name)).toEqual({ kind: "refused", status, message })
  })

  test("no id in a 200, or another server's error: nobody knows", () => {
    expect(readSubmit("submitted without an id").kind).toBe("unreadable")
    for (const status of [500, 502, 503, 504]) {
      const reply = { status, headers: {}, json: null, text: "<html>bad gateway</html>" }
      expect(xai.readSubmit(reply, context).kind).toBe("unreadable")
    }
  })
})

describe("replies to a poll", () => {
  const url = "https://vidgen.x.ai/xai-vidgen-bucket/xai-video-f532.mp4"
  const moderated = { kind: "failed", reason: "the video was refused by the vendor's moderation" } as const
  // biome-ignore format: a table
  test.each([
    ["pending", { kind: "running" }],
    ["pending, without a body", { kind: "running" }],
    ["pending in a 200", { kind: "running" }],
    ["a word of tomorrow", { kind: "running", oddWord: "upscaling" }],
    ["done", { kind: "succeeded", url, seconds: 6 }],
    ["done, without a word for it", { kind: "succeeded", url, seconds: 6 }],
    ["done, marked by moderation", moderated],
    ["marked by moderation, without a word for it", moderated],
    ["done without an address", moderated],
    ["failed", { kind: "failed", reason: "the video could not be made" }],
    ["failed without a reason", { kind: "failed", reason: "the vendor gave no reason" }],
    ["expired", { kind: "failed", reason: "the job expired at the vendor" }],
    ["unknown", { kind: "missing", why: "HTTP 404: no such request" }],
    ["poll rate limited", { kind: "unreadable", why: "HTTP 429: Too many requests" }],
  ] as const)("%s", (name, expected) => {
    expect<object>(readPoll(name)).toStrictEqual(expected)
  })

  test("words are read whatever their case", () => {
    expect(xai.readPoll(replyOf({ status: " FAILED " }), ref, context).kind).toBe("failed")
  })
})

test("replies of no known shape are neither thrown over nor taken for jobs or videos", () => {
  const own = [
    { video: { url: 1 } },
    { video: [] },
    { status: "done" },
    { status: "done", video: { url: "ftp://x/y" } },
  ]
  for (const reply of [...oddReplies, ...own.map((json) => replyOf(json))]) {
    expect(xai.readSubmit(reply, context).kind).not.toBe("accepted")
    const { kind } = xai.readPoll(reply, null, context)
    expect(kind).not.toBe("succeeded")
    if (reply.status >= 300) expect(kind).toBe(reply.status === 404 ? "missing" : "unreadable")
  }
})
