import { describe, expect, test } from "bun:test"
import type { VideoAsk } from "../../core/video-vendor.ts"
import { replay } from "../fixtures/recording.ts"
import { oddReplies } from "./fixtures/odd-replies.ts"
import { calls, recording } from "./fixtures/volcengine-ark.ts"
import { volcengineArk } from "./volcengine-ark.ts"

const base = "https://ark.ap-southeast.bytepluses.com/api/v3"
const plain: VideoAsk = { prompt: "drone over autumn valley", size: null, duration: null, image: null, extra: {} }
const context = { baseUrl: base, upstreamModel: "dreamina-seedance-2-0-260128", settings: {}, jobId: "vid_1" }
const picture = { url: "https://ex.com/a.png" }
const task = "cgt-20260606160057-6bbjd"
const video = "https://ark-content-generation.tos-ap-southeast-1.volces.com/x.mp4"

function submit(upstreamModel: string, ask: Partial<VideoAsk> = {}) {
  return volcengineArk.submit({ ...plain, ...ask }, { ...context, upstreamModel })
}

/** The prompt as it is sent. */
function textOf(upstreamModel: string, prompt: string): unknown {
  const { content } = submit(upstreamModel, { prompt }).call.body as { readonly content: readonly { text: string }[] }
  return content[0]?.text
}

describe("requests", () => {
  test("from text: a length is always said, a size only where there is one", () => {
    expect(submit("seedance-1-5-pro-251215")).toStrictEqual({ call: calls.text, seconds: 5 })
  })

  test("from a picture, with the caller's own fields", () => {
    const size = { width: 1280, height: 720 }
    const extra = { generate_audio: false, watermark: false }
    const expected = { call: calls["picture by address"], seconds: 5 }
    expect(submit("dreamina-seedance-2-0-260128", { image: picture, size, extra })).toStrictEqual(expected)
  })

  test("a picture by data goes as a data URI", () => {
    const image = { mediaType: "image/png", base64: "iVBORw0KGgo=" }
    const expected = { call: calls["picture by data"], seconds: 8 }
    expect(submit("ep-20260606-x", { image, duration: 8 })).toStrictEqual(expected)
  })

  // biome-ignore format: a table
  test.each([
    [854, 480, "480p", "16:9"], [864, 480, "480p", "16:9"], [864, 496, "480p", "16:9"], [480, 864, "480p", "9:16"],
    [736, 544, "480p", "4:3"], [752, 560, "480p", "4:3"], [640, 640, "480p", "1:1"], [960, 416, "480p", "21:9"], [992, 432, "480p", "21:9"],
    [1280, 720, "720p", "16:9"], [1248, 704, "720p", "16:9"], [720, 1280, "720p", "9:16"], [1112, 834, "720p", "4:3"],
    [834, 1112, "720p", "3:4"], [1120, 832, "720p", "4:3"], [960, 960, "720p", "1:1"], [720, 720, "720p", "1:1"],
    [1470, 630, "720p", "21:9"], [1504, 640, "720p", "21:9"],
    [1920, 1080, "1080p", "16:9"], [1920, 1088, "1080p", "16:9"], [1080, 1920, "1080p", "9:16"], [1664, 1248, "1080p", "4:3"],
    [1440, 1440, "1080p", "1:1"], [2206, 946, "1080p", "21:9"], [2176, 928, "1080p", "21:9"], [3840, 2160, "4k", "16:9"],
  ])("%ix%i is %s of %s", (width, height, resolution, ratio) => {
    const { body } = submit("doubao-seedance-2-0-260128", { size: { width, height } }).call
    expect(body).toMatchObject({ resolution, ratio })
  })

  test.each([
    ["doubao-seedance-2-0-260128", 1000, 300, "16:9, 4:3, 1:1, 3:4, 9:16, 21:9"],
    ["doubao-seedance-2-0-fast-260128", 1920, 1080, "480 (480p), 720 (720p)"],
    ["doubao-seedance-2-0-fast-260128", 1440, 1440, "480 (480p), 720 (720p)"],
    ["seedance-1-5-pro-251215", 3840, 2160, "480 (480p), 720 (720p), 1080 (1080p)"],
  ])("%s refuses %ix%i and says what it takes", (model, width, height, takes) => {
    expect(() => submit(model, { size: { width, height } })).toThrow(takes)
  })

  test.each([
    ["doubao-seedance-1-0-pro-250528", 1, "2 to 12 seconds"],
    ["seedance-1-0-lite-t2v-250428", 13, "2 to 12 seconds"],
    ["doubao-seedance-1-5-pro-251215", 3, "4 to 12 seconds"],
    ["dreamina-seedance-2-0-260128", 16, "4 to 15 seconds"],
    ["dreamina-seedance-2-0-fast-260128", 3, "4 to 15 seconds"],
  ])("%s refuses %i seconds and says what it takes", (model, duration, takes) => {
    expect(() => submit(model, { duration })).toThrow(takes)
  })

  test("of models that are not known here the vendor is the judge", () => {
    for (const model of ["ep-20260606-x", "dreamina-seedance-2-5-260628"]) {
      for (const duration of [1, 60]) expect(submit(model, { duration }).seconds).toBe(duration)
    }
  })

  test("fields that would change the length, the job or where its result goes are not taken from callers", () => {
    const extra = {
      seed: 7,
      frames: 289,
      callback_url: "https://elsewhere.test",
      duration: 12,
      model: "x",
      content: [],
      n: 2,
      resolution: "1080p",
    }
    expect(submit("ep-1", { extra }).call.body).toStrictEqual({
      seed: 7,
      resolution: "1080p",
      model: "ep-1",
      content: [{ type: "text", text: plain.prompt }],
      duration: 5,
    })
    const size = { width: 1280, height: 720 }
    expect(submit("ep-1", { extra, size }).call.body).toHaveProperty("resolution", "720p")
  })

  test("options in the prompt's text that older models would follow are taken out", () => {
    const prompt = "a fox --dur 12 runs --rs 1080p\n--ratio=1:1 --frames 289 --fps 24 --duration 10 --seed 7"
    for (const model of ["doubao-seedance-1-0-pro-250528", "seedance-1-5-pro-251215", "ep-20260606-x"]) {
      expect(textOf(model, prompt)).toBe("a fox runs --seed 7")
    }
    expect(textOf("dreamina-seedance-2-0-260128", prompt)).toBe(prompt)
    expect(textOf("ep-1", "a well--lit --durable thing")).toBe("a well--lit --durable thing")
  })

  test("a job is polled and cancelled by its id", () => {
    const url = `${base}/contents/generations/tasks/${task}`
    expect(volcengineArk.poll({ task }, context)).toStrictEqual({ method: "GET", url })
    expect(volcengineArk.cancel?.({ task }, context)).toStrictEqual({ method: "DELETE", url })
    expect(volcengineArk.poll({ task: "../x?y" }, context).url).toEndWith("/tasks/..%2Fx%3Fy")
  })
})

