import { afterAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test"
import { createAnthropic } from "@ai-sdk/anthropic"
import { APICallError, generateText, isStepCount, streamText, tool } from "ai"
import { z } from "zod"
import { eventually, headerOf } from "../support/gateway.ts"
import { saying, type Way, ways } from "../support/messages-scene.ts"
import { allResults, modelOf, openMessagesSides, resultsTold, threeRounds, weatherIn } from "./messages-sides.ts"

setDefaultTimeout(30_000)
const sides = await openMessagesSides()
beforeEach(sides.reset)
afterAll(sides.close)

const provider = createAnthropic({ baseURL: `${sides.baseURL}/v1`, apiKey: sides.apiKey })
const getWeather = tool({
  description: "Tells the weather",
  inputSchema: z.object({ city: z.string() }),
  execute: ({ city }) => weatherIn(city),
})
const looping = { tools: { get_weather: getWeather }, stopWhen: isStepCount(5) }

function asking(way: Way) {
  return { model: provider(modelOf(way)), prompt: "Say hello", maxOutputTokens: 100, maxRetries: 0 }
}

async function streamed(way: Way, more: object = {}) {
  const errors: unknown[] = []
  const result = streamText({ ...asking(way), ...more, onError: ({ error }) => void errors.push(error) })
  const parts: string[] = []
  for await (const part of result.fullStream) parts.push(part.type)
  return {
    errors,
    parts,
    text: await result.text,
    reasoning: await result.reasoningText,
    usage: await result.totalUsage,
    finish: await result.finishReason,
    steps: (await result.steps).length,
  }
}

describe.each(ways)("@ai-sdk/anthropic, %s", (way) => {
  const vendor = sides.vendor(way)

  test("generateText: text, thinking and usage", async () => {
    vendor.behave(saying(way, { thinking: "let me see", text: "Grüße, 世界 👋" }))
    const { text, reasoningText, usage, finishReason, response } = await generateText(asking(way))
    expect([text, reasoningText, finishReason]).toEqual(["Grüße, 世界 👋", "let me see", "stop"])
    expect(usage.totalTokens).toBe(usage.inputTokens! + usage.outputTokens!)
    expect(usage.outputTokens).toBeGreaterThan(0)
    expect(response.id).toStartWith("msg_")
  })

  test("streamText: the same in parts, no error, one finish", async () => {
    vendor.behave(saying(way, { thinking: "let me see", text: "Grüße, 世界 👋" }))
    const whole = await generateText(asking(way))
    const { errors, parts, text, reasoning, usage, finish } = await streamed(way)
    expect([errors, text, reasoning, finish]).toEqual([[], whole.text, "let me see", "stop"])
    expect(parts.filter((type) => type === "finish")).toHaveLength(1)
    expect(parts).not.toContain("error")
    expect([usage.inputTokens, usage.outputTokens]).toEqual([whole.usage.inputTokens, whole.usage.outputTokens])
  })

  test("generateText: a tool-use loop of three rounds", async () => {
    vendor.behave(...threeRounds(way))
    const { text, steps } = await generateText({ ...asking(way), ...looping })
    expect([text, steps.length]).toEqual(["18 in all three.", 3])
    expect(resultsTold(vendor)).toEqual(allResults)
  })

  test("streamText: a tool-use loop of three rounds", async () => {
    vendor.behave(...threeRounds(way))
    const { errors, text, steps, finish } = await streamed(way, looping)
    expect([errors, text, steps, finish]).toEqual([[], "18 in all three.", 3, "stop"])
    expect(resultsTold(vendor)).toEqual(allResults)
    expect(vendor.calls).toHaveLength(3)
  })

  test("thinking is asked for: it reaches the vendor that has it, and is left out for the other", async () => {
    vendor.behave(saying(way, { thinking: "let me see", text: "so" }))
    const anthropic = { thinking: { type: "enabled", budgetTokens: 1024 } } as const
    const { reasoningText } = await generateText({ ...asking(way), providerOptions: { anthropic } })
    expect(reasoningText).toBe("let me see")
    expect(Buffer.from(vendor.calls[0]!.body).toString().includes("budget_tokens")).toBe(way === "native")
    if (way === "native") expect(headerOf(vendor.calls[0]!, "anthropic-version")).toBe("2023-06-01")
  })

  test("abort: the vendor's call ends", async () => {
    vendor.behave(saying(way, { chunks: 500, gapMs: 20 }))
    const leaving = new AbortController()
    const result = streamText({ ...asking(way), abortSignal: leaving.signal })
    const parts: string[] = []
    for await (const { type } of result.fullStream) {
      parts.push(type)
      if (type === "text-delta") leaving.abort()
    }
    expect(parts).toContain("abort")
    await eventually(() => vendor.calls[0]!.closedByPeer, 1000)
  })

  test.each([
    [400, false],
    [429, true],
    [529, true],
  ])("the vendor's %i is an APICallError with its words (retryable: %p)", async (status, isRetryable) => {
    vendor.behave(
      way === "native"
        ? { kind: "status", status, json: { type: "error", error: { type: "some_error", message: "because" } } }
        : { kind: "status", status, json: { error: { message: "because" } } },
    )
    const thrown = await generateText(asking(way)).catch((error: unknown) => error)
    expect(APICallError.isInstance(thrown)).toBeTrue()
    expect(thrown).toMatchObject({ statusCode: status, message: "because", isRetryable })
    const { errors, parts } = await streamed(way).catch(() => ({ errors: ["thrown"], parts: ["error"] }))
    expect(errors).toHaveLength(1)
    expect(parts).toContain("error")
  })

  test("our own refusal has its words too", async () => {
    const asked = { ...asking(way), model: provider("nope") }
    const thrown = await generateText(asked).catch((error: unknown) => error)
    expect(thrown).toMatchObject({ statusCode: 404, message: expect.stringContaining("nope"), isRetryable: false })
  })

  test("an error in mid-stream is an error part, and no finish says that all went well", async () => {
    const cut = { afterEvents: way === "native" ? 5 : 3, how: "fin" } as const
    vendor.behave({ kind: way === "native" ? "messages" : "chat", text: "one two three", gapMs: 100, cut })
    const errors: unknown[] = []
    const result = streamText({ ...asking(way), onError: ({ error }) => void errors.push(error) })
    const parts: { type: string; finishReason?: unknown }[] = []
    for await (const part of result.fullStream) parts.push(part)
    expect(parts.map(({ type }) => type)).toContain("error")
    expect(errors).toHaveLength(1)
    expect(parts.filter(({ finishReason }) => finishReason === "stop")).toEqual([])
  })
})
