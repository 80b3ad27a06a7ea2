import { afterAll, beforeEach, describe, expect, test } from "bun:test"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { APICallError, generateText, isStepCount, type LanguageModel, Output, streamText, tool } from "ai"
import { z } from "zod"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { eventually } from "../support/gateway.ts"
import { type Address, openVendorSides, settled } from "./sides.ts"

const sides = await openVendorSides()
const { both, vendor, chatVendor, messagesVendor } = sides
beforeEach(sides.reset)
afterAll(sides.close)

type Provider = (address: Address, model?: string) => LanguageModel

/** The ways to a language model that people have in their programs. */
const chat: Provider = (address, model = "sim-large") => createOpenAI(address).chat(model)
const responses: Provider = (address, model = "sim-large") => createOpenAI(address).responses(model)
const compatible: Provider = (address, model = "sim-large") =>
  createOpenAICompatible({ name: "tollgate", ...address, includeUsage: true, supportsStructuredOutputs: true })(model)

const chatProviders = { "openai.chat": chat, "openai-compatible": compatible }
const streamProviders = { ...chatProviders, "openai.responses": responses }
const once = { prompt: "Say hello", maxRetries: 0 }

const getWeather = tool({
  description: "Tells the weather",
  inputSchema: z.object({ city: z.string() }),
  execute: ({ city }) => `18 degrees in ${city}`,
})
const calls = [
  { id: "call_1", name: "get_weather", arguments: '{"city":"Paris"}' },
  { id: "call_2", name: "get_weather", arguments: '{"city":"Ōsaka"}' },
]
/** Each provider's protocol has a behaviour of its own. */
const saying = (name: string, more: { text?: string; toolCalls?: typeof calls; cachedTokens?: number }): Behaviour => ({
  kind: name === "openai.responses" ? "responses" : "chat",
  ...more,
})

async function streamed(model: LanguageModel, more: object = {}) {
  const errors: unknown[] = []
  const result = streamText({ ...once, model, ...more, onError: ({ error }) => void errors.push(error) })
  const parts: string[] = []
  for await (const part of result.fullStream) parts.push(part.type)
  return settled({
    errors: errors.map(String),
    // How the text is cut into pieces depends on when it arrives; all else does not.
    parts: parts.filter((type, position) => type !== parts[position - 1]),
    text: await result.text,
    reasoning: await result.reasoningText,
    usage: await result.totalUsage,
    finish: await result.finishReason,
    steps: (await result.steps).length,
  })
}

describe.each(Object.entries(chatProviders))("generateText by %s", (name, provider) => {
  test("text and usage", async () => {
    const { direct, through } = await both(
      async (address) => {
        const { text, usage, finishReason } = await generateText({ ...once, model: provider(address) })
        return { text, usage, finishReason }
      },
      saying(name, { text: "Grüße, 世界 👋", cachedTokens: 2 }),
    )
    expect(through).toEqual(direct)
    expect(through).toMatchObject({
      text: "Grüße, 世界 👋",
      finishReason: "stop",
      usage: { inputTokenDetails: { cacheReadTokens: 2 }, totalTokens: expect.any(Number) },
    })
  })

  test("tools, in a loop of two steps", async () => {
    const { direct, through, throughCalls } = await both(
      async (address) => {
        const { text, steps, totalUsage } = await generateText({
          ...once,
          model: provider(address),
          tools: { get_weather: getWeather },
          stopWhen: isStepCount(5),
        })
        return {
          text,
          results: steps.flatMap(({ toolResults }) => toolResults.map(({ output }) => output)),
          totalUsage,
        }
      },
      saying(name, { toolCalls: calls }),
      saying(name, { text: "18 in both." }),
    )
    expect(through).toEqual(direct)
    expect(through).toMatchObject({
      text: "18 in both.",
      results: ["18 degrees in Paris", "18 degrees in Ōsaka"],
    })
    expect(throughCalls).toBe(2)
  })

  test("an object by a schema", async () => {
    const { direct, through } = await both(
      async (address) => {
        const { output } = await generateText({
          ...once,
          model: provider(address),
          output: Output.object({ schema: z.object({ city: z.string(), degrees: z.number() }) }),
        })
        return output
      },
      saying(name, { text: '{"city":"Paris","degrees":18}' }),
    )
    expect(through).toEqual(direct)
    expect(through).toEqual({ city: "Paris", degrees: 18 })
  })
})

