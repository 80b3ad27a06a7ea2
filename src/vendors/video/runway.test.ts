import { describe, expect, test } from "bun:test"
import type { VideoAsk } from "../../core/video-vendor.ts"
import { replay, replyOf } from "../fixtures/recording.ts"
import { findVendor } from "../presets.ts"
import { oddReplies } from "./fixtures/odd-replies.ts"
import { calls, recording } from "./fixtures/runway.ts"
import { runway } from "./runway.ts"

const context = {
  baseUrl: "https://api.dev.runwayml.com",
  upstreamModel: "gen4.5",
  settings: {},
  jobId: "vid_01HX",
}
const plain: VideoAsk = { prompt: "A fox running through snow", size: null, duration: null, image: null, extra: {} }
const picture = { url: "https://pictures.test/fox.png" }
const ref = { id: "497f6eca-6276-4993-bfeb-53cbbbba6f08" }

function submit(upstreamModel: string, ask: Partial<VideoAsk> = {}) {
  return runway.submit({ ...plain, ...ask }, { ...context, upstreamModel })
}

/** What the body says of the size, and nothing else. */
function shape(upstreamModel: string, ask: Partial<VideoAsk>) {
  const { ratio, resolution } = submit(upstreamModel, ask).call.body ?? {}
  return { ratio, resolution }
}

const imageOf = (from: "text" | "a picture") => (from === "text" ? null : picture)
const readSubmit = (name: string) => runway.readSubmit(replay(recording, name), context)
const readPoll = (name: string) => runway.readPoll(replay(recording, name), ref, context)

describe("requests", () => {
  test("text-to-video: the ratio that the model wants is said where the caller names none", () => {
    expect(submit("gen4.5")).toStrictEqual({ seconds: 5, call: calls.fromText })
  })

  test("image-to-video, by address and by data: the picture is the first frame", () => {
    const byUrl = submit("gen4.5", { image: picture, duration: 10, size: { width: 960, height: 960 } })
    expect(byUrl).toStrictEqual({ seconds: 10, call: calls.fromImage })
    const byData = submit("gen4_turbo", { image: { mediaType: "image/png", base64: "iVBORw0KGgo=" } })
    expect(byData).toStrictEqual({ seconds: 5, call: calls.fromData })
  })

  test("the version that every call needs is the preset's header", () => {
    expect(findVendor("runway")?.headers).toEqual({ "x-runway-version": "2024-11-06" })
    expect(submit("gen4.5").call).not.toContainKey("headers")
  })

  test("a model that only goes on from a picture refuses text", () => {
    expect(() => submit("gen4_turbo")).toThrow("image_url: this model makes videos from a picture only")
  })

  test("the caller's fields go along, but for those that cost more and the gateway's own", () => {
    const extra = {
      seed: 7,
      ratio: "720:1280",
      contentModeration: { publicFigureThreshold: "low" },
      outputFormat: "prores",
      proresProfile: "4444",
      duration: "auto",
      model: "veo3.1",
      promptText: "A wolf",
      prompt: "A wolf",
    }
    expect(submit("gen4.5", { extra }).call.body).toStrictEqual({
      seed: 7,
      ratio: "720:1280",
      contentModeration: { publicFigureThreshold: "low" },
      model: "gen4.5",
      promptText: "A fox running through snow",
      duration: 5,
    })
    expect(shape("gen4.5", { extra, size: { width: 1280, height: 720 } }).ratio).toBe("1280:720")
  })

  // biome-ignore format: a table
  test.each([
    ["gen4.5", "text", 720, 1280, { ratio: "720:1280" }],
    ["gen4.5", "a picture", 1584, 672, { ratio: "1584:672" }],
    ["veo3.1", "text", 1920, 1080, { ratio: "1920:1080" }],
    ["veo3.1_fast", "a picture", 1080, 1920, { ratio: "1080:1920" }],
    ["seedance2", "text", 3840, 2160, { ratio: "3840:2160" }],
    ["seedance2_mini", "a picture", 864, 496, { ratio: "864:496" }],
    ["seedance2_5", "text", 854, 480, { ratio: "854:480" }],
    ["hailuo3", "text", 2560, 1440, { ratio: "16:9", resolution: "2k" }],
    ["hailuo3", "a picture", 768, 1024, { resolution: "768p" }],
    ["happyhorse_1_0", "text", 1662, 1248, { ratio: "1662:1248" }],
    ["happyhorse_1_0", "a picture", 1280, 720, { resolution: "720p" }],
    ["wan3", "text", 832, 480, { ratio: "832:480" }],
    ["wan3_prime", "a picture", 832, 480, { ratio: "auto_480p" }],
    ["grok_imagine_1_5", "text", 1080, 1080, { ratio: "1:1", resolution: "1080p" }],
    ["grok_imagine_1_5", "a picture", 1280, 720, { resolution: "720p" }],
    ["gen9", "text", 1000, 400, { ratio: "1000:400" }],
  ] as const)("%s from %s is told of %ix%i in its own terms", (model, from, width, height, expected) => {
    expect<object>(shape(model, { image: imageOf(from), size: { width, height } })).toEqual(expected)
  })

  test("without a size only those that want one are told", () => {
    expect<object>(shape("veo3.1", {})).toEqual({ ratio: "1280:720" })
    expect<object>(shape("hailuo3", {})).toEqual({ ratio: "16:9" })
    for (const model of ["seedance2", "happyhorse_1_0", "wan3", "grok_imagine_1_5", "gen9"]) {
      expect<object>(shape(model, {})).toEqual({})
      expect<object>(shape(model, { image: picture })).toEqual({})
    }
  })

  test.each([
    ["gen4.5", "text", 960, 960, "it takes 1280x720, 720x1280"],
    ["gen4.5", "a picture", 1920, 1080, "1280x720, 720x1280, 1104x832, 960x960, 832x1104, 1584x672"],
    ["veo3.1", "text", 1280, 768, "1280x720, 720x1280, 1080x1920, 1920x1080"],
    ["seedance2_fast", "text", 1920, 1080, "992x432, 864x496"],
    ["hailuo3", "text", 1920, 1080, "768 (768p), 1440 (2k)"],
    ["grok_imagine_1_5", "text", 1680, 720, "16:9, 9:16, 1:1, 4:3, 3:4, 3:2, 2:3"],
  ] as const)("%s from %s refuses %ix%i and says what it takes", (model, from, width, height, takes) => {
    expect(() => submit(model, { image: imageOf(from), size: { width, height } })).toThrow(takes)
  })

  test("lengths", () => {
    expect(() => submit("gen4.5", { duration: 11 })).toThrow("it takes 2 to 10 seconds")
    expect(() => submit("veo3.1", { duration: 5 })).toThrow("it takes 4, 6, 8 seconds")
    expect(submit("veo3.1").seconds).toBe(8)
    expect(submit("seedance2_5", { duration: 30 }).call.body).toMatchObject({ duration: 30 })
  })
})

