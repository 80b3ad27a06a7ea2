import { describe, expect, test } from "bun:test"
import type { JsonValue } from "../../core/json.ts"
import type { VideoAsk } from "../../core/video-vendor.ts"
import { replay } from "../fixtures/recording.ts"
import { fal } from "./fal.ts"
import { calls, recording, requestId } from "./fixtures/fal.ts"
import { oddReplies } from "./fixtures/odd-replies.ts"

const base = "https://queue.fal.run"
const request = `${base}/fal-ai/veo3.1/requests/${requestId}`
const context = { baseUrl: base, upstreamModel: "fal-ai/veo3.1/fast", settings: {}, jobId: "job_1" }
const plain: VideoAsk = { prompt: "a fox in snow", size: null, duration: null, image: null, extra: {} }
const address = { url: "https://pictures.test/fox.png" }
const data = { mediaType: "image/png", base64: "iVBORw0KGgo=" }

function submit(upstreamModel: string, ask: Partial<VideoAsk> = {}) {
  return fal.submit({ ...plain, ...ask }, { ...context, upstreamModel })
}

/** The reference of the recorded job, before and after it is said to be completed. */
function refs(name = "submitted"): { readonly status: JsonValue; readonly result: JsonValue } {
  const submitted = fal.readSubmit(replay(recording, name), context)
  if (submitted.kind !== "accepted") throw new Error(submitted.kind)
  const completed = fal.readPoll(replay(recording, "completed"), submitted.ref, context)
  if (completed.kind !== "continue") throw new Error(completed.kind)
  return { status: submitted.ref, result: completed.ref }
}

