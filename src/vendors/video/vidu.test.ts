import { describe, expect, test } from "bun:test"
import type { VideoAsk } from "../../core/video-vendor.ts"
import { replay, replyOf } from "../fixtures/recording.ts"
import { findVendor } from "../presets.ts"
import { oddReplies } from "./fixtures/odd-replies.ts"
import { calls, recording } from "./fixtures/vidu.ts"
import { vidu } from "./vidu.ts"

const context = { baseUrl: "https://api.vidu.com", upstreamModel: "viduq3-pro", settings: {}, jobId: "vid_01HX" }
const plain: VideoAsk = { prompt: "A fox in the snow", size: null, duration: null, image: null, extra: {} }
const picture = { url: "https://pictures.test/fox.png" }
const ref = { task: "857123" }
const url = "https://videos.test/c1.mp4"
const withUrl = { task: "857123", url, creation: "c1" }

function submit(upstreamModel: string, ask: Partial<VideoAsk> = {}) {
  return vidu.submit({ ...plain, ...ask }, { ...context, upstreamModel })
}

const imageOf = (from: "text" | "a picture") => (from === "text" ? null : picture)
const readSubmit = (name: string) => vidu.readSubmit(replay(recording, name), context)

describe("requests", () => {
  test("text-to-video", () => {
    const asked = submit("viduq3-pro", { size: { width: 1280, height: 720 }, extra: { audio: false } })
    expect(asked).toEqual({ seconds: 5, call: calls.fromText })
  })

  test("image-to-video, by address and by data: the picture decides on the ratio", () => {
    const byUrl = submit("viduq2-pro", { image: picture, duration: 10, size: { width: 1080, height: 1920 } })
    expect(byUrl).toEqual({ seconds: 10, call: calls.fromImage })
    const byData = submit("viduq1", { image: { mediaType: "image/png", base64: "iVBORw0KGgo=" } })
    expect(byData).toEqual({ seconds: 5, call: calls.fromData })
  })

  test("the key goes by the vendor's own scheme", () => {
    expect(findVendor("vidu")?.auth).toBe("authorization-token")
  })

  test("the caller's fields go along, but for an address to send results to and the gateway's own", () => {
    const extra = {
      seed: 7,
      bgm: true,
      callback_url: "https://elsewhere.test",
      payload: "mine",
      model: "viduq1",
      duration: 60,
      images: ["https://pictures.test/other.png"],
      n: 3,
    }
    expect(submit("viduq2", { extra, image: picture }).call.body).toStrictEqual({
      seed: 7,
      bgm: true,
      payload: "vid_01HX",
      model: "viduq2",
      prompt: "A fox in the snow",
      duration: 5,
      images: [picture.url],
    })
  })

  test.each([
    ["viduq3-turbo", "text", 960, 540, { resolution: "540p", aspect_ratio: "16:9" }],
    ["viduq2", "text", 720, 720, { resolution: "720p", aspect_ratio: "1:1" }],
    ["viduq1", "text", 1080, 1440, { resolution: "1080p", aspect_ratio: "3:4" }],
    ["viduq2-turbo", "a picture", 1000, 720, { resolution: "720p" }],
    ["viduq9", "text", 1280, 720, { resolution: "720p", aspect_ratio: "16:9" }],
  ] as const)("%s from %s is told of %ix%i in its own terms", (model, from, width, height, expected) => {
    const { resolution, aspect_ratio } =
      submit(model, { image: imageOf(from), size: { width, height } }).call.body ?? {}
    expect<object>({ resolution, aspect_ratio }).toEqual(expected)
  })

  test.each([
    ["viduq1", "text", 1280, 720, "whose short side is 1080 (1080p)"],
    ["viduq3-pro", "text", 3840, 2160, "540 (540p), 720 (720p), 1080 (1080p)"],
    ["viduq3-pro", "text", 1680, 720, "the aspect ratios 16:9, 9:16, 1:1, 4:3, 3:4"],
    ["viduq1", "a picture", 1280, 720, "sizes whose short side is 1080 (1080p)"],
  ] as const)("%s from %s refuses %ix%i and says what it takes", (model, from, width, height, takes) => {
    expect(() => submit(model, { image: imageOf(from), size: { width, height } })).toThrow(takes)
  })

  test("lengths", () => {
    expect(submit("viduq3-pro", { duration: 16 }).seconds).toBe(16)
    expect(() => submit("viduq3-pro", { duration: 17 })).toThrow("it takes 1 to 16 seconds")
    expect(() => submit("viduq2", { duration: 11 })).toThrow("it takes 1 to 10 seconds")
    expect(() => submit("viduq1", { duration: 4 })).toThrow("it takes 5 seconds")
    expect(submit("viduq9", { duration: 30 }).seconds).toBe(30)
  })
})

