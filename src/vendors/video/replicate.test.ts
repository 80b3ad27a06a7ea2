import { describe, expect, test } from "bun:test"
import type { VideoAsk } from "../../core/video-vendor.ts"
import { replay } from "../fixtures/recording.ts"
import { oddReplies } from "./fixtures/odd-replies.ts"
import { calls, id, recording, url } from "./fixtures/replicate.ts"
import { replicate } from "./replicate.ts"

const base = "https://api.replicate.com/v1"
const context = { baseUrl: base, upstreamModel: "bytedance/seedance-1-pro", settings: {}, jobId: "job_1" }
const plain: VideoAsk = { prompt: "a fox in snow", size: null, duration: null, image: null, extra: {} }
const address = { url: "https://pictures.test/fox.png" }
const data = { mediaType: "image/png", base64: "iVBORw0KGgo=" }

function submit(upstreamModel: string, ask: Partial<VideoAsk> = {}) {
  return replicate.submit({ ...plain, ...ask }, { ...context, upstreamModel })
}

function readSubmit(name: string) {
  return replicate.readSubmit(replay(recording, name), context)
}

describe("requests", () => {
  test("from text", () => {
    const ask = { size: { width: 1280, height: 720 }, duration: 5, extra: { seed: 7 } }
    expect(submit("bytedance/seedance-1-pro", ask)).toStrictEqual({ seconds: 5, call: calls["text to video"] })
  })

  test("from a picture by its address", () => {
    const call = calls["picture by address"]
    expect(submit("bytedance/seedance-1-pro", { image: address, duration: 12 })).toStrictEqual({ seconds: 12, call })
  })

  test("from a picture as data, under the model's name for it", () => {
    expect(submit("kwaivgi/kling-v2.1", { image: data })).toStrictEqual({ seconds: 5, call: calls["picture as data"] })
  })

  test.each(["someone/something:39ed52f2", "39ed52f2"])("%s is run by its version", (model) => {
    expect(submit(model)).toStrictEqual({
      seconds: 5,
      call: {
        method: "POST",
        url: `${base}/predictions`,
        body: { version: "39ed52f2", input: { prompt: "a fox in snow", duration: 5 } },
      },
    })
  })

  // biome-ignore format: a table
  test.each([
    ["google/veo-3.1-fast", 8, "image"],
    ["bytedance/seedance-1-lite", 5, "image"],
    ["kwaivgi/kling-v3", 5, "start_image"],
    ["minimax/hailuo-02", 6, "first_frame_image"],
    ["vidu/q3-pro", 5, "start_image"],
    ["vidu/q2", 5, "start_image"],
    ["wan-video/wan-2.7-t2v", 5, "image"],
    ["lightricks/ltx-2-fast", 6, "image"],
    ["someone/something", 5, "image"],
  ])("%s is asked for its usual %i seconds aloud, and takes its picture as %s", (model, usual, picture) => {
    const { seconds, call } = submit(model, { image: address })
    expect(seconds).toBe(usual)
    expect(call.body).toStrictEqual({ input: { prompt: "a fox in snow", [picture]: address.url, duration: usual } })
  })

  // biome-ignore format: a table
  test.each([
    ["google/veo-3", "text", 1080, 1920, { aspect_ratio: "9:16", resolution: "1080p" }],
    ["kwaivgi/kling-v2.1-master", "text", 1920, 1080, { aspect_ratio: "16:9" }],
    ["vidu/q3-pro", "a picture", 1280, 720, { resolution: "720p" }],
    ["someone/something", "text", 1080, 1080, { aspect_ratio: "1:1", resolution: "1080p" }],
  ])("%s from %s is told of %ix%i in its own terms", (model, from, width, height, fields) => {
    const { call } = submit(model, { image: from === "text" ? null : address, size: { width, height } })
    expect(call.body?.input).toMatchObject(fields)
  })

  test("sizes and lengths that a model does not make are refused", () => {
    expect(() => submit("google/veo-3", { size: { width: 1024, height: 1024 } })).toThrow("aspect ratios 16:9, 9:16")
    expect(() => submit("kwaivgi/kling-v2.1", { image: address, size: { width: 1280, height: 720 } })).toThrow(
      "size: this model decides on the size itself; leave it out",
    )
    expect(() => submit("google/veo-3", { duration: 5 })).toThrow("it takes 4, 6, 8 seconds")
    expect(() => submit("minimax/hailuo-02", { duration: 5 })).toThrow("it takes 6, 10 seconds")
    expect(() => submit("wan-video/wan-2.7-t2v", { duration: 16 })).toThrow("it takes 2 to 15 seconds")
  })

  test("the caller's fields stand inside the input, but none that costs more, calls elsewhere or takes the place of ours", () => {
    const extra = {
      seed: 7,
      prompt: "a wolf",
      n: 2,
      num_frames: 900,
      num_outputs: 4,
      webhook: "https://strangers.test",
      webhook_completed: "https://strangers.test",
      webhook_events_filter: ["completed"],
      duration: 60,
    }
    const body = { input: { seed: 7, prompt: "a fox in snow", duration: 5 } }
    expect(submit("someone/something", { extra }).call.body).toStrictEqual(body)
  })
})

