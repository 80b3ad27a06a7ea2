import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import type { ErrorCode } from "../../src/core/errors.ts"
import { expectCharged, expectNotCharged, openJobShop, openShop, type Shop } from "../support/books.ts"
import { endpointSamples, postTo } from "../support/endpoints.ts"
import { eventually } from "../support/gateway.ts"
import { job, jobVendorNames } from "../support/image-scene.ts"
import { chunk, messages, readAnswer, roleChunk, stopWithoutComplaint } from "../support/scene.ts"

setDefaultTimeout(60_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

/** Every unit has a price, so that whatever is measured shows. */
const price = { input: "1", output: "10", image: "0.04", second: "0.01", character: "0.001", request: "0.5" }
const quick = { timeouts: { firstToken: 200, nonStream: 400, silence: 300 } }
const modes = [false, true] as const

/** A refusal of the vendor's own making costs nothing, is on record, and leaves the balance as it was. */
async function expectFree(shop: Shop, error: ErrorCode | null, status: number): Promise<void> {
  const story = await eventually(() => shop.gateway.stories.at(-1))
  const row = await expectNotCharged(shop, { story })
  expect(row).toMatchObject({ status, error })
  expect(await shop.balance()).toBe(100_000_000_000n)
}

describe("a vendor's refusal", () => {
  const statuses = [400, 401, 402, 403, 404, 408, 409, 413, 415, 422, 425, 429, 451]
  const failures = [500, 501, 502, 503, 504, 529]
  const usage = { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 }
  for (const stream of modes) {
    test.concurrent.each(statuses)(
      `%i is passed and costs nothing, whatever usage it tells (stream: ${stream})`,
      async (status) => {
        await using shop = await openShop(simulator, { price })
        shop.vendor("a").behave({ kind: "status", status, json: { error: { message: "no" }, usage } })
        expect((await shop.chat({ stream })).status).toBe(status)
        await expectFree(shop, null, status)
      },
    )

    test.concurrent.each(failures)(`%i costs nothing (stream: ${stream})`, async (status) => {
      await using shop = await openShop(simulator, { price })
      shop.vendor("a").behave({ kind: "status", status, json: { error: { message: "no" }, usage } })
      expect((await shop.chat({ stream })).status).toBe(502)
      await expectFree(shop, "upstream_error", 502)
    })
  }

  test.concurrent.each(Object.entries(endpointSamples))(
    "is free on every endpoint: %s",
    async (_, { path, request }) => {
      await using shop = await openShop(simulator, { price })
      for (const status of [400, 500]) {
        shop.vendor("a").behave({ kind: "status", status, json: { error: { message: "no" }, usage } })
        const answer = await readAnswer(shop.gateway, await postTo(shop.gateway, path, request("m")))
        expect(answer.status).toBe(status === 400 ? 400 : 502)
        await expectNotCharged(shop, answer)
      }
    },
  )
})

describe("a call that fails before its first token", () => {
  const failing: Record<string, { step: Behaviour; stream: boolean; status: number; error: ErrorCode }> = {
    "no headers in time, streamed": { step: { kind: "hang" }, stream: true, status: 504, error: "first_token_timeout" },
    "no headers in time, whole": { step: { kind: "hang" }, stream: false, status: 504, error: "request_timeout" },
    "the role and then silence": {
      step: { kind: "stream", body: roleChunk, end: "stall" },
      stream: true,
      status: 504,
      error: "first_token_timeout",
    },
    "a connection reset": { step: { kind: "reset" }, stream: true, status: 502, error: "upstream_unreachable" },
    "a stream that begins with an error": {
      step: { kind: "stream", body: 'data: {"error":{"message":"overloaded, try again later"}}\n\n' },
      stream: true,
      status: 502,
      error: "upstream_error",
    },
    "an error under status 200": {
      step: { kind: "status", status: 200, json: { error: { message: "overloaded" } } },
      stream: false,
      status: 502,
      error: "upstream_invalid_response",
    },
    "an empty stream": { step: { kind: "stream", body: "" }, stream: true, status: 502, error: "upstream_error" },
    "an answer that breaks off": {
      step: { kind: "chat", cut: { afterEvents: 0, how: "rst" } },
      stream: false,
      status: 502,
      error: "upstream_invalid_response",
    },
    "a web page": {
      step: { kind: "html", status: 200 },
      stream: false,
      status: 502,
      error: "upstream_invalid_response",
    },
  }
  test.concurrent.each(Object.entries(failing))("costs nothing: %s", async (_, { step, stream, status, error }) => {
    await using shop = await openShop(simulator, { price, upstreams: { a: status === 504 ? quick : {} } })
    shop.vendor("a").behave(step)
    expect((await shop.chat({ stream })).status).toBe(status)
    await expectFree(shop, error, status)
  })
})

describe("attempts before the one that answers", () => {
  const failing: Record<string, Behaviour> = {
    "500": { kind: "status", status: 500 },
    "429": { kind: "status", status: 429 },
    reset: { kind: "reset" },
  }
  // The deadline of a whole answer is one for all routes, so that silence leaves no time for the next.
  const failingStreams: Record<string, Behaviour> = {
    ...failing,
    silence: { kind: "hang" },
    "an error first": { kind: "stream", body: 'data: {"error":{"message":"no"}}\n\n' },
  }
  for (const stream of modes) {
    test.concurrent.each(Object.entries(stream ? failingStreams : failing))(
      `cost nothing, only the winner does: %s (stream: ${stream})`,
      async (name, step) => {
        await using shop = await openShop(simulator, {
          price: { input: "1", output: "10" },
          upstreams: { a: name === "silence" ? quick : {}, b: {} },
        })
        shop.vendor("a").behave(step)
        shop.vendor("b").behave({ kind: "chat", usage: { prompt_tokens: 100, completion_tokens: 7 } })
        const answer = await shop.chat({ stream })
        const line = await expectCharged(shop, answer, 170_000n)
        expect(line.measured).toMatchObject({ upstream: "b", measured: { tokens: { input: 100, output: 7 } } })
        expect(await shop.charges()).toHaveLength(1)
      },
    )
  }
})

describe("what the vendor says is nothing", () => {
  const tokens = { input: "1", output: "10" }
  const zero = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
  const zeroes: Record<string, { path: string; asked: object; step: Behaviour }> = {
    chat: { path: "/v1/chat/completions", asked: { messages }, step: { kind: "chat", usage: zero } },
    "chat, streamed": {
      path: "/v1/chat/completions",
      asked: { messages, stream: true },
      step: { kind: "chat", usage: zero },
    },
    responses: {
      path: "/v1/responses",
      asked: { input: "hi" },
      step: { kind: "responses", usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0 } },
    },
    embeddings: { path: "/v1/embeddings", asked: { input: "hi" }, step: { kind: "embeddings", usage: zero } },
  }
  test.concurrent.each(Object.entries(zeroes))("is charged nothing: %s", async (_, { path, asked, step }) => {
    await using shop = await openShop(simulator, { price: tokens })
    shop.vendor("a").behave(step)
    const answer = await shop.ask(path, asked)
    expect(answer.status).toBe(200)
    const row = await expectNotCharged(shop, answer)
    expect(row).toMatchObject({ estimated: false, usageInvalid: false, measured: { tokens: { input: 0, output: 0 } } })
  })
})

