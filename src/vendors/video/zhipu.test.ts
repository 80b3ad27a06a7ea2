import { describe, expect, test } from "bun:test"
import type { VideoAsk } from "../../core/video-vendor.ts"
import { replay, replyOf } from "../fixtures/recording.ts"
import { oddReplies } from "./fixtures/odd-replies.ts"
import { calls, id, recording } from "./fixtures/zhipu.ts"
import { zhipu } from "./zhipu.ts"

const base = "https://open.bigmodel.cn/api/paas/v4"
const context = { baseUrl: base, upstreamModel: "cogvideox-3", settings: {}, jobId: "job_1" }
const plain: VideoAsk = { prompt: "A cat is playing with a ball.", size: null, duration: null, image: null, extra: {} }
const data = { mediaType: "image/png", base64: "iVBORw0KGgo=" }

function submit(ask: Partial<VideoAsk>, changed: Partial<typeof context> = {}) {
  return zhipu.submit({ ...plain, ...ask }, { ...context, ...changed })
}

describe("requests", () => {
  test("from text: pixels as they are, the gateway's id as the request's", () => {
    const extra = { quality: "quality", with_audio: true, fps: 30 }
    const ask = { size: { width: 1920, height: 1080 }, duration: 5, extra }
    expect(submit(ask)).toStrictEqual({ seconds: 5, call: calls["text to video"] })
  })

  test("from a picture by its address", () => {
    const ask = { image: { url: "https://pictures.test/cat.png" }, duration: 10 }
    expect(submit(ask)).toStrictEqual({ seconds: 10, call: calls["picture by address"] })
  })

  test("from a picture as data, bare where the upstream is set so", () => {
    expect(submit({ image: data })).toStrictEqual({ seconds: 5, call: calls["picture as data"] })
    const bare = { settings: { bare_base64_images: true } }
    expect(submit({ image: data }, bare).call.body).toMatchObject({ image_url: "iVBORw0KGgo=" })
    const address = { url: "https://pictures.test/cat.png" }
    expect(submit({ image: address }, bare).call.body).toMatchObject({ image_url: address.url })
  })

  // biome-ignore format: a table
  test.each([
    ["cogvideox-flash", 10, 720, 480, { duration: 10, size: "720x480" }],
    ["viduq1-text", 5, 1080, 1920, { duration: 5, aspect_ratio: "9:16" }],
    ["viduq1-image", 5, 1920, 1080, { duration: 5, size: "1920x1080" }],
    ["vidu2-image", 4, 1280, 720, { duration: 4, size: "1280x720" }],
    ["something-new", 60, 640, 360, { duration: 60, size: "640x360" }],
  ])("%s is asked for %i seconds of %ix%i in its own terms", (upstreamModel, duration, width, height, fields) => {
    const { call } = submit({ duration, size: { width, height } }, { upstreamModel })
    expect(call.body).toStrictEqual({ model: upstreamModel, prompt: plain.prompt, request_id: "job_1", ...fields })
  })

  test.each([
    ["cogvideox-2", 5],
    ["viduq1-text", 5],
    ["vidu2-image", 4],
    ["something-new", 5],
  ] as const)("%s is asked for its usual %i seconds aloud where the caller says nothing", (upstreamModel, usual) => {
    expect(submit({}, { upstreamModel })).toMatchObject({ seconds: usual, call: { body: { duration: usual } } })
  })

  test("sizes and lengths that a model does not make are refused", () => {
    expect(() => submit({ size: { width: 1280, height: 704 } })).toThrow(
      "it takes 1280x720, 720x1280, 1024x1024, 1920x1080, 1080x1920, 2048x1080, 3840x2160",
    )
    expect(() => submit({ duration: 8 })).toThrow("it takes 5, 10 seconds")
    expect(() => submit({ duration: 10 }, { upstreamModel: "viduq1-text" })).toThrow("it takes 5 seconds")
  })

  test("the caller's fields go along but cannot take the place of ours", () => {
    const extra = { user_id: "u-123456", prompt: "a dog", model: "x", n: 2, duration: 10, request_id: "theirs" }
    expect(submit({ extra }).call.body).toStrictEqual({
      user_id: "u-123456",
      model: "cogvideox-3",
      prompt: plain.prompt,
      duration: 5,
      request_id: "job_1",
    })
  })
})

