import { describe, expect, test } from "bun:test"
import type { VideoAsk } from "../../core/video-vendor.ts"
import { replay } from "../fixtures/recording.ts"
import { mayCarryCredential } from "../hosts.ts"
import { findVendor } from "../presets.ts"
import { calls, recording } from "./fixtures/gemini.ts"
import { oddReplies } from "./fixtures/odd-replies.ts"
import { gemini } from "./gemini.ts"

const base = "https://generativelanguage.googleapis.com/v1beta"
const plain: VideoAsk = { prompt: "A lion in the savannah", size: null, duration: null, image: null, extra: {} }
const context = { baseUrl: base, upstreamModel: "veo-3.1-generate-preview", settings: {}, jobId: "vid_1" }
const byData = { mediaType: "image/png", base64: "iVBORw0KGgo=" }
const name = "models/veo-3.1-generate-preview/operations/2fh3k9"
const video = `${base}/files/x1y2:download?alt=media`
const hd = { width: 1920, height: 1080 }

function submit(upstreamModel: string, ask: Partial<VideoAsk> = {}) {
  return gemini.submit({ ...plain, ...ask }, { ...context, upstreamModel })
}

function parameters(ask: Partial<VideoAsk>) {
  return submit("veo-3.1-generate-preview", ask).call.body?.parameters
}

describe("requests", () => {
  test("from text: ratio, resolution, the length as a number, and one sample", () => {
    const size = { width: 1280, height: 720 }
    expect(submit("veo-3.1-generate-preview", { size })).toStrictEqual({ call: calls.text, seconds: 8 })
  })

  test("from a picture, which goes inside the request", () => {
    const expected = { call: calls["picture by data"], seconds: 4 }
    expect(submit("veo-3.0-fast-generate-001", { image: byData, duration: 4 })).toStrictEqual(expected)
  })

  test("addresses of pictures are not taken: the gateway has to fetch them first", () => {
    expect(gemini.images).toEqual({ byUrl: false, byData: true })
    expect(() => submit("veo-3.1-generate-preview", { image: { url: "https://ex.com/a.png" } })).toThrow(
      "internal error",
    )
  })

  test.each([
    [1280, 720, "16:9", "720p"],
    [720, 1280, "9:16", "720p"],
    [1920, 1080, "16:9", "1080p"],
    [1080, 1920, "9:16", "1080p"],
    [3840, 2160, "16:9", "4k"],
  ])("%ix%i is %s in %s", (width, height, aspectRatio, resolution) => {
    expect(parameters({ size: { width, height } })).toMatchObject({ aspectRatio, resolution })
  })

  test.each([
    [1080, 1080, "16:9, 9:16"],
    [640, 360, "720 (720p), 1080 (1080p), 2160 (4k)"],
    [2560, 1440, "720 (720p), 1080 (1080p), 2160 (4k)"],
  ])("%ix%i is refused with what it takes", (width, height, takes) => {
    expect(() => parameters({ size: { width, height } })).toThrow(takes)
  })

  test.each([
    ["veo-3.1-generate-preview", 5, "4, 6, 8 seconds"],
    ["veo-3.0-generate-001", 10, "4, 6, 8 seconds"],
    ["veo-2.0-generate-001", 4, "5 to 8 seconds"],
  ])("%s refuses %i seconds and says what it takes", (model, duration, takes) => {
    expect(() => submit(model, { duration })).toThrow(takes)
  })

  test("sharper resolutions, last frames and reference pictures come in eight seconds only", () => {
    const picture = { bytesBase64Encoded: "AA==", mimeType: "image/png" }
    for (const ask of [
      { size: hd },
      { size: { width: 3840, height: 2160 } },
      { extra: { lastFrame: picture } },
      { extra: { referenceImages: [{ image: picture }] } },
    ]) {
      expect(() => parameters({ ...ask, duration: 6 })).toThrow("it takes 8 seconds")
      expect(parameters({ ...ask, duration: 8 })).toMatchObject({ durationSeconds: 8 })
      expect(parameters(ask)).toMatchObject({ durationSeconds: 8 })
    }
    expect(parameters({ size: { width: 1280, height: 720 }, duration: 6 })).toMatchObject({ durationSeconds: 6 })
  })

  test("of models that are not known here the vendor is the judge", () => {
    expect(submit("veo-9", { duration: 30, size: hd }).seconds).toBe(30)
    expect(submit("veo-9").seconds).toBe(8)
  })

  test("the caller's fields go where they belong, without what costs more, tells others or is an error here", () => {
    const lastFrame = { bytesBase64Encoded: "AA==", mimeType: "image/png" }
    const extra = {
      negativePrompt: "blur",
      personGeneration: "allow_adult",
      lastFrame,
      sampleCount: 4,
      n: 4,
      durationSeconds: 60,
      webhookConfig: { uri: "https://elsewhere.test" },
      outputGcsUri: "gs://elsewhere",
      pubsubTopic: "t",
      seed: 7,
      generateAudio: false,
      fps: 24,
      compressionQuality: "LOSSLESS",
      resizeMode: "CROP",
      mask: {},
      prompt: "a wolf",
    }
    expect(submit("veo-3.1-generate-preview", { extra }).call.body).toStrictEqual({
      instances: [{ prompt: plain.prompt, lastFrame }],
      parameters: { negativePrompt: "blur", personGeneration: "allow_adult", durationSeconds: 8, sampleCount: 1 },
    })
  })

  test("a job is polled by the whole name of its operation", () => {
    expect(gemini.poll({ name }, context)).toStrictEqual({ method: "GET", url: `${base}/${name}` })
  })

  test("the preset's address and the place of its credential are those of this API", () => {
    expect(findVendor("gemini")?.baseUrl).toBe(base)
    expect(findVendor("gemini")?.authFor?.video).toBe("x-goog-api-key")
  })
})

