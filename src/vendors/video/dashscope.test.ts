import { describe, expect, test } from "bun:test"
import type { VideoAsk } from "../../core/video-vendor.ts"
import { replay } from "../fixtures/recording.ts"
import { findVendor } from "../presets.ts"
import { dashscope } from "./dashscope.ts"
import { calls, recording } from "./fixtures/dashscope.ts"
import { oddReplies } from "./fixtures/odd-replies.ts"

const base = "https://dashscope-intl.aliyuncs.com"
const plain: VideoAsk = { prompt: "A kitten running in moonlight", size: null, duration: null, image: null, extra: {} }
const context = { baseUrl: base, upstreamModel: "wan2.6-t2v", settings: {}, jobId: "vid_1" }
const byAddress = { url: "https://ex.com/a.png" }
const byData = { mediaType: "image/png", base64: "iVBORw0KGgo=" }
const task = "0385dc79-5ff8-4d82-bcb6-7ac1f7b2d2a1"
const video = "https://dashscope-result-sh.oss-cn-shanghai.aliyuncs.com/x.mp4?Expires=1795180000"

function submit(upstreamModel: string, ask: Partial<VideoAsk> = {}, settings = {}) {
  return dashscope.submit({ ...plain, ...ask }, { ...context, upstreamModel, settings })
}

function parameters(upstreamModel: string, ask: Partial<VideoAsk> = {}) {
  return submit(upstreamModel, ask).call.body?.parameters
}