describe("our own refusals", () => {
  test("cost nothing: unknown model, no money, too many at once, too large, not JSON", async () => {
    await using shop = await openShop(simulator, { price: { request: "100" }, concurrency: 1 })
    const unknown = await shop.gateway.chat({ model: "unknown" })
    expect(unknown.status).toBe(404)
    const broken = await shop.gateway.chat("{")
    expect(broken.status).toBe(400)
    const large = await postTo(shop.gateway, "/v1/embeddings", {
      type: "application/json",
      bytes: Buffer.alloc(33 * 1024 * 1024, " "),
    })
    expect(large.status).toBe(413)
    await Promise.all([unknown, broken, large].map((response) => response.bytes()))
    expect(await shop.balance()).toBe(100_000_000_000n)

    shop.vendor("a").behave({ kind: "chat", headDelayMs: 300 })
    const first = shop.chat()
    await eventually(() => shop.calls()[0] === 1)
    const crowded = await shop.chat()
    expect(crowded.status).toBe(429)
    expect(await expectNotCharged(shop, crowded)).toMatchObject({ status: 429, error: "concurrency_limit" })
    await expectCharged(shop, await first, 100_000_000_000n)
    const refused = await shop.chat()
    expect(refused.status).toBe(402)
    expect(await expectNotCharged(shop, refused)).toMatchObject({ status: 402, error: "insufficient_balance" })
    expect(await shop.balance()).toBe(0n)
    expect(shop.calls()).toEqual([1])
  })
})