describe("replies to a submit", () => {
  test("a job is asked after by its id", () => {
    const submitted = zhipu.readSubmit(replay(recording, "submitted"), context)
    if (submitted.kind !== "accepted") throw new Error(submitted.kind)
    expect(submitted.vendorId).toBe(id)
    expect(zhipu.poll(submitted.ref, context)).toStrictEqual({ method: "GET", url: `${base}/async-result/${id}` })
  })

  // biome-ignore format: a table
  test.each([
    ["wrong key", { kind: "refused", status: 401, message: "Invalid Authorization" }],
    ["no money", { kind: "refused", status: 402, message: "Insufficient balance" }],
    ["wrong size", { kind: "refused", status: 400, message: "Invalid parameter: size" }],
    ["crowded", { kind: "refused", status: 429, message: "Too many requests" }],
    ["error in a 200", { kind: "refused", status: 400, message: "Sensitive content" }],
    ["unknown error in a 200", { kind: "refused", status: 502, message: "Something else" }],
    ["zhipu's own error", { kind: "refused", status: 500, message: "Internal error" }],
    ["someone's error", { kind: "unreadable", why: "HTTP 502" }],
  ] as const)("%s", (name, expected) => {
    expect<object>(zhipu.readSubmit(replay(recording, name), context)).toEqual(expected)
  })

  // biome-ignore format: a table
  test.each([
    [1000, 401], [1001, 401], [1002, 401], [1003, 401], [1004, 401], [1113, 402],
    [1210, 400], [1214, 400], [1301, 400], [1302, 429], [1303, 429], [1305, 429],
  ])("the code %i amounts to %i", (code, status) => {
    const reply = replyOf({ error: { code: String(code), message: "no" } }, 200)
    expect(zhipu.readSubmit(reply, context)).toEqual({ kind: "refused", status, message: "no" })
  })

  test("an id in an error makes no job of it", () => {
    const named = replay(recording, "submitted")
    expect(zhipu.readSubmit({ ...named, status: 422 }, context).kind).toBe("refused")
    expect(zhipu.readSubmit({ ...named, status: 502 }, context).kind).toBe("unreadable")
  })

  test("a success that names no job may still be one: nobody knows", () => {
    expect(zhipu.readSubmit(replay(recording, "submitted without an id"), context).kind).toBe("unreadable")
  })
})

describe("replies to a poll", () => {
  const url = "https://aigc.test/x.mp4"
  // biome-ignore format: a table
  test.each([
    ["processing", { kind: "running" }],
    ["success", { kind: "succeeded", url, seconds: null }],
    ["success in other letters", { kind: "succeeded", url, seconds: null }],
    ["success without a video", { kind: "failed", reason: "the vendor finished the job without a video" }],
    ["fail", { kind: "failed", reason: "the vendor gave no reason" }],
    ["fail with a reason", { kind: "failed", reason: "Sensitive content" }],
    ["a word of tomorrow", { kind: "running", oddWord: "queued" }],
    ["error in a 200 to a poll", { kind: "unreadable", why: "HTTP 200: Too many requests" }],
    ["not found", { kind: "missing", why: "HTTP 404: No such task" }],
    ["not allowed", { kind: "unreadable", why: "HTTP 401: Invalid Authorization" }],
  ] as const)("%s", (name, expected) => {
    expect<object>(zhipu.readPoll(replay(recording, name), { id }, context)).toEqual(expected)
  })

  test("what tells nothing is no verdict and no job", () => {
    for (const reply of oddReplies) {
      expect(["refused", "unreadable"]).toContain(zhipu.readSubmit(reply, context).kind)
      expect(["running", "missing", "unreadable"]).toContain(zhipu.readPoll(reply, { id }, context).kind)
    }
  })
})