describe("requests", () => {
  test("older models from text: pixels with an asterisk, the caller's fields as parameters", () => {
    const extra = { prompt_extend: true, watermark: false }
    const expected = { call: calls["text, older"], seconds: 5 }
    expect(submit("wan2.6-t2v", { size: { width: 1280, height: 720 }, extra })).toStrictEqual(expected)
  })

  test("newer models from text: a resolution in capitals and a ratio", () => {
    const expected = { call: calls["text, newer"], seconds: 15 }
    expect(submit("wan2.7-t2v", { size: { width: 1080, height: 1920 }, duration: 15 })).toStrictEqual(expected)
  })

  test("older models from a picture: a field of its own, and of the size only the resolution", () => {
    expect(
      submit("wan2.5-i2v-preview", { image: byAddress, size: { width: 640, height: 480 }, duration: 10 }),
    ).toStrictEqual({ call: calls["picture by address, older"], seconds: 10 })
    const expected = { call: calls["picture by data, older"], seconds: 5 }
    expect(submit("wan2.2-i2v-flash", { image: byData })).toStrictEqual(expected)
  })

  test("newer models from a picture: the first of its media", () => {
    const size = { width: 1000, height: 720 }
    const expected = { call: calls["picture by address, newer"], seconds: 5 }
    expect(submit("wan2.7-i2v", { image: byAddress, size })).toStrictEqual(expected)
    expect(submit("wan3.0-video", { image: byData })).toStrictEqual({
      call: calls["picture by data, newer"],
      seconds: 5,
    })
    const last = { type: "last_frame", url: "https://ex.com/z.png" }
    expect(submit("wan2.7-i2v", { image: byAddress, extra: { media: [last] } }).call.body?.input).toStrictEqual({
      prompt: plain.prompt,
      media: [{ type: "first_frame", url: "https://ex.com/a.png" }, last],
    })
  })

  test("where the picture of newer models goes is a setting, since sources disagree", () => {
    expect(findVendor("dashscope")?.settings).toHaveProperty("wan_first_frame")
    const settings = { wan_first_frame: "img_url" }
    expect(submit("wan2.7-i2v", { image: byAddress }, settings).call.body?.input).toStrictEqual({
      prompt: plain.prompt,
      img_url: "https://ex.com/a.png",
    })
  })

  test("models between two frames have a path and fields of their own", () => {
    const extra = { last_frame_url: "https://ex.com/z.png" }
    const asked = submit("wan2.2-kf2v-flash", { image: byAddress, size: { width: 1280, height: 720 }, extra })
    expect(asked).toStrictEqual({ call: calls.keyframes, seconds: 5 })
    expect(submit("wanx2.1-kf2v-plus", { image: byAddress }).call.url).toBe(calls.keyframes.url)
  })

  test("what belongs to the prompt stands beside it, the rest among the parameters", () => {
    const extra = { negative_prompt: "blur", audio_url: "https://ex.com/a.mp3", seed: 7, shot_type: "multi" }
    expect(submit("wan2.6-t2v", { extra }).call.body).toStrictEqual({
      model: "wan2.6-t2v",
      input: { negative_prompt: "blur", audio_url: "https://ex.com/a.mp3", prompt: plain.prompt },
      parameters: { seed: 7, shot_type: "multi", duration: 5 },
    })
  })

  test("the caller's own words for size and length count only where the request says nothing", () => {
    const extra = { resolution: "1080P", ratio: "1:1", duration: 15, model: "x", prompt: "a wolf", n: 4 }
    expect(submit("wan2.7-t2v", { extra }).call.body).toStrictEqual({
      model: "wan2.7-t2v",
      input: { prompt: plain.prompt },
      parameters: { resolution: "1080P", ratio: "1:1", duration: 5 },
    })
    const size = { width: 1280, height: 720 }
    expect(parameters("wan2.6-t2v", { extra, size })).toStrictEqual({ size: "1280*720", duration: 5 })
    const expected = { resolution: "720P", ratio: "16:9", duration: 5 }
    expect(parameters("wan2.7-t2v", { extra, size })).toStrictEqual(expected)
  })

  // biome-ignore format: a table
  test.each([
    [832, 480], [480, 832], [624, 624], [1280, 720], [720, 1280], [960, 960], [1088, 832], [832, 1088],
    [1920, 1080], [1080, 1920], [1440, 1440], [1632, 1248], [1248, 1632],
  ])("older models make %ix%i", (width, height) => {
    expect(parameters("wan2.5-t2v-preview", { size: { width, height } })).toHaveProperty("size", `${width}*${height}`)
  })

  test.each([
    [960, 960, "720P", "1:1"],
    [1088, 832, "720P", "4:3"],
    [832, 1088, "720P", "3:4"],
    [1440, 1440, "1080P", "1:1"],
    [1248, 1632, "1080P", "3:4"],
    [1080, 1080, "1080P", "1:1"],
  ])("newer models take %ix%i as %s of %s", (width, height, resolution, ratio) => {
    expect(parameters("wan3.0-t2v", { size: { width, height } })).toMatchObject({ resolution, ratio })
  })

  test("the vendor's own sizes have the vendor's resolution from a picture too", () => {
    for (const [side, resolution] of [
      [624, "480P"],
      [960, "720P"],
      [1440, "1080P"],
    ] as const) {
      const asked = parameters("wan2.6-i2v", { image: byAddress, size: { width: side, height: side } })
      expect(asked).toStrictEqual({ resolution, duration: 5 })
    }
  })

  test.each([
    ["wan2.6-t2v", 1024, 768, "832x480, 480x832, 624x624, 1280x720"],
    ["wan2.7-t2v", 1000, 300, "16:9, 9:16, 1:1, 4:3, 3:4"],
    ["wan2.7-t2v", 854, 480, "720 (720P), 1080 (1080P)"],
  ])("%s refuses %ix%i and says what it takes", (model, width, height, takes) => {
    expect(() => submit(model, { size: { width, height } })).toThrow(takes)
  })

  test("resolutions that are not made are refused beside a picture too", () => {
    const size = { width: 3840, height: 2160 }
    const takes = "480 (480P), 720 (720P), 1080 (1080P)"
    expect(() => submit("wan2.6-i2v", { image: byAddress, size })).toThrow(takes)
  })

  test.each([
    ["wanx2.1-t2v-turbo", 10, "5 seconds"],
    ["wan2.2-t2v-plus", 4, "5 seconds"],
    ["wan2.5-t2v-preview", 7, "5, 10 seconds"],
    ["wan2.6-t2v", 16, "2 to 15 seconds"],
    ["wan2.7-t2v", 1, "2 to 15 seconds"],
  ])("%s refuses %i seconds and says what it takes", (model, duration, takes) => {
    expect(() => submit(model, { duration })).toThrow(takes)
  })

  test("of models that are not known here the vendor is the judge", () => {
    expect(submit("happyhorse-1.0-t2v", { duration: 60 }).seconds).toBe(60)
  })

  test("a job is polled and cancelled by its task id, in the region that took it", () => {
    const url = `${base}/api/v1/tasks/${task}`
    expect(dashscope.poll({ task }, context)).toStrictEqual({ method: "GET", url })
    expect(dashscope.cancel?.({ task }, context)).toStrictEqual({ method: "POST", url: `${url}/cancel` })
    expect(dashscope.poll({ task: "../x?y" }, context).url).toEndWith("/tasks/..%2Fx%3Fy")
  })
})