describe("an answer that fails in its course", () => {
  test("response.failed costs nothing, also where it tells a usage", async () => {
    await using shop = await openShop(simulator, { price, upstreams: { a: { vendor: "openai" } } })
    for (const usage of ["none", { input_tokens: 10, output_tokens: 5, total_tokens: 15 }] as const) {
      shop.vendor("a").behave({ kind: "responses", ending: "failed", usage })
      const answer = await shop.ask("/v1/responses", { input: "hi" })
      expect(answer.text).toContain("response.failed")
      expect(await expectNotCharged(shop, answer)).toMatchObject({ ending: "failed", error: "upstream_error" })
    }
  })

  const flows: Record<string, { path: string; asked: object; step: Behaviour }> = {
    images: {
      path: "/v1/images/generations",
      asked: { prompt: "a fox" },
      step: { kind: "images", megabytes: 1, cut: { afterEvents: 1, how: "rst" } },
    },
    speech: {
      path: "/v1/audio/speech",
      asked: { input: "Hello", voice: "alloy" },
      step: { kind: "speech", cut: { afterEvents: 3, how: "rst" } },
    },
    "image events": {
      path: "/v1/images/generations",
      asked: { prompt: "a fox", stream: true, partial_images: 2 },
      step: { kind: "images", cut: { afterEvents: 1, how: "fin" } },
    },
    "speech events": {
      path: "/v1/audio/speech",
      asked: { input: "Hello", voice: "alloy", stream_format: "sse" },
      step: { kind: "speech", ending: "error" },
    },
  }
  test.concurrent.each(Object.entries(flows))(
    "what breaks off and is not made of tokens costs nothing: %s",
    async (_, { path, asked, step }) => {
      await using shop = await openShop(simulator, { price })
      shop.vendor("a").behave(step)
      await shop.ask(path, asked).catch(() => {})
      const story = await eventually(() => shop.gateway.stories[0])
      expect(await expectNotCharged(shop, { story })).toMatchObject({ ending: "failed" })
    },
  )

  test("a chat stream that breaks off is charged for what it had brought, by count", async () => {
    await using shop = await openShop(simulator, { price: { input: "1", output: "10" } })
    const frames = [roleChunk, chunk({ content: "one" }), chunk({ content: " two" })]
    shop.vendor("a").behave({ kind: "stream", frames })
    const answer = await shop.chat({ stream: true })
    expect(answer.text).toContain("upstream_stream_truncated")
    const { input } = answer.story.usage!
    expect(await expectCharged(shop, answer, BigInt(input * 1000 + 20_000))).toMatchObject({ estimated: true })
  })
})

describe("an image job that fails", () => {
  test.concurrent.each(jobVendorNames)("costs nothing: %s", async (name) => {
    await using shop = await openJobShop(simulator, name, price)
    for (const outcome of ["failed", "moderated"] as const) {
      shop.vendor(name).behave(job({ outcome }))
      const answer = await shop.ask("/v1/images/generations", { prompt: "a fox" })
      expect(answer.status).toBe(502)
      await expectNotCharged(shop, answer)
    }
    expect(await shop.balance()).toBe(100_000_000_000n)
  })
})
