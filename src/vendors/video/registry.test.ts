import { describe, expect, test } from "bun:test"
import { GatewayError } from "../../core/errors.ts"
import type { JsonObject, JsonValue } from "../../core/json.ts"
import type { VideoAsk, VideoImage } from "../../core/video-vendor.ts"
import { replyOf } from "../fixtures/recording.ts"
import { vendors } from "../presets.ts"
import { oddReplies } from "./fixtures/odd-replies.ts"
import { videoVendors } from "./registry.ts"

test("every vendor with a path for videos has an adapter, and every adapter a vendor", () => {
  const offered = vendors.filter((vendor) => vendor.paths.video !== undefined).map((vendor) => vendor.name)
  expect([...videoVendors.keys()].sort()).toEqual(offered.sort())
})

const base = "https://vendor.test/base"
const context = { baseUrl: base, upstreamModel: "owner/model", settings: {}, jobId: "job-1" }
const plain: VideoAsk = { prompt: "a fox", size: null, duration: null, image: null, extra: {} }
const byUrl: VideoImage = { url: "https://pictures.test/fox.png" }
const byData: VideoImage = { mediaType: "image/png", base64: "iVBORw0KGgo=" }

/** Names of every vendor's models: another vendor's are unknown to an adapter, and it has to take those too. */
// biome-ignore format: a list
const modelNames = [
  "owner/model", "kling-v3", "kling-v2-6", "doubao-seedance-1-0-pro", "wan2.2-t2v-plus", "wan2.5-t2v", "wan3-t2v", "veo-3.1", "veo-2",
  "gen4.5", "gen4_turbo", "seedance2", "hailuo3", "MiniMax-H3", "MiniMax-Hailuo-02", "I2V-01", "grok-imagine-video", "viduq1", "viduq3",
  "fal-ai/veo3", "fal-ai/minimax/video-01", "fal-ai/kling-video/v3/pro/text-to-video", "google/veo-3", "minimax/video-01", "sora-2", "cogvideox-3",
]

/** A job's id in all the places where vendors put it. */
function accepted(id: string): JsonObject {
  const within = { task_id: id }
  return { id, request_id: id, task_id: id, name: `models/m/operations/${id}`, code: 0, data: within, output: within }
}

/** A status word in all the places where vendors put it. */
function saying(word: JsonValue): JsonObject {
  const within = { task_status: word, status: word }
  return { ...accepted("j"), status: word, state: word, task_status: word, data: within, output: within, task: within }
}

/** The fields by which vendors, or those before them, are told where to send a result. */
// biome-ignore format: a list
const callbacks = [
  "callback", "callback_url", "callbackUrl", "callBackUrl", "webhook", "webhook_url", "webhookUrl", "webHookUrl", "web_hook", "webhookConfig",
  "webhook_completed", "webhook_events_filter", "fal_webhook", "notify_url", "notifyUrl", "notify_hook",
]

/** Names and ids that would lead elsewhere if they were put into an address as they are. */
const crooked = [
  "@evil.test/x",
  "//evil.test/x",
  "../../../x",
  "x?y=1#z",
  "\\\\evil.test\\x",
  "https://evil.test/",
  ":80/x",
]