describe("replies to a submit", () => {
  // biome-ignore format: a table
  test.each([
    ["submitted", { kind: "accepted", ref: { task }, vendorId: task }],
    ["submitted and failed at once", { kind: "accepted", ref: { task }, vendorId: task }],
    ["bad parameter", { kind: "refused", status: 400, message: "size is invalid (InvalidParameter)" }],
    ["moderated", { kind: "refused", status: 400, message: "refused by the vendor's moderation: Input data may contain inappropriate content. (DataInspectionFailed)" }],
    ["wrong key", { kind: "refused", status: 401, message: "Invalid API-key provided. (InvalidApiKey)" }],
    ["arrears", { kind: "refused", status: 402, message: "Access denied, please make sure your account is in good standing. (Arrearage)" }],
    ["arrears, forbidden", { kind: "refused", status: 402, message: "Access denied. (Arrearage)" }],
    ["not allowed", { kind: "refused", status: 403, message: "current user api does not support synchronous calls (AccessDenied)" }],
    ["no such model", { kind: "refused", status: 404, message: "Model can not be found. (ModelNotFound)" }],
    ["throttled", { kind: "refused", status: 429, message: "Requests throttling triggered. (Throttling)" }],
    ["rate quota", { kind: "refused", status: 429, message: "Requests rate limit exceeded. (Throttling.RateQuota)" }],
    ["allocation quota", { kind: "refused", status: 429, message: "Allocated quota exceeded. (Throttling.AllocationQuota)" }],
    ["broken", { kind: "refused", status: 500, message: "Internal server error! (InternalError)" }],
    ["timed out", { kind: "unreadable", why: "HTTP 500: Request timed out, please try again later." }],
    ["error in a 200", { kind: "refused", status: 400, message: "size is invalid (InvalidParameter.Size)" }],
    ["throttled in a 200", { kind: "refused", status: 429, message: "Requests rate limit exceeded. (Throttling.RateQuota)" }],
  ] as const)("%s", (name, expected) => {
    expect<object>(dashscope.readSubmit(replay(recording, name), context)).toEqual(expected)
  })
})

describe("replies to a poll", () => {
  // biome-ignore format: a table
  test.each([
    ["pending", { kind: "queued" }],
    ["suspended", { kind: "queued" }],
    ["running", { kind: "running" }],
    ["a word of tomorrow", { kind: "running", oddWord: "warming_up" }],
    ["succeeded", { kind: "succeeded", url: video, seconds: 5 }],
    ["succeeded, more billed than made", { kind: "succeeded", url: video, seconds: 5 }],
    ["succeeded, only billed", { kind: "succeeded", url: video, seconds: 5 }],
    ["succeeded, older", { kind: "succeeded", url: video, seconds: 5 }],
    ["succeeded without a length", { kind: "succeeded", url: video, seconds: null }],
    ["succeeded with nothing", { kind: "failed", reason: "the vendor finished the job without a video" }],
    ["failed", { kind: "failed", reason: "An internal error occurs. (InternalError.Algo)" }],
    ["failed by moderation", { kind: "failed", reason: "refused by the vendor's moderation: Input data may contain inappropriate content. (DataInspectionFailed)" }],
    ["failed without a reason", { kind: "failed", reason: "the job failed" }],
    ["canceled", { kind: "failed", reason: "the job was cancelled at the vendor" }],
    ["unknown", { kind: "missing", why: "DashScope does not know the task: it has expired or is another region's" }],
    ["not found", { kind: "missing", why: "HTTP 404: No such task." }],
    ["wrong key", { kind: "unreadable", why: "HTTP 401: Invalid API-key provided." }],
    ["throttled", { kind: "unreadable", why: "HTTP 429: Requests throttling triggered." }],
    ["throttled in a 200", { kind: "unreadable", why: "HTTP 200: Requests rate limit exceeded." }],
  ] as const)("%s", (name, expected) => {
    expect<object>(dashscope.readPoll(replay(recording, name), { task }, context)).toEqual(expected)
  })
})

test("odd replies are neither thrown over nor taken for a job or a video", () => {
  for (const reply of oddReplies) {
    expect(["refused", "unreadable"]).toContain(dashscope.readSubmit(reply, context).kind)
    if (reply.status < 400 || reply.status >= 500) expect(dashscope.readSubmit(reply, context).kind).toBe("unreadable")
    const { kind } = dashscope.readPoll(reply, { task }, context)
    expect(kind).not.toBe("succeeded")
    if (reply.status >= 300) expect(["missing", "unreadable"]).toContain(kind)
  }
})

test("a damaged reference is an error of ours, not a call to somewhere else", () => {
  for (const ref of [{}, null, "x", []]) expect(() => dashscope.poll(ref, context)).toThrow("internal error")
})