describe("requests", () => {
  test("from text: the bare input at the model's whole path", () => {
    const ask = { size: { width: 1280, height: 720 }, duration: 8, extra: { generate_audio: false } }
    expect(submit("fal-ai/veo3.1/fast", ask)).toStrictEqual({ seconds: 8, call: calls["text to video"] })
  })

  test("from a picture by its address: the model for pictures stands below the one for text", () => {
    const call = calls["picture by address"]
    expect(submit("fal-ai/veo3.1/fast", { image: address, duration: 6 })).toStrictEqual({ seconds: 6, call })
  })

  test("from a picture as data: or beside it, and the field may have another name", () => {
    const call = calls["picture as data"]
    expect(submit("fal-ai/kling-video/v3/pro/text-to-video", { image: data })).toStrictEqual({ seconds: 5, call })
  })

  // biome-ignore format: a table
  test.each([
    ["fal-ai/veo2", "fal-ai/veo2/image-to-video"],
    ["fal-ai/veo3.1/fast/image-to-video", "fal-ai/veo3.1/fast/image-to-video"],
    ["fal-ai/veo3.1/reference-to-video", "fal-ai/veo3.1/reference-to-video"],
    ["fal-ai/pixverse/v4/text-to-video/fast", "fal-ai/pixverse/v4/image-to-video/fast"],
    ["fal-ai/minimax/video-01", "fal-ai/minimax/video-01/image-to-video"],
    ["fal-ai/wan-t2v", "fal-ai/wan-i2v"],
    ["fal-ai/wan-i2v", "fal-ai/wan-i2v"],
  ])("%s goes on from a picture at %s", (model, path) => {
    expect(submit(model, { image: address }).call.url).toBe(`${base}/${path}`)
    if (model !== path) expect(submit(model).call.url).toBe(`${base}/${model}`)
  })

  test.each(["fal-ai/veo3/image-to-video", "fal-ai/wan-i2v"])("%s without a picture is refused", (model) => {
    expect(() => submit(model)).toThrow("image_url: this model makes videos from a picture only")
  })

  // biome-ignore format: a table
  test.each([
    ["fal-ai/veo3", 4, { duration: "4s" }],
    ["fal-ai/veo2", 7, { duration: "7s" }],
    ["fal-ai/luma-dream-machine/ray-2", 9, { duration: "9s" }],
    ["fal-ai/kling-video/v2.5-turbo/pro/text-to-video", 10, { duration: "10" }],
    ["fal-ai/kling-video/v3/pro/text-to-video", 15, { duration: "15" }],
    ["fal-ai/minimax/hailuo-02/standard/text-to-video", 10, { duration: "10" }],
    ["fal-ai/bytedance/seedance/v1/pro/text-to-video", 2, { duration: "2" }],
    ["fal-ai/bytedance/seedance/v1.5/pro/text-to-video", 12, { duration: "12" }],
    ["bytedance/seedance-2.0/text-to-video", 15, { duration: "15" }],
    ["fal-ai/pixverse/v5/text-to-video", 8, { duration: "8" }],
    ["fal-ai/pixverse/v5.5/text-to-video", 10, { duration: "10" }],
    ["fal-ai/pika/v2.2/text-to-video", 10, { duration: "10" }],
    ["fal-ai/wan/v2.2-a14b/text-to-video", 10, { num_frames: 161, frames_per_second: 16 }],
    ["fal-ai/wan/v2.2-5b/text-to-video", 6, { num_frames: 145, frames_per_second: 24 }],
    ["fal-ai/wan-25-preview/text-to-video", 10, { duration: "10" }],
    ["wan/v2.6/text-to-video", 15, { duration: "15" }],
    ["someone/something", 60, { duration: 60 }],
  ])("%s is asked for %i seconds in its own way", (model, duration, fields) => {
    const { call, seconds } = submit(model, { duration })
    expect(call.body).toStrictEqual({ prompt: "a fox in snow", ...fields })
    expect(seconds).toBe(duration)
  })

  // biome-ignore format: a table
  test.each([
    ["fal-ai/veo3", 8], ["fal-ai/veo2", 5], ["fal-ai/luma-dream-machine/ray-2", 5], ["fal-ai/minimax/hailuo-2.3/pro/text-to-video", 6],
    ["fal-ai/kling-video/v2.6/pro/text-to-video", 5], ["bytedance/seedance-2.0/text-to-video", 5], ["someone/something", 5],
  ])("%s is asked for its usual %i seconds aloud where the caller says nothing", (model, usual) => {
    const { call, seconds } = submit(model)
    expect(seconds).toBe(usual)
    expect(Number.parseInt(String(call.body?.duration), 10)).toBe(usual)
  })

  test.each([
    "fal-ai/minimax/video-01",
    "fal-ai/pixverse/v4/text-to-video/fast",
    "fal-ai/wan/v2.2-a14b/text-to-video/turbo",
  ])("%s takes no length", (model) => {
    expect(submit(model)).toMatchObject({ seconds: null, call: { body: { prompt: "a fox in snow" } } })
    expect(submit(model).call.body).not.toHaveProperty("duration")
    expect(() => submit(model, { duration: 5 })).toThrow("duration: this model decides on the length itself")
  })

  // biome-ignore format: a table
  test.each([
    ["fal-ai/veo3", 5, "4, 6, 8 seconds"],
    ["fal-ai/kling-video/v2.1/master/text-to-video", 6, "5, 10 seconds"],
    ["fal-ai/bytedance/seedance/v1.5/pro/text-to-video", 3, "4 to 12 seconds"],
    ["fal-ai/wan/v2.2-a14b/text-to-video", 11, "1 to 10 seconds"],
  ])("%s refuses %i seconds and says what it takes", (model, duration, takes) => {
    expect(() => submit(model, { duration })).toThrow(`this model does not make ${duration} seconds; it takes ${takes}`)
  })

  // biome-ignore format: a table
  test.each([
    ["fal-ai/veo3", "text", 1080, 1920, { aspect_ratio: "9:16", resolution: "1080p" }],
    ["fal-ai/veo3", "a picture", 1280, 720, { aspect_ratio: "16:9", resolution: "720p" }],
    ["fal-ai/kling-video/v2.6/pro/text-to-video", "text", 1920, 1080, { aspect_ratio: "16:9" }],
    ["fal-ai/minimax/hailuo-02/standard/text-to-video", "a picture", 1366, 768, { resolution: "768P" }],
    ["fal-ai/pixverse/v5/text-to-video", "a picture", 640, 360, { resolution: "360p" }],
    ["fal-ai/wan/v2.2-a14b/text-to-video", "text", 580, 580, { aspect_ratio: "1:1", resolution: "580p" }],
    ["fal-ai/luma-dream-machine/ray-2", "text", 2520, 1080, { aspect_ratio: "21:9", resolution: "1080p" }],
    ["someone/something", "text", 3840, 2160, { aspect_ratio: "16:9", resolution: "4k" }],
  ] as const)("%s from %s is told of %ix%i in its own terms", (model, from, width, height, fields) => {
    expect(submit(model, { image: from === "text" ? null : address, size: { width, height } }).call.body).toMatchObject(fields)
  })

  // biome-ignore format: a table
  test.each([
    ["fal-ai/veo3", "text", 1024, 1024, "aspect ratios 16:9, 9:16"],
    ["fal-ai/veo3", "text", 854, 480, "720p"],
    ["fal-ai/kling-video/v3/pro/text-to-video", "text", 1024, 768, "aspect ratios 16:9, 9:16, 1:1"],
    ["fal-ai/kling-video/v3/pro/text-to-video", "a picture", 1280, 720, "decides on the size itself"],
    ["fal-ai/minimax/hailuo-02/pro/text-to-video", "text", 1920, 1080, "decides on the size itself"],
  ] as const)("%s from %s refuses %ix%i and says what it takes", (model, from, width, height, takes) => {
    expect(() => submit(model, { image: from === "text" ? null : address, size: { width, height } })).toThrow(takes)
  })

  test("the caller's fields go along, but none that costs more, sends the video elsewhere or takes the place of ours", () => {
    const extra = {
      seed: 7,
      negative_prompt: "rain",
      prompt: "a wolf",
      model: "x",
      n: 2,
      num_frames: 900,
      number_of_frames: 900,
      multi_prompt: [{ prompt: "a wolf", duration: "15" }],
      num_videos: 4,
      num_samples: 4,
      fal_webhook: "https://strangers.test",
      webhook_url: "https://strangers.test",
      sync_mode: true,
      duration: "600s",
      resolution: "1080p",
      aspect_ratio: "9:16",
    }
    expect(submit("fal-ai/veo3", { extra, size: { width: 1280, height: 720 } }).call.body).toStrictEqual({
      seed: 7,
      negative_prompt: "rain",
      prompt: "a fox in snow",
      duration: "8s",
      resolution: "720p",
      aspect_ratio: "16:9",
    })
    expect(submit("fal-ai/veo3", { extra }).call.body).toMatchObject({ resolution: "1080p", aspect_ratio: "9:16" })
    expect(
      submit("fal-ai/wan/v2.2-a14b/text-to-video", { extra: { num_frames: 900, frames_per_second: 4 } }).call.body,
    ).toEqual({
      prompt: "a fox in snow",
      num_frames: 81,
      frames_per_second: 16,
    })
  })
})