describe.each([...videoVendors])("%s", (name, vendor) => {
  const images: readonly (VideoImage | null)[] = [
    null,
    ...(vendor.images.byUrl ? [byUrl] : []),
    ...(vendor.images.byData ? [byData] : []),
  ]

  function acceptedRef(id: string): JsonValue {
    const submitted = vendor.readSubmit(replyOf(accepted(id)), context)
    if (submitted.kind !== "accepted") throw new Error(`${name} does not take a job's id from where others have it`)
    return submitted.ref
  }

  /** What a submit leads to: a call, or the text of its refusal. */
  function outcome(ask: Partial<VideoAsk>, upstreamModel: string) {
    try {
      return vendor.submit({ ...plain, ...ask }, { ...context, upstreamModel })
    } catch (error) {
      if (error instanceof GatewayError && error.code === "invalid_parameter") return error.message
      throw error
    }
  }

  test("is registered under its own name and takes pictures in some way", () => {
    expect(vendor.vendor).toBe(name)
    expect(vendor.images.byUrl || vendor.images.byData).toBe(true)
    expect(vendor.locate === undefined).toBe(vendor.readLocate === undefined)
  })

  test("a plain request becomes a call, from text and from a picture in every way it takes one", () => {
    for (const image of images) {
      const { call, seconds } = vendor.submit({ ...plain, image }, context)
      expect(call.method).toBe("POST")
      const sent = JSON.stringify(call.body)
      expect(sent).toContain("a fox")
      if (image !== null) expect(sent).toContain("url" in image ? image.url : image.base64)
      expect(seconds === null || (Number.isInteger(seconds) && seconds > 0)).toBe(true)
    }
  })

  test("whatever models are asked for, there is a call or a refusal that says what they take", () => {
    const sides = [1, 480, 720, 1080, 1920, 8192]
    const sizes = [null, ...sides.flatMap((width) => sides.map((height) => ({ width, height })))]
    const told = /^(size|duration): this model .*(it takes \S|leave it out)|^image_url: .* give it one$/
    const silent: string[] = []
    for (const model of modelNames) {
      for (const image of images) {
        for (const size of sizes) {
          for (const duration of [null, 1, 5, 60]) {
            const found = outcome({ image, size, duration }, model)
            const asFitting =
              typeof found === "string" ? told.test(found) : found.seconds === (duration ?? found.seconds)
            if (!asFitting) silent.push(`${model}: ${JSON.stringify({ size, duration, found })}`)
          }
        }
      }
    }
    expect(silent).toEqual([])
  })

  test("a length that nobody makes is refused with those that the model makes", () => {
    for (const model of modelNames) {
      const found = outcome({ image: images.at(-1)!, duration: 61 }, model)
      expect(found).toMatch(/^duration: this model .*(it takes [\d, to]+ seconds|leave it out)$/)
    }
  })

  test("the caller's own fields go along but cannot take the place of the prompt, the model or the number of videos", () => {
    const extra = { prompt: "a wolf", model: "a-dearer-one", n: 4, seed_of_mine: 7 }
    for (const image of images) {
      const sent = JSON.stringify(vendor.submit({ ...plain, image, extra }, context).call)
      expect(sent).toContain('"seed_of_mine":7')
      expect(sent).not.toMatch(/a wolf|a-dearer-one|"n":/)
    }
  })

  test("no field of the caller's sends the result past the gateway", () => {
    const extra = Object.fromEntries(callbacks.map((field) => [field, { url: "https://past-the-gateway.test" }]))
    for (const model of modelNames) {
      for (const image of images) {
        const found = outcome({ image, extra }, model)
        expect(JSON.stringify(found)).not.toMatch(/past-the-gateway|callback|web_?hook|notify/i)
      }
    }
  })

  test("calls stay at the upstream's own host, whatever a model is called", () => {
    for (const upstreamModel of [...crooked, ...modelNames]) {
      const odd = { ...context, upstreamModel }
      const submits = images.map((image) => outcome({ image }, upstreamModel))
      const calls = submits.filter((found) => typeof found !== "string").map(({ call }) => call)
      for (const { url } of [...calls, vendor.poll(acceptedRef("j"), odd)]) {
        expect(new URL(url).origin).toBe("https://vendor.test")
      }
    }
  })

  test("calls stay below the upstream's own address, whatever a job is called", () => {
    for (const id of ["j", ...crooked]) {
      const odd = { ...context, jobId: id }
      const submitted = vendor.readSubmit(replyOf(accepted(id)), odd)
      const calls = submitted.kind === "accepted" ? [vendor.poll(submitted.ref, odd)] : []
      if (submitted.kind === "accepted" && vendor.cancel !== undefined) calls.push(vendor.cancel(submitted.ref, odd))
      if (vendor.locate !== undefined) calls.push(vendor.locate(odd))
      for (const { url } of calls) expect(new URL(url).href).toStartWith(`${base}/`)
    }
  })

  test("replies of no known shape are neither thrown over nor taken for videos", () => {
    const refs = [acceptedRef("j"), { id: "i", stage: "result" }, { task: "t", version: "v2" }, null, "x", [], {}]
    for (const reply of oddReplies) {
      expect(["accepted", "refused", "unreadable"]).toContain(vendor.readSubmit(reply, context).kind)
      for (const ref of refs) expect(vendor.readPoll(reply, ref, context).kind).not.toBe("succeeded")
      if (vendor.readLocate !== undefined) expect(vendor.readLocate(reply, context).kind).not.toBe("found")
    }
  })

  test("a status word that nobody has told us about keeps the job going", () => {
    for (const word of ["a_word_of_tomorrow", "toString", "constructor", "__proto__"]) {
      expect(vendor.readPoll(replyOf(saying(word)), acceptedRef("j"), context).kind).toBe("running")
    }
  })

  test("trouble with the asking is no verdict on the job", () => {
    for (const status of [401, 403, 408, 425, 429, 500, 502, 503, 504]) {
      const progress = vendor.readPoll(
        replyOf({ ...saying("failed"), detail: "try later" }, status),
        acceptedRef("j"),
        context,
      )
      expect(progress.kind).toBe("unreadable")
    }
    expect(vendor.readPoll(replyOf({ detail: "no such job" }, 404), acceptedRef("j"), context).kind).toBe("missing")
  })

  test("a damaged reference is an error of ours, not a call to somewhere else", () => {
    for (const ref of [{}, null, "x", []]) expect(() => vendor.poll(ref, context)).toThrow("internal error")
  })

  test("long texts of a vendor are cut to a readable length", () => {
    const long = "x".repeat(5_000)
    const reply = replyOf(
      { code: 7, reason: long, message: long, detail: long, error: { code: long, message: long } },
      400,
    )
    expect(JSON.stringify(vendor.readSubmit(reply, context)).length).toBeLessThan(700)
  })
})