describe("replies to a submit", () => {
  test("accepted, asked after and cancelled at its own address", () => {
    expect(readSubmit("submitted")).toEqual({ kind: "accepted", ref, vendorId: ref.id })
    expect(runway.poll(ref, context)).toStrictEqual(calls.poll)
    expect(runway.cancel?.(ref, context)).toStrictEqual(calls.cancel)
    expect(() => runway.poll({}, context)).toThrow("internal error")
  })

  test.each([
    ["invalid body", 400, "Validation of body failed; promptText: Too many characters; Unknown combination"],
    ["no credits", 402, "You do not have enough credits to run this task."],
    ["wrong key", 401, "Unauthorized"],
    ["daily limit", 429, "You have reached the daily task limit"],
    ["trouble of its own", 503, "Service unavailable"],
  ])("%s: refused", (name, status, message) => {
    expect(readSubmit(name)).toEqual({ kind: "refused", status, message })
  })

  test("no id in a 200, or another server's error: nobody knows", () => {
    expect(readSubmit("submitted without an id").kind).toBe("unreadable")
    for (const status of [500, 502, 503, 504]) {
      const reply = { status, headers: {}, json: null, text: "<html>bad gateway</html>" }
      expect(runway.readSubmit(reply, context).kind).toBe("unreadable")
    }
  })
})

describe("replies to a poll", () => {
  // biome-ignore format: a table
  test.each([
    ["pending", { kind: "queued" }],
    ["throttled", { kind: "queued" }],
    ["running", { kind: "running" }],
    ["a word of tomorrow", { kind: "running", oddWord: "reviewing" }],
    ["succeeded", { kind: "succeeded", url: "https://dnznrvs05pmza.cloudfront.net/x.mp4?_jwt=abc", seconds: null }],
    ["succeeded with nothing", { kind: "failed", reason: "the vendor finished the job without a video" }],
    ["failed by moderation", { kind: "failed", reason: "refused by the vendor's moderation: The text did not pass moderation. (SAFETY.INPUT.TEXT)" }],
    ["failed by bad output", { kind: "failed", reason: "An unexpected error occurred. (INTERNAL.BAD_OUTPUT.CODE01)" }],
    ["failed by a bad asset", { kind: "failed", reason: "the job failed (ASSET.INVALID)" }],
    ["failed without a reason", { kind: "failed", reason: "the job failed" }],
    ["cancelled", { kind: "failed", reason: "the job was cancelled at the vendor" }],
    ["deleted", { kind: "missing", why: "HTTP 404: Not found" }],
    ["wrong key at a poll", { kind: "unreadable", why: "HTTP 401: Unauthorized" }],
    ["poll rate limited", { kind: "unreadable", why: "HTTP 429: Too many requests" }],
  ] as const)("%s", (name, expected) => {
    expect<object>(readPoll(name)).toStrictEqual(expected)
  })

  test("words are read whatever their case", () => {
    expect(runway.readPoll(replyOf({ status: " Running " }), ref, context)).toEqual({ kind: "running" })
  })
})

test("replies of no known shape are neither thrown over nor taken for jobs or videos", () => {
  const own = [
    { status: "SUCCEEDED", output: "x" },
    { status: "SUCCEEDED", output: ["ftp://x/y"] },
    { error: [], issues: [1] },
  ]
  for (const reply of [...oddReplies, ...own.map((json) => replyOf(json))]) {
    expect(runway.readSubmit(reply, context).kind).not.toBe("accepted")
    const { kind } = runway.readPoll(reply, null, context)
    expect(kind).not.toBe("succeeded")
    if (reply.status >= 300) expect(kind).toBe(reply.status === 404 ? "missing" : "unreadable")
  }
})
