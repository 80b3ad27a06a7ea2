import { describe, expect, test } from "bun:test"
import type { ImageAsk } from "../../core/image-vendor.ts"
import { replay } from "../fixtures/recording.ts"
import { bfl } from "./bfl.ts"
import recording from "./fixtures/bfl.json" with { type: "json" }

const base = "https://api.bfl.ai/v1"
const plain: ImageAsk = { prompt: "a fox", count: 1, size: null, extra: {} }
const context = { baseUrl: base, upstreamModel: "flux-2-pro", settings: {} }

function submit(upstreamModel: string, ask: Partial<ImageAsk> = {}) {
  return bfl.submit({ ...plain, ...ask }, { ...context, upstreamModel })
}

/** Where the job of a recorded submit is polled. */
function pollUrl(name: string): string {
  const submitted = bfl.readSubmit(replay(recording, name))
  return submitted.kind === "accepted" ? bfl.poll(submitted.ref, context).url : submitted.kind
}

describe("requests", () => {
  test("a plain one", () => {
    expect(submit("flux-2-pro")).toStrictEqual({ method: "POST", url: `${base}/flux-2-pro`, body: { prompt: "a fox" } })
  })

  test("a rich one: sides as numbers, the caller's fields beside them, none of the dialect's but the known one", () => {
    const extra = {
      seed: 42,
      output_format: "png",
      safety_tolerance: 2,
      width: 1,
      quality: "hd",
      user: "u",
      background: "auto",
    }
    expect(submit("flux-2-pro", { size: { width: 1920, height: 1088 }, extra })).toStrictEqual({
      method: "POST",
      url: `${base}/flux-2-pro`,
      body: { seed: 42, output_format: "png", safety_tolerance: 2, width: 1920, height: 1088, prompt: "a fox" },
    })
  })

  test.each([
    ["flux-pro-1.1", 1024, 768, { width: 1024, height: 768 }],
    ["flux-pro-1.1-ultra", 2752, 1536, { aspect_ratio: "43:24" }],
    ["flux-kontext-max", 1024, 768, { aspect_ratio: "4:3" }],
    ["flux-2-flex", 2048, 2048, { width: 2048, height: 2048 }],
    ["flux-9-tomorrow", 64, 64, { width: 64, height: 64 }],
  ] as const)("%s is told of %ix%i in its own terms", (model, width, height, expected) => {
    expect(submit(model, { size: { width, height } }).body).toStrictEqual({ prompt: "a fox", ...expected })
  })

  test.each([
    ["flux-2-pro", 1000, 1000, "sides in multiples of 16"],
    ["flux-2-pro", 2048, 2064, "as many pixels in all as from 64x64 to 2048x2048"],
    ["flux-dev", 1024, 1536, "sides from 256 to 1440 pixels, sides in multiples of 32"],
    ["flux-pro-1.1", 1040, 1040, "sides in multiples of 32"],
    ["flux-kontext-pro", 1024, 256, "aspect ratios from 3:7 to 7:3"],
    ["flux-pro-1.1-ultra", 4096, 1024, "aspect ratios from 9:21 to 21:9"],
  ])("%s refuses %ix%i and says what it takes", (model, width, height, takes) => {
    expect(() => submit(model, { size: { width, height } })).toThrow(takes)
  })

  test("more than one image is refused", () => {
    expect(() => submit("flux-2-pro", { count: 2 })).toThrow("n: this model makes one image per request")
  })

  test("results cannot be sent past the gateway", () => {
    const extra = { webhook_url: "https://elsewhere.test" }
    expect(() => submit("flux-2-pro", { extra })).toThrow("webhook_url: cannot be used through the gateway")
    expect(() => submit("flux-2-pro", { extra: { webhook_url: null } })).not.toThrow()
  })
})

test("the polling address is used as given, wherever the job lives", () => {
  expect(pollUrl("submitted")).toBe("https://api.us1.bfl.ai/v1/get_result?id=a1b2")
})

test("an address that lacks the job's id gets it, and a job without an address is asked for at the upstream", () => {
  expect(pollUrl("submitted without the id in its address")).toBe("https://api.eu4.bfl.ai/v1/get_result?id=a1b2")
  expect(pollUrl("submitted without an address")).toBe(`${base}/get_result?id=a1b2`)
})

test("an error in a 200 to a submit is a refusal", () => {
  const expected = { kind: "failed", reason: "width: Input should be a multiple of 16" } as const
  expect(bfl.readSubmit(replay(recording, "error in a 200"))).toEqual(expected)
})

describe("replies to a poll", () => {
  test.each(["pending", "queued", "processing", "a word of tomorrow"])("%s: keep waiting", (name) => {
    expect(bfl.readPoll(replay(recording, name), {})).toEqual({ kind: "waiting" })
  })

  const ready = { kind: "succeeded", images: [{ url: "https://delivery-us1.bfl.ai/results/x.jpeg?se=1" }] }
  // biome-ignore format: a table
  test.each([
    ["ready", ready],
    ["ready, said as a state", ready],
    ["ready with nothing", { kind: "failed", reason: "the vendor finished the job without an image" }],
    ["request moderated", { kind: "failed", reason: "the request was refused by the vendor's moderation (Request Moderated: Derivative Works Filter, Safety Filter)" }],
    ["content moderated", { kind: "failed", reason: "the image was refused by the vendor's moderation (Content Moderated)" }],
    ["error", { kind: "failed", reason: "Error: worker crashed" }],
    ["failed", { kind: "failed", reason: "Failed: the vendor gave no reason" }],
    ["task not found", { kind: "failed", reason: "Task not found: the vendor gave no reason" }],
    ["error status with a status word", { kind: "unreadable" }],
    ["rate limited", { kind: "unreadable", why: "HTTP 429: Too many active tasks" }],
  ] as const)("%s", (name, expected) => {
    expect<object>(bfl.readPoll(replay(recording, name), {})).toMatchObject(expected)
  })
})
