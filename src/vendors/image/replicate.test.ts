import { describe, expect, test } from "bun:test"
import type { ImageAsk } from "../../core/image-vendor.ts"
import { replay } from "../fixtures/recording.ts"
import recording from "./fixtures/replicate.json" with { type: "json" }
import { replicate } from "./replicate.ts"

const base = "https://api.replicate.com/v1"
const id = "rrr4z55ocneqzikepnug6xezpe"
const url = "https://replicate.delivery/xezq/x/out-0.webp"
const plain: ImageAsk = { prompt: "a fox", count: 1, size: null, extra: {} }
const context = { baseUrl: base, upstreamModel: "black-forest-labs/flux-schnell", settings: {} }
const wait = { prefer: "wait=1" }

function submit(upstreamModel: string, ask: Partial<ImageAsk> = {}) {
  return replicate.submit({ ...plain, ...ask }, { ...context, upstreamModel })
}

function readSubmit(name: string) {
  return replicate.readSubmit(replay(recording, name))
}

describe("requests", () => {
  test("a plain one waits for the result as long as the vendor lets it", () => {
    expect(submit("black-forest-labs/flux-schnell")).toStrictEqual({
      method: "POST",
      url: `${base}/models/black-forest-labs/flux-schnell/predictions`,
      headers: wait,
      body: { input: { prompt: "a fox" } },
    })
  })

  test("a rich one: the caller's fields stand inside the input and cannot ask for a call to elsewhere", () => {
    const extra = {
      seed: 7,
      output_format: "png",
      go_fast: true,
      num_outputs: 1,
      webhook: "https://x.test",
      user: "u",
      quality: "hd",
    }
    expect(
      submit("black-forest-labs/flux-dev", { count: 3, size: { width: 1536, height: 1024 }, extra }),
    ).toStrictEqual({
      method: "POST",
      url: `${base}/models/black-forest-labs/flux-dev/predictions`,
      headers: wait,
      body: {
        input: {
          seed: 7,
          output_format: "png",
          go_fast: true,
          num_outputs: 3,
          webhook: "https://x.test",
          prompt: "a fox",
          aspect_ratio: "3:2",
        },
      },
    })
  })

  test.each(["stability-ai/sdxl:39ed52f2", "39ed52f2"])("%s is run by its version", (model) => {
    expect(submit(model, { count: 2, size: { width: 768, height: 768 } })).toStrictEqual({
      method: "POST",
      url: `${base}/predictions`,
      headers: wait,
      body: { version: "39ed52f2", input: { prompt: "a fox", num_outputs: 2, width: 768, height: 768 } },
    })
  })

  // biome-ignore format: a table
  test.each([
    ["black-forest-labs/flux-1.1-pro", 1024, 1440, { aspect_ratio: "custom", width: 1024, height: 1440 }],
    ["black-forest-labs/flux-2-pro", 1008, 2048, { aspect_ratio: "custom", width: 1008, height: 2048 }],
    ["black-forest-labs/flux-1.1-pro-ultra", 1024, 1792, { aspect_ratio: "9:16" }],
    ["black-forest-labs/flux-kontext-pro", 1024, 1024, { aspect_ratio: "1:1" }],
    ["openai/gpt-image-1", 1536, 1024, { aspect_ratio: "3:2" }],
    ["recraft-ai/recraft-v3", 1365, 1024, { size: "1365x1024" }],
    ["someone/something", 1000, 10, { width: 1000, height: 10 }],
  ] as const)("%s is told of %ix%i in its own terms", (model, width, height, expected) => {
    expect(submit(model, { size: { width, height } }).body).toStrictEqual({ input: { prompt: "a fox", ...expected } })
  })

  test("fields of the dialect go to the models that know them", () => {
    const extra = { quality: "high", style: "realistic_image", background: "opaque" }
    expect(submit("openai/gpt-image-1", { count: 2, extra }).body).toStrictEqual({
      input: { quality: "high", background: "opaque", prompt: "a fox", number_of_images: 2 },
    })
    expect(submit("recraft-ai/recraft-v3", { extra }).body).toStrictEqual({
      input: { style: "realistic_image", prompt: "a fox" },
    })
  })

  test("sizes and counts that a model does not make are refused", () => {
    const size = { width: 1000, height: 300 }
    expect(() => submit("google/imagen-4", { size })).toThrow("aspect ratios 1:1, 9:16, 16:9, 3:4, 4:3")
    expect(() => submit("black-forest-labs/flux-1.1-pro", { size })).toThrow("sides in multiples of 32")
    expect(() => submit("google/imagen-4", { count: 2 })).toThrow("n: this model makes one image per request")
    expect(() => submit("black-forest-labs/flux-dev", { count: 5 })).toThrow("n: this model makes at most 4 images")
  })
})

describe("replies to a submit", () => {
  test("a prediction that is not finished is polled and cancelled at its own addresses", () => {
    const submitted = readSubmit("starting")
    if (submitted.kind !== "accepted") throw new Error(submitted.kind)
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
    ["done within the wait", { kind: "succeeded", images: [{ url }] }],
    ["failed within the wait", { kind: "failed", reason: "NSFW content detected. Try running it again, or try a different prompt." }],
    ["processing with a part of its output", { kind: "accepted" }],
    ["a word of tomorrow", { kind: "accepted" }],
    ["error in a 200", { kind: "failed", reason: "- input.prompt: prompt is required" }],
  ] as const)("%s", (name, expected) => {
    expect<object>(readSubmit(name)).toMatchObject(expected)
  })
})

describe("replies to a poll", () => {
  test.each(["starting", "processing", "processing with a part of its output", "a word of tomorrow"])(
    "%s: keep waiting",
    (name) => {
      expect(replicate.readPoll(replay(recording, name), {})).toEqual({ kind: "waiting" })
    },
  )

  // biome-ignore format: a table
  test.each([
    ["succeeded", { kind: "succeeded", images: [{ url }, { url: url.replace("-0", "-1") }] }],
    ["succeeded with one address", { kind: "succeeded", images: [{ url }] }],
    ["succeeded with an object", { kind: "succeeded", images: [{ url }] }],
    ["succeeded with data", { kind: "succeeded", images: [{ base64: "iVBORw0KGgo=" }] }],
    ["succeeded with nothing", { kind: "failed", reason: "the vendor finished the job without an image" }],
    ["expired", { kind: "failed", reason: "the result has expired: the vendor has removed it" }],
    ["failed", { kind: "failed", reason: "The input or output was flagged as sensitive. Please try again with different inputs. (E005)" }],
    ["failed without a reason", { kind: "failed", reason: 'the prediction ended as "failed"' }],
    ["canceled", { kind: "failed", reason: 'the prediction ended as "canceled"' }],
    ["aborted", { kind: "failed", reason: 'the prediction ended as "aborted"' }],
    ["throttled", { kind: "unreadable", why: "HTTP 429: Request was throttled. Your rate limit resets in ~30s." }],
    ["not found", { kind: "unreadable", why: "HTTP 404: The requested resource could not be found." }],
  ] as const)("%s", (name, expected) => {
    expect<object>(replicate.readPoll(replay(recording, name), {})).toEqual(expected)
  })
})