describe("replies to a submit", () => {
  test("a prediction is polled and cancelled at its own addresses", () => {
    const submitted = readSubmit("starting")
    if (submitted.kind !== "accepted") throw new Error(submitted.kind)
    expect(submitted.vendorId).toBe(id)
    expect(replicate.poll(submitted.ref, context)).toStrictEqual({ method: "GET", url: `${base}/predictions/${id}` })
    const cancel = { method: "POST", url: `${base}/predictions/${id}/cancel` } as const
    expect(replicate.cancel?.(submitted.ref, context)).toStrictEqual(cancel)
  })

  test("one without addresses is found by its id", () => {
    const submitted = readSubmit("submitted without addresses")
    if (submitted.kind !== "accepted") throw new Error(submitted.kind)
    const elsewhere = { ...context, baseUrl: "http://127.0.0.1:9/v1" }
    expect(replicate.poll(submitted.ref, elsewhere).url).toBe(`http://127.0.0.1:9/v1/predictions/${id}`)
    expect(replicate.cancel?.(submitted.ref, elsewhere).url).toBe(`http://127.0.0.1:9/v1/predictions/${id}/cancel`)
  })

  // biome-ignore format: a table
  test.each([
    ["no credit", { kind: "refused", status: 402, message: "You have insufficient credit." }],
    ["wrong input", { kind: "refused", status: 422, message: "- input.prompt: prompt is required" }],
    ["throttled", { kind: "refused", status: 429, message: "Request was throttled. Your rate limit resets in ~30s." }],
    ["replicate's own error", { kind: "refused", status: 500, message: "There was an error." }],
    ["someone's error", { kind: "unreadable", why: "HTTP 502: Bad gateway" }],
  ] as const)("%s", (name, expected) => {
    expect<object>(readSubmit(name)).toEqual(expected)
  })

  test("an id in an error makes no job of it", () => {
    const named = replay(recording, "starting")
    expect(replicate.readSubmit({ ...named, status: 422 }, context).kind).toBe("refused")
    expect(replicate.readSubmit({ ...named, status: 502 }, context).kind).toBe("unreadable")
  })

  test("a success that names no job may still be one: nobody knows", () => {
    expect(readSubmit("submitted without an id").kind).toBe("unreadable")
  })
})

describe("replies to a poll", () => {
  // The machine's time is in every one that is done; it is never taken for the video's.
  // biome-ignore format: a table
  test.each([
    ["starting", { kind: "queued" }],
    ["processing", { kind: "running" }],
    ["processing with a part of its output", { kind: "running" }],
    ["a word of tomorrow", { kind: "running", oddWord: "warming" }],
    ["succeeded", { kind: "succeeded", url, seconds: null }],
    ["succeeded in other letters", { kind: "succeeded", url, seconds: null }],
    ["succeeded with a list", { kind: "succeeded", url, seconds: null }],
    ["succeeded with an object", { kind: "succeeded", url, seconds: null }],
    ["succeeded with objects", { kind: "succeeded", url, seconds: null }],
    ["succeeded with nothing", { kind: "failed", reason: "the vendor finished the job without a video" }],
    ["expired", { kind: "failed", reason: "the result has expired: the vendor has removed it" }],
    ["failed", { kind: "failed", reason: "The input or output was flagged as sensitive. (E005)" }],
    ["failed without a reason", { kind: "failed", reason: 'the prediction ended as "failed"' }],
    ["canceled", { kind: "failed", reason: 'the prediction ended as "canceled"' }],
    ["aborted", { kind: "failed", reason: 'the prediction ended as "aborted"' }],
    ["throttled", { kind: "unreadable", why: "HTTP 429: Request was throttled. Your rate limit resets in ~30s." }],
    ["someone else's status", { kind: "unreadable", why: "HTTP 200: try later" }],
    ["not found", { kind: "missing", why: "HTTP 404: The requested resource could not be found." }],
  ] as const)("%s", (name, expected) => {
    expect<object>(replicate.readPoll(replay(recording, name), { id }, context)).toEqual(expected)
  })

  test("what tells nothing is no verdict and no job", () => {
    for (const reply of oddReplies) {
      expect(["refused", "unreadable"]).toContain(replicate.readSubmit(reply, context).kind)
      expect(["running", "missing", "unreadable"]).toContain(replicate.readPoll(reply, { id }, context).kind)
    }
  })
})
