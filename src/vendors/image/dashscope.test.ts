import { describe, expect, test } from "bun:test"
import type { ImageAsk } from "../../core/image-vendor.ts"
import { replay } from "../fixtures/recording.ts"
import { dashscope } from "./dashscope.ts"
import recording from "./fixtures/dashscope.json" with { type: "json" }

const base = "https://dashscope-intl.aliyuncs.com"
const task = "0385dc79-5ff8-4d82-bcb6-7ac1f7b2d2a1"
const ref = { task }
const image = "https://dashscope-result-sh.oss-cn-shanghai.aliyuncs.com/1d/93/a.png?Expires=1795180000"
const second = image.replace("a.png", "b.png")
const plain: ImageAsk = { prompt: "a fox", count: 1, size: null, extra: {} }

function submit(upstreamModel: string, ask: Partial<ImageAsk> = {}) {
  return dashscope.submit({ ...plain, ...ask }, { baseUrl: base, upstreamModel, settings: {} })
}

function poll(name: string) {
  return dashscope.readPoll(replay(recording, name), ref)
}

describe("requests", () => {
  test("a plain one says how many images, since some models make four of themselves", () => {
    expect(submit("wan2.2-t2i-flash")).toStrictEqual({
      method: "POST",
      url: `${base}/api/v1/services/aigc/text2image/image-synthesis`,
      headers: { "x-dashscope-async": "enable" },
      body: { model: "wan2.2-t2i-flash", input: { prompt: "a fox" }, parameters: { n: 1 } },
    })
  })

  test("a rich one: sizes with an asterisk, the negative prompt beside the prompt, the caller's fields as parameters", () => {
    const extra = {
      negative_prompt: "blur",
      prompt_extend: false,
      seed: 7,
      n: 9,
      size: "x",
      quality: "hd",
      user: "u",
      style: "vivid",
    }
    expect(submit("wan2.5-t2i-preview", { count: 4, size: { width: 1280, height: 1440 }, extra })).toStrictEqual({
      method: "POST",
      url: `${base}/api/v1/services/aigc/text2image/image-synthesis`,
      headers: { "x-dashscope-async": "enable" },
      body: {
        model: "wan2.5-t2i-preview",
        input: { negative_prompt: "blur", prompt: "a fox" },
        parameters: { prompt_extend: false, seed: 7, n: 4, size: "1280*1440" },
      },
    })
  })

  test("newer Wan models are asked in a conversation, as a job", () => {
    expect(
      submit("wan2.6-t2i", { size: { width: 1280, height: 1280 }, extra: { negative_prompt: "blur" } }),
    ).toStrictEqual({
      method: "POST",
      url: `${base}/api/v1/services/aigc/image-generation/generation`,
      headers: { "x-dashscope-async": "enable" },
      body: {
        model: "wan2.6-t2i",
        input: { messages: [{ role: "user", content: [{ text: "a fox" }] }] },
        parameters: { negative_prompt: "blur", n: 1, size: "1280*1280" },
      },
    })
  })

  test("models that only answer at once are not asked for a job", () => {
    expect(submit("qwen-image-max")).toStrictEqual({
      method: "POST",
      url: `${base}/api/v1/services/aigc/multimodal-generation/generation`,
      body: {
        model: "qwen-image-max",
        input: { messages: [{ role: "user", content: [{ text: "a fox" }] }] },
        parameters: {},
      },
    })
  })

  test.each([
    ["wanx2.1-t2i-turbo", "text2image/image-synthesis"],
    ["wanx-v1", "text2image/image-synthesis"],
    ["qwen-image", "text2image/image-synthesis"],
    ["qwen-image-plus-2026-01-09", "text2image/image-synthesis"],
    ["flux-schnell", "text2image/image-synthesis"],
    ["wan2.7-image-pro", "image-generation/generation"],
    ["wan3.0-image", "image-generation/generation"],
    ["qwen-image-3.0-pro", "multimodal-generation/generation"],
    ["z-image-turbo", "multimodal-generation/generation"],
  ])("%s is asked at %s", (model, path) => {
    expect(submit(model).url).toBe(`${base}/api/v1/services/aigc/${path}`)
  })

  test.each([
    ["qwen-image", 1024, 1024, "1664x928, 1472x1104, 1328x1328, 1104x1472, 928x1664"],
    ["wan2.2-t2i-plus", 1536, 1024, "sides from 512 to 1440 pixels"],
    ["wan2.5-t2i-preview", 1024, 1024, "from 1280x1280 to 1440x1440"],
    ["wan2.7-image", 4096, 4096, "from 768x768 to 2048x2048"],
    ["z-image-turbo", 256, 256, "from 512x512 to 2048x2048"],
  ])("%s refuses %ix%i and says what it takes", (model, width, height, takes) => {
    expect(() => submit(model, { size: { width, height } })).toThrow(takes)
  })

  test("more images than a model makes are refused", () => {
    expect(() => submit("qwen-image", { count: 2 })).toThrow("n: this model makes one image per request")
    expect(() => submit("wan2.6-t2i", { count: 5 })).toThrow("n: this model makes at most 4 images per request")
    expect(submit("flux-schnell", { count: 9 }).body).toHaveProperty("parameters", { n: 9 })
  })

  test("a job is polled and cancelled by its task id, in the region that took it", () => {
    const context = { baseUrl: base, upstreamModel: "wan2.6-t2i", settings: {} }
    expect(dashscope.poll(ref, context)).toStrictEqual({ method: "GET", url: `${base}/api/v1/tasks/${task}` })
    expect(dashscope.cancel?.(ref, context)).toStrictEqual({
      method: "POST",
      url: `${base}/api/v1/tasks/${task}/cancel`,
    })
    expect(dashscope.poll({ task: "../x?y" }, context).url).toBe(`${base}/api/v1/tasks/..%2Fx%3Fy`)
  })
})