describe("replies to a submit", () => {
  test("the returned addresses are used as given, though they leave out a part of the model's path", () => {
    const { status, result } = refs()
    expect(fal.poll(status, context)).toStrictEqual({ method: "GET", url: `${request}/status` })
    expect(fal.poll(result, context)).toStrictEqual({ method: "GET", url: request })
    expect(fal.cancel?.(result, context)).toStrictEqual({ method: "PUT", url: `${request}/cancel` })
    expect(fal.readSubmit(replay(recording, "submitted"), context)).toMatchObject({ vendorId: requestId })
  })

  test("a job without addresses is found below the first two parts of the model's name", () => {
    const { status, result } = refs("submitted without addresses")
    expect(fal.poll(status, context).url).toBe(`${request}/status`)
    expect(fal.poll(result, context).url).toBe(request)
    expect(fal.cancel?.(status, context).url).toBe(`${request}/cancel`)
  })

  // biome-ignore format: a table
  test.each([
    ["wrong key", { kind: "refused", status: 401, message: "Cannot access application" }],
    ["wrong input", { kind: "refused", status: 422, message: "duration: unexpected value" }],
    ["too many", { kind: "refused", status: 429, message: "Too many requests" }],
    ["fal's own error", { kind: "refused", status: 500, message: "Internal error" }],
    ["fal's own time-out", { kind: "unreadable", why: "HTTP 504: Request timed out" }],
    ["someone's error", { kind: "unreadable", why: "HTTP 502: Bad gateway" }],
    ["a proxy's refusal", { kind: "refused", status: 400, message: "HTTP 400" }],
  ] as const)("%s", (name, expected) => {
    expect<object>(fal.readSubmit(replay(recording, name), context)).toEqual(expected)
  })

  test("an id in an error makes no job of it", () => {
    const named = replay(recording, "submitted")
    expect(fal.readSubmit({ ...named, status: 422 }, context).kind).toBe("refused")
    expect(fal.readSubmit({ ...named, status: 502 }, context).kind).toBe("unreadable")
  })

  test("a success that names no job may still be one: nobody knows", () => {
    expect(fal.readSubmit(replay(recording, "submitted without an id"), context).kind).toBe("unreadable")
  })
})