describe("replies to a submit", () => {
  // biome-ignore format: a table
  test.each([
    ["submitted", { kind: "accepted", ref: { name }, vendorId: name }],
    ["submitted with a name that leaves the path", { kind: "unreadable" }],
    ["submitted with an address", { kind: "unreadable" }],
    ["bad argument", { kind: "refused", status: 400, message: "durationSeconds is out of range (INVALID_ARGUMENT)" }],
    ["wrong key", { kind: "refused", status: 401, message: "API key not valid. (INVALID_ARGUMENT)" }],
    ["forbidden", { kind: "refused", status: 403, message: "Permission denied. (PERMISSION_DENIED)" }],
    ["no such model", { kind: "refused", status: 404, message: "models/veo-9 is not found (NOT_FOUND)" }],
    ["exhausted", { kind: "refused", status: 429, message: "You exceeded your current quota. (RESOURCE_EXHAUSTED)" }],
    ["exhausted, in a list", { kind: "refused", status: 429, message: "You exceeded your current quota. (RESOURCE_EXHAUSTED)" }],
    ["exhausted, in a 200", { kind: "refused", status: 429, message: "You exceeded your current quota. (RESOURCE_EXHAUSTED)" }],
    ["broken", { kind: "refused", status: 500, message: "An internal error has occurred. (INTERNAL)" }],
    ["unavailable", { kind: "refused", status: 503, message: "The model is overloaded. (UNAVAILABLE)" }],
    ["timed out", { kind: "unreadable", why: "HTTP 504: Deadline expired." }],
  ] as const)("%s", (reply, expected) => {
    expect<object>(gemini.readSubmit(replay(recording, reply), context)).toMatchObject(expected)
  })
})

describe("replies to a poll", () => {
  const filtered = "refused by the vendor's content filter: "
  // biome-ignore format: a table
  test.each([
    ["running", { kind: "running" }],
    ["running, said aloud", { kind: "running" }],
    ["succeeded", { kind: "succeeded", url: video, needsCredential: true, seconds: null }],
    ["succeeded with a key in the address", { kind: "succeeded", url: video, needsCredential: true, seconds: null }],
    ["succeeded inside the reply", { kind: "failed", reason: "the vendor put the video into its reply instead of giving its address" }],
    ["succeeded with nothing", { kind: "failed", reason: "the vendor finished the job without a video" }],
    ["succeeded in another API's shape", { kind: "failed", reason: "the vendor finished the job without a video" }],
    ["filtered", { kind: "failed", reason: `${filtered}We encountered an issue with the audio for your prompt.` }],
    ["filtered without a reason", { kind: "failed", reason: `${filtered}the vendor gave no reason` }],
    ["failed", { kind: "failed", reason: "Internal error" }],
    ["failed without a reason", { kind: "failed", reason: "the job failed" }],
    ["done with neither", { kind: "unreadable" }],
    ["no such model", { kind: "missing", why: "HTTP 404: models/veo-9 is not found" }],
    ["wrong key", { kind: "unreadable", why: "HTTP 400: API key not valid." }],
    ["exhausted", { kind: "unreadable", why: "HTTP 429: You exceeded your current quota." }],
    ["unavailable", { kind: "unreadable", why: "HTTP 503: The model is overloaded." }],
  ] as const)("%s", (reply, expected) => {
    expect<object>(gemini.readPoll(replay(recording, reply), { name }, context)).toMatchObject(expected)
  })

  test("the credential may go to the video's address, also where the upstream is another host, and nowhere else", () => {
    expect(mayCarryCredential(video, "https://proxy.test/v1beta", gemini.hosts)).toBeTrue()
    expect(mayCarryCredential("https://googleapis.com.elsewhere.test/x", base, gemini.hosts)).toBeFalse()
  })
})

test("odd replies are neither thrown over nor taken for a job or its success", () => {
  for (const reply of oddReplies) {
    expect(["refused", "unreadable"]).toContain(gemini.readSubmit(reply, context).kind)
    if (reply.status < 400 || reply.status >= 500) expect(gemini.readSubmit(reply, context).kind).toBe("unreadable")
    expect(["missing", "unreadable"]).toContain(gemini.readPoll(reply, { name }, context).kind)
  }
})

test("a damaged reference is an error of ours, not a call to somewhere else", () => {
  for (const ref of [{}, null, "x", []]) expect(() => gemini.poll(ref, context)).toThrow("internal error")
})