describe("replies to a submit", () => {
  // biome-ignore format: a table
  test.each([
    ["submitted", { kind: "accepted", ref }],
    ["answered at once", { kind: "succeeded", images: [{ url: image }] }],
    ["answered at once, empty", { kind: "failed", reason: "the vendor finished the job without an image" }],
    ["submitted and failed at once", { kind: "failed", reason: "size is invalid (InvalidParameter)" }],
    ["error in a 200", { kind: "failed", reason: "refused by the vendor's moderation: Input data may contain inappropriate content. (DataInspectionFailed)" }],
  ] as const)("%s", (name, expected) => {
    expect(dashscope.readSubmit(replay(recording, name))).toEqual(expected)
  })
})

describe("replies to a poll", () => {
  test.each(["pending", "suspended", "pre-processing", "running", "post-processing", "a word of tomorrow"])(
    "%s: keep waiting",
    (name) => {
      expect(poll(name)).toEqual({ kind: "waiting" })
    },
  )

  // biome-ignore format: a table
  test.each([
    ["succeeded", { kind: "succeeded", images: [{ url: image }, { url: second }] }],
    ["succeeded in part", { kind: "succeeded", images: [{ url: image }] }],
    ["succeeded as a conversation", { kind: "succeeded", images: [{ url: image }, { url: second }] }],
    ["succeeded with errors only", { kind: "failed", reason: "refused by the vendor's moderation: Output data may contain inappropriate content. (DataInspectionFailed)" }],
    ["succeeded with nothing", { kind: "failed", reason: "the vendor finished the job without an image" }],
    ["moderated", { kind: "failed", reason: "refused by the vendor's moderation: Input data may contain inappropriate content. (DataInspectionFailed)" }],
    ["failed", { kind: "failed", reason: "Internal server error! (InternalError)" }],
    ["canceled", { kind: "failed", reason: "the job failed" }],
    ["unknown", { kind: "unreadable", why: "DashScope does not know the task: it has expired or is another region's" }],
    ["error in a polled 200", { kind: "unreadable", why: "HTTP 200: Requests rate limit exceeded." }],
    ["throttled", { kind: "unreadable", why: "HTTP 429: Requests throttling triggered." }],
  ] as const)("%s", (name, expected) => {
    expect(poll(name)).toEqual(expected)
  })
})