describe("replies to a submit", () => {
  // biome-ignore format: a table
  test.each([
    ["submitted", { kind: "accepted", ref: { task }, vendorId: task }],
    ["bad parameter", { kind: "refused", status: 400, message: "duration is out of range. Request id: 0217 (InvalidParameter)" }],
    ["prompt refused", { kind: "refused", status: 400, message: "refused by the vendor's moderation: The input text may contain sensitive information. (InputTextSensitiveContentDetected)" }],
    ["picture refused", { kind: "refused", status: 400, message: "refused by the vendor's moderation: The input image may contain sensitive information. (InputImageSensitiveContentDetected)" }],
    ["wrong key", { kind: "refused", status: 401, message: "The API key doesn't exist. (AuthenticationError)" }],
    ["overdue", { kind: "refused", status: 402, message: "The account has an overdue balance. (AccountOverdueError)" }],
    ["not open", { kind: "refused", status: 404, message: "Your account has not activated the model. (ModelNotOpen)" }],
    ["too fast", { kind: "refused", status: 429, message: "RPM exceeded. (RateLimitExceeded.EndpointRPMExceeded)" }],
    ["overloaded", { kind: "refused", status: 429, message: "The service is overloaded. (ServerOverloaded)" }],
    ["broken", { kind: "refused", status: 500, message: "The service encountered an unexpected internal error. (InternalServiceError)" }],
    ["timed out", { kind: "unreadable", why: "HTTP 504: The service timed out." }],
    ["error in a 200", { kind: "refused", status: 400, message: "content is missing. (MissingParameter)" }],
    ["money in a 200", { kind: "refused", status: 402, message: "The account has an overdue balance. (AccountOverdueError)" }],
  ] as const)("%s", (name, expected) => {
    expect<object>(volcengineArk.readSubmit(replay(recording, name), context)).toEqual(expected)
  })
})

describe("replies to a poll", () => {
  // biome-ignore format: a table
  test.each([
    ["queued", { kind: "queued" }],
    ["pending", { kind: "queued" }],
    ["running", { kind: "running" }],
    ["processing", { kind: "running" }],
    ["a word of tomorrow", { kind: "running", oddWord: "upscaling" }],
    ["succeeded", { kind: "succeeded", url: video, seconds: 5 }],
    ["succeeded in frames", { kind: "succeeded", url: video, seconds: 57 / 24 }],
    ["succeeded without a length", { kind: "succeeded", url: video, seconds: null }],
    ["succeeded long ago", { kind: "failed", reason: "the vendor finished the job without a video" }],
    ["failed", { kind: "failed", reason: "refused by the vendor's moderation: The request failed because the output video may contain sensitive information. (OutputVideoSensitiveContentDetected)" }],
    ["failed without a reason", { kind: "failed", reason: "the job failed" }],
    ["cancelled", { kind: "failed", reason: "the job was cancelled at the vendor" }],
    ["expired", { kind: "failed", reason: "the job expired at the vendor" }],
    ["not found", { kind: "missing", why: "HTTP 404: The task is not found." }],
    ["wrong key", { kind: "unreadable", why: "HTTP 401: The API key doesn't exist." }],
    ["too fast", { kind: "unreadable", why: "HTTP 429: RPM exceeded." }],
    ["broken", { kind: "unreadable", why: "HTTP 500: The service encountered an unexpected internal error." }],
  ] as const)("%s", (name, expected) => {
    expect<object>(volcengineArk.readPoll(replay(recording, name), { task }, context)).toEqual(expected)
  })
})

test("odd replies are neither thrown over nor taken for a job or a video", () => {
  for (const reply of oddReplies) {
    expect(["refused", "unreadable"]).toContain(volcengineArk.readSubmit(reply, context).kind)
    if (reply.status < 400 || reply.status >= 500)
      expect(volcengineArk.readSubmit(reply, context).kind).toBe("unreadable")
    const { kind } = volcengineArk.readPoll(reply, { task }, context)
    expect(kind).not.toBe("succeeded")
    if (reply.status >= 300) expect(["missing", "unreadable"]).toContain(kind)
  }
})

test("a damaged reference is an error of ours, not a call to somewhere else", () => {
  for (const ref of [{}, null, "x", []]) expect(() => volcengineArk.poll(ref, context)).toThrow("internal error")
})
