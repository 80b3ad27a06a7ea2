import { describe, expect, test } from "bun:test"
import type { ImageAsk } from "../../core/image-vendor.ts"
import type { JsonValue } from "../../core/json.ts"
import { replay } from "../fixtures/recording.ts"
import { fal } from "./fal.ts"
import recording from "./fixtures/fal.json" with { type: "json" }

const base = "https://queue.fal.run"
const request = `${base}/fal-ai/flux/requests/80e732af-660e-45cd-bd63-580e4f2a94cc`
const plain: ImageAsk = { prompt: "a fox", count: 1, size: null, extra: {} }
const context = { baseUrl: base, upstreamModel: "fal-ai/flux/dev", settings: {} }

function submit(upstreamModel: string, ask: Partial<ImageAsk> = {}) {
  return fal.submit({ ...plain, ...ask }, { ...context, upstreamModel })
}

/** The reference of the recorded job, before and after it is said to be completed. */
function refs(name = "submitted"): { readonly status: JsonValue; readonly result: JsonValue } {
  const submitted = fal.readSubmit(replay(recording, name))
  if (submitted.kind !== "accepted") throw new Error(submitted.kind)
  const completed = fal.readPoll(replay(recording, "completed"), submitted.ref)
  if (completed.kind !== "continue") throw new Error(completed.kind)
  return { status: submitted.ref, result: completed.ref }
}

describe("requests", () => {
  test("a plain one is the bare input at the model's whole path", () => {
    expect(submit("fal-ai/flux/dev")).toStrictEqual({
      method: "POST",
      url: `${base}/fal-ai/flux/dev`,
      body: { prompt: "a fox" },
    })
  })

  test("a rich one: sizes as an object, the caller's fields beside them, none of the dialect's but the known one", () => {
    const extra = {
      seed: 7,
      image_size: "square",
      num_images: 1,
      output_format: "png",
      sync_mode: true,
      quality: "hd",
      user: "u",
    }
    expect(submit("fal-ai/flux/dev", { count: 4, size: { width: 1024, height: 768 }, extra })).toStrictEqual({
      method: "POST",
      url: `${base}/fal-ai/flux/dev`,
      body: {
        seed: 7,
        image_size: { width: 1024, height: 768 },
        num_images: 4,
        output_format: "png",
        sync_mode: true,
        prompt: "a fox",
      },
    })
  })

  test("what the caller says in fal's own terms stands where the request says nothing", () => {
    const extra = { image_size: "landscape_16_9", num_images: 2 }
    expect(submit("fal-ai/flux/dev", { extra }).body).toStrictEqual({ ...extra, prompt: "a fox" })
  })

  test("models that take an aspect ratio or a text get one", () => {
    const body = (model: string, width: number, height: number) => submit(model, { size: { width, height } }).body
    expect(body("fal-ai/flux-pro/v1.1-ultra", 1024, 1792)).toStrictEqual({ prompt: "a fox", aspect_ratio: "9:16" })
    expect(body("fal-ai/gpt-image-1/text-to-image", 1536, 1024)).toStrictEqual({
      prompt: "a fox",
      image_size: "1536x1024",
    })
  })

  test("sizes and counts that a model does not make are refused", () => {
    const size = { width: 1000, height: 300 }
    expect(() => submit("fal-ai/imagen4/preview", { size })).toThrow("aspect ratios 1:1, 16:9, 9:16, 3:4, 4:3")
    expect(() => submit("fal-ai/gpt-image-1/text-to-image", { size })).toThrow("1024x1024, 1536x1024, 1024x1536")
    expect(() => submit("fal-ai/imagen4/preview", { count: 5 })).toThrow(
      "n: this model makes at most 4 images per request",
    )
  })
})

describe("replies to a submit", () => {
  test("the returned addresses are used as given, though they leave out a part of the model's path", () => {
    const { status, result } = refs()
    expect(fal.poll(status, context)).toStrictEqual({ method: "GET", url: `${request}/status` })
    expect(fal.poll(result, context)).toStrictEqual({ method: "GET", url: request })
    expect(fal.cancel?.(result, context)).toStrictEqual({ method: "PUT", url: `${request}/cancel` })
  })

  test("a job without addresses is found below the first two parts of the model's name", () => {
    const { status, result } = refs("submitted without addresses")
    expect(fal.poll(status, context).url).toBe(`${request}/status`)
    expect(fal.poll(result, context).url).toBe(request)
    expect(fal.cancel?.(status, context).url).toBe(`${request}/cancel`)
  })

  test("an upstream at the synchronous address answers with the images themselves", () => {
    expect(fal.readSubmit(replay(recording, "result of one image"))).toEqual({
      kind: "succeeded",
      images: [{ url: "https://v3.fal.media/files/x/a.png" }],
    })
  })

  test("an error in a 200 is a refusal", () => {
    const expected = { kind: "failed", reason: "Application not found" } as const
    expect(fal.readSubmit(replay(recording, "error in a 200"))).toEqual(expected)
  })
})

describe("replies to a poll", () => {
  const { status, result } = refs()

  test.each(["in queue", "in progress", "a word of tomorrow"])("%s: keep waiting", (name) => {
    expect(fal.readPoll(replay(recording, name), status)).toEqual({ kind: "waiting" })
  })

  test("completed is not yet a success: the result is asked for", () => {
    expect(fal.readPoll(replay(recording, "completed"), status).kind).toBe("continue")
  })

  test("an error beside COMPLETED is the verdict", () => {
    const expected = { kind: "failed", reason: "Request timed out" } as const
    expect(fal.readPoll(replay(recording, "completed with an error"), status)).toEqual(expected)
  })

  test("a status that cannot be had is asked for again", () => {
    const expected = { kind: "unreadable", why: "HTTP 503: Service unavailable" } as const
    expect(fal.readPoll(replay(recording, "status not available"), status)).toEqual(expected)
  })

  // A picture flagged by the safety checker is delivered as fal delivers it: the caller may have turned the checker off.
  // biome-ignore format: a table
  test.each([
    ["result", { kind: "succeeded", images: [{ url: "https://v3.fal.media/files/x/a.jpg" }, { url: "https://v3.fal.media/files/x/b.jpg" }] }],
    ["result of one image", { kind: "succeeded", images: [{ url: "https://v3.fal.media/files/x/a.png" }] }],
    ["result as data", { kind: "succeeded", images: [{ base64: "/9j/4AAQ" }] }],
    ["result with nothing", { kind: "failed", reason: "the vendor finished the job without an image" }],
    ["result too early", { kind: "waiting" }],
    ["content policy", { kind: "failed", reason: "prompt: The content could not be processed because it contained material flagged by a content checker." }],
    ["runner failed", { kind: "failed", reason: "Runner crashed" }],
    ["client cancelled", { kind: "failed", reason: "Request was cancelled" }],
    ["gateway trouble", { kind: "unreadable", why: "HTTP 502" }],
    ["not allowed", { kind: "unreadable", why: "HTTP 403: Cannot access application" }],
    ["not found", { kind: "unreadable", why: "HTTP 404: Request not found" }],
  ] as const)("%s", (name, expected) => {
    expect<object>(fal.readPoll(replay(recording, name), result)).toEqual(expected)
  })
})