describe.each(Object.entries(streamProviders))("streamText by %s", (name, provider) => {
  test("text and usage", async () => {
    const { direct, through } = await both(
      (address) => streamed(provider(address)),
      saying(name, { text: "Grüße, 世界 👋 again and again", cachedTokens: 2 }),
    )
    expect(through).toEqual(direct)
    expect(through).toMatchObject({
      errors: [],
      text: "Grüße, 世界 👋 again and again",
      finish: "stop",
      usage: { inputTokenDetails: { cacheReadTokens: 2 } },
    })
    expect(through.usage.totalTokens).toBe(through.usage.inputTokens! + through.usage.outputTokens!)
    expect(through.usage.outputTokens).toBeGreaterThan(0)
  })

  test("tools, in a loop of two steps; usage is that of both", async () => {
    const { direct, through, throughCalls } = await both(
      (address) => streamed(provider(address), { tools: { get_weather: getWeather }, stopWhen: isStepCount(5) }),
      saying(name, { toolCalls: calls }),
      saying(name, { text: "18 in both." }),
    )
    expect(through).toEqual(direct)
    expect(through).toMatchObject({ errors: [], text: "18 in both.", steps: 2, finish: "stop" })
    expect(throughCalls).toBe(2)
    const [, second] = vendor.calls.map(({ body }) => Buffer.from(body).toString())
    expect(second).toContain("18 degrees in Paris")
    expect(second).toContain("18 degrees in Ōsaka")
  })

  test("a vendor that says no: the same error, once", async () => {
    const error = { message: "no such thing", type: "invalid_request_error", param: "x", code: "odd" }
    const { direct, through, throughCalls } = await both(
      async (address) => {
        const seen: unknown[] = []
        const result = streamText({ ...once, model: provider(address), onError: ({ error }) => void seen.push(error) })
        await result.consumeStream()
        return seen.map((one) => (APICallError.isInstance(one) ? [one.statusCode, one.message, one.isRetryable] : one))
      },
      { kind: "status", status: 422, json: { error } },
    )
    expect(through).toEqual(direct)
    expect(through).toEqual([[422, "no such thing", false]])
    expect(throughCalls).toBe(1)
  })

  test("leaving in mid-stream ends the vendor's call", async () => {
    vendor.behave({ kind: name === "openai.responses" ? "responses" : "chat", chunks: 500, gapMs: 20 })
    const controller = new AbortController()
    const result = streamText({ ...once, model: provider(sides.through), abortSignal: controller.signal })
    for await (const part of result.fullStream) if (part.type === "text-delta") controller.abort()
    await eventually(() => vendor.calls[0]?.closedByPeer, 1000)
  })
})

test("usage comes though nobody asks for it, which the vendor alone would not send", async () => {
  const { direct, through } = await both(
    (address) => streamed(createOpenAICompatible({ name: "tollgate", ...address })("sim-large")),
    { kind: "chat", text: "Hello there." },
  )
  expect(direct.usage.outputTokens).toBeUndefined()
  expect(through.usage.outputTokens).toBeGreaterThan(0)
  expect(through.text).toBe(direct.text)
})

test("generateText over openai.responses cannot work: a clear error in the client, one call, a finished answer", async () => {
  vendor.behave({ kind: "responses", text: "Hello." })
  const failure = await generateText({ ...once, model: responses(sides.through) }).then(
    String,
    (error: unknown) => error,
  )
  if (!APICallError.isInstance(failure)) throw failure
  expect(failure).toMatchObject({ message: "Invalid JSON response", statusCode: 200, isRetryable: false })
  expect(failure.responseBody).toStartWith("event: response.created\n")
  expect(failure.responseBody).toContain("event: response.completed\n")
  expect(vendor.calls).toHaveLength(1)
})

describe("over a bridge", () => {
  test("openai.responses on a vendor that speaks only chat: text, reasoning, usage, tools", async () => {
    chatVendor.behave({ kind: "chat", text: "Hello there.", reasoning: "Hm.", cachedTokens: 2 })
    expect(await streamed(responses(sides.through, "over-chat"))).toMatchObject({
      errors: [],
      text: "Hello there.",
      reasoning: "Hm.",
      finish: "stop",
      usage: { inputTokenDetails: { cacheReadTokens: 2 } },
    })
    chatVendor.behave({ kind: "chat", toolCalls: calls }, { kind: "chat", text: "18 in both." })
    const rounds = await streamed(responses(sides.through, "over-chat"), {
      tools: { get_weather: getWeather },
      stopWhen: isStepCount(5),
    })
    expect(rounds).toMatchObject({ errors: [], text: "18 in both.", steps: 2 })
  })

  test.each(Object.entries(chatProviders))("%s on a vendor that speaks only messages", async (_, provider) => {
    messagesVendor.behave({ kind: "messages", text: "Hello there.", cachedTokens: 2 })
    const model = provider(sides.through, "over-messages")
    expect(await streamed(model)).toMatchObject({
      errors: [],
      text: "Hello there.",
      finish: "stop",
      usage: { inputTokenDetails: { cacheReadTokens: 2 } },
    })
    expect((await generateText({ ...once, model })).text).toBe("Hello there.")
    messagesVendor.behave({ kind: "messages", toolCalls: calls }, { kind: "messages", text: "18 in both." })
    const tools = { get_weather: getWeather }
    expect(await streamed(model, { tools, stopWhen: isStepCount(5) })).toMatchObject({
      errors: [],
      text: "18 in both.",
      steps: 2,
    })
  })
})