describe("replies to a poll", () => {
  const { status, result } = refs()

  // biome-ignore format: a table
  test.each([
    ["in queue", { kind: "queued" }],
    ["in progress", { kind: "running" }],
    ["a word of tomorrow", { kind: "running", oddWord: "warming_up" }],
    ["completed with an error", { kind: "failed", reason: "Request timed out" }],
    ["no such job", { kind: "missing", why: "HTTP 404: Request not found" }],
    ["status not available", { kind: "unreadable", why: "HTTP 503: Service unavailable" }],
    ["content policy", { kind: "unreadable", why: "HTTP 422: prompt: content policy" }],
  ] as const)("of its status: %s", (name, expected) => {
    expect<object>(fal.readPoll(replay(recording, name), status, context)).toEqual(expected)
  })

  test.each(["completed", "completed in other letters"])("%s is not yet a success: the result is asked for", (name) => {
    expect(fal.readPoll(replay(recording, name), status, context)).toEqual({
      kind: "continue",
      ref: { ...(status as object), stage: "result" },
    })
  })

  const url = "https://v3.fal.media/files/x.mp4"
  // The status of the result is the verdict, but only where fal speaks and speaks of the job.
  // biome-ignore format: a table
  test.each([
    ["result", { kind: "succeeded", url, seconds: null }],
    ["result with a length", { kind: "succeeded", url, seconds: 5.041 }],
    ["result in a list", { kind: "succeeded", url, seconds: null }],
    ["result as an address", { kind: "succeeded", url, seconds: null }],
    ["result without an address", { kind: "failed", reason: "the vendor finished the job without a video" }],
    ["result as data", { kind: "failed", reason: "the vendor finished the job without a video" }],
    ["result too early", { kind: "running" }],
    ["content policy", { kind: "failed", reason: "prompt: content policy" }],
    ["bad request", { kind: "failed", reason: "Bad request" }],
    ["client cancelled", { kind: "failed", reason: "Request was cancelled" }],
    ["startup timed out", { kind: "failed", reason: "Startup timed out" }],
    ["runner failed", { kind: "failed", reason: "Runner crashed" }],
    ["runner failed without words", { kind: "failed", reason: "HTTP 500" }],
    ["gateway trouble", { kind: "unreadable", why: "HTTP 502" }],
    ["a proxy's refusal", { kind: "unreadable", why: "HTTP 400" }],
    ["status not available", { kind: "unreadable", why: "HTTP 503: Service unavailable" }],
    ["not allowed", { kind: "unreadable", why: "HTTP 403: Cannot access application" }],
    ["asked too often", { kind: "unreadable", why: "HTTP 429: Too many requests" }],
    ["no such job", { kind: "missing", why: "HTTP 404: Request not found" }],
  ] as const)("of its result: %s", (name, expected) => {
    expect<object>(fal.readPoll(replay(recording, name), result, context)).toEqual(expected)
  })

  test("a result of another kind is nobody's verdict", () => {
    expect(fal.readPoll(replay(recording, "result of another kind"), result, context).kind).toBe("unreadable")
  })

  test("what tells nothing is no verdict and no job", () => {
    for (const reply of oddReplies) {
      expect(["refused", "unreadable"]).toContain(fal.readSubmit(reply, context).kind)
      const kinds = ["queued", "running", "continue", "missing", "unreadable"]
      expect(kinds).toContain(fal.readPoll(reply, status, context).kind)
      expect(fal.readPoll(reply, result, context).kind).not.toBe("succeeded")
    }
  })
})