describe("replies to a submit", () => {
  test("accepted, and asked after at its own address", () => {
    for (const name of ["submitted", "submitted, the id a number"]) {
      expect(readSubmit(name)).toEqual({ kind: "accepted", ref, vendorId: "857123" })
    }
    expect(vidu.poll(ref, context)).toStrictEqual(calls.poll)
    expect(() => vidu.poll({}, context)).toThrow("internal error")
  })

  test.each([
    ["field invalid", 400, "duration is out of range (FieldInvalid)"],
    ["field invalid in a 200", 400, "duration is out of range (FieldInvalid)"],
    ["no credits", 402, "credits are not enough (CreditInsufficient)"],
    ["wrong key", 401, "Unauthorized"],
    ["forbidden", 403, "not for this account"],
    ["too many", 429, "slow down (TooManyRequests)"],
    ["trouble of its own", 500, "try later (InternalServiceFailure)"],
  ])("%s: refused", (name, status, message) => {
    expect(readSubmit(name)).toEqual({ kind: "refused", status, message })
  })

  test("no id in a 200, or another server's error: nobody knows", () => {
    expect(readSubmit("submitted without an id").kind).toBe("unreadable")
    for (const status of [500, 502, 503, 504]) {
      const reply = { status, headers: {}, json: null, text: "<html>bad gateway</html>" }
      expect(vidu.readSubmit(reply, context).kind).toBe("unreadable")
    }
  })
})

describe("replies to a poll", () => {
  // biome-ignore format: a table
  test.each([
    ["created", { kind: "queued" }],
    ["queueing", { kind: "queued" }],
    ["processing", { kind: "running" }],
    ["a word of tomorrow", { kind: "running", oddWord: "polishing" }],
    ["success", { kind: "continue", ref: withUrl }],
    ["success with nothing", { kind: "failed", reason: "the vendor finished the job without a video" }],
    ["failed by moderation", { kind: "failed", reason: "refused by the vendor's moderation (TaskPromptPolicyViolation)" }],
    ["failed by the video's moderation", { kind: "failed", reason: "refused by the vendor's moderation (CreationPolicyViolation)" }],
    ["failed by the audit", { kind: "failed", reason: "refused by the vendor's moderation (AuditSubmitIllegal)" }],
    ["failed by the picture", { kind: "failed", reason: "the job failed (ImageDownloadFailure)" }],
    ["failed without a reason", { kind: "failed", reason: "the vendor gave no reason" }],
    ["unknown", { kind: "missing", why: "HTTP 404: no such task" }],
    ["poll with a wrong key", { kind: "unreadable", why: "HTTP 401: no" }],
  ] as const)("%s", (name, expected) => {
    expect<object>(vidu.readPoll(replay(recording, name), ref, context)).toStrictEqual(expected)
  })

  test("the length takes a call more, at the list of tasks", () => {
    expect(vidu.poll(withUrl, context)).toStrictEqual(calls.list)
  })

  test.each([
    ["listed", 5.04],
    ["listed among others", 5.04],
    ["listed without the task", null],
    ["listed without a length", null],
    ["listed empty", null],
    ["list not found", null],
    ["list rate limited", null],
  ])("%s: the video is there, its length %p", (name, seconds) => {
    const progress = vidu.readPoll(replay(recording, name), withUrl, context)
    expect(progress).toEqual({ kind: "succeeded", url, seconds })
  })
})

test("replies of no known shape are neither thrown over nor taken for jobs or videos", () => {
  const own = [
    { task_id: {} },
    { task_id: 1.5 },
    { state: "success", creations: [null, { url }] },
    { state: "success", creations: [{ url: "ftp://x/y" }] },
    { state: ["success"] },
    { tasks: [null, { id: "857123", creations: [{ id: "c1", video: { duration: -5 } }] }] },
  ]
  for (const reply of [...oddReplies, ...own.map((json) => replyOf(json))]) {
    expect(vidu.readSubmit(reply, context).kind).not.toBe("accepted")
    for (const known of [ref, null, "x", {}]) {
      const { kind } = vidu.readPoll(reply, known, context)
      expect(["succeeded", "continue"]).not.toContain(kind)
      if (reply.status >= 300) expect(kind).toBe(reply.status === 404 ? "missing" : "unreadable")
    }
    expect(vidu.readPoll(reply, withUrl, context)).toEqual({ kind: "succeeded", url, seconds: null })
  }
})
