import { afterAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test"
import { ChatAnthropic } from "@langchain/anthropic"
import { type AIMessageChunk, type BaseMessage, HumanMessage, type UsageMetadata } from "@langchain/core/messages"
import { tool } from "@langchain/core/tools"
import { z } from "zod"
import { eventually } from "../support/gateway.ts"
import { saying, type Way, ways } from "../support/messages-scene.ts"
import { allResults, modelOf, openMessagesSides, resultsTold, threeRounds, weatherIn } from "./messages-sides.ts"

setDefaultTimeout(30_000)
const sides = await openMessagesSides()
beforeEach(sides.reset)
afterAll(sides.close)

function chatAnthropic(way: Way, more: ConstructorParameters<typeof ChatAnthropic>[0] = {}): ChatAnthropic {
  const { apiKey, baseURL: anthropicApiUrl } = sides
  return new ChatAnthropic({ model: modelOf(way), apiKey, anthropicApiUrl, maxTokens: 100, maxRetries: 0, ...more })
}

const getWeather = tool(({ city }) => weatherIn(city), {
  name: "get_weather",
  description: "Tells the weather",
  schema: z.object({ city: z.string() }),
})

async function wholeOf(stream: AsyncIterable<AIMessageChunk>): Promise<AIMessageChunk> {
  const [first, ...rest] = await Array.fromAsync(stream)
  return rest.reduce((sum, chunk) => sum.concat(chunk), first!)
}

function usageOf(message: { readonly usage_metadata?: UsageMetadata | undefined }): UsageMetadata {
  if (message.usage_metadata === undefined) throw new Error("no usage was told")
  return message.usage_metadata
}

describe.each(ways)("ChatAnthropic, %s", (way) => {
  const vendor = sides.vendor(way)

  test("invoke: text and usage_metadata", async () => {
    vendor.behave(saying(way, { text: "Grüße, 世界 👋" }))
    const message = await chatAnthropic(way).invoke("Say hello")
    expect(message.text).toBe("Grüße, 世界 👋")
    const usage = usageOf(message)
    expect(usage.total_tokens).toBe(usage.input_tokens + usage.output_tokens)
    expect(usage.output_tokens).toBeGreaterThan(0)
    expect(usage.input_tokens).toBeGreaterThan(0)
  })

  test("stream: the same text; input tokens are read from the first event alone, which over the bridge says 0", async () => {
    vendor.behave(saying(way, { text: "Grüße, 世界 👋 again" }))
    const whole = await chatAnthropic(way).invoke("Say hello")
    const message = await wholeOf(await chatAnthropic(way).stream("Say hello"))
    expect(message.text).toBe(whole.text)
    // It adds the one token that the vendor's first event tells to those of the last.
    expect(usageOf(message).output_tokens).toBe(usageOf(whole).output_tokens + (way === "native" ? 1 : 0))
    expect(usageOf(message).input_tokens).toBe(way === "native" ? usageOf(whole).input_tokens : 0)
  })

  test.each([false, true])("bindTools: a tool-use loop of three rounds (stream: %p)", async (stream) => {
    vendor.behave(...threeRounds(way))
    const bound = chatAnthropic(way).bindTools([getWeather])
    const messages: BaseMessage[] = [new HumanMessage("How warm is it?")]
    for (let round = 0; round < 10; round++) {
      const message = stream ? await wholeOf(await bound.stream(messages)) : await bound.invoke(messages)
      messages.push(message)
      const calls = message.tool_calls ?? []
      if (calls.length === 0) break
      for (const call of calls) messages.push(await getWeather.invoke(call))
    }
    expect(messages.at(-1)!.text).toBe("18 in all three.")
    expect(resultsTold(vendor)).toEqual(allResults)
    expect(vendor.calls).toHaveLength(3)
  })

  test.each([false, true])("thinking comes as a block of its own (stream: %p)", async (stream) => {
    vendor.behave(saying(way, { thinking: "let me see", text: "so" }))
    const model = chatAnthropic(way, { thinking: { type: "enabled", budget_tokens: 1024 }, maxTokens: 2000 })
    const message = stream ? await wholeOf(await model.stream("Say hello")) : await model.invoke("Say hello")
    const [thought, said] = message.content as { type: string; thinking?: string; text?: string }[]
    expect(thought).toMatchObject({ type: "thinking", thinking: "let me see", signature: expect.stringMatching(/./) })
    expect(said).toMatchObject({ type: "text", text: "so" })
    expect(message.text).toBe("so")
  })

  test("leaving in mid-stream ends the vendor's call", async () => {
    vendor.behave(saying(way, { chunks: 500, gapMs: 20 }))
    for await (const chunk of await chatAnthropic(way).stream("Say hello")) if (chunk.text !== "") break
    await eventually(() => vendor.calls[0]?.closedByPeer, 1000)
  })

  test("an abort signal ends it too", async () => {
    vendor.behave(saying(way, { chunks: 500, gapMs: 20 }))
    const leaving = new AbortController()
    const reading = wholeOf(await chatAnthropic(way).stream("Say hello", { signal: leaving.signal }))
    await eventually(() => vendor.calls.length === 1 && vendor.calls[0]!.bytesSent > 1000)
    leaving.abort()
    expect(await reading.catch((error: Error) => error.name)).toBeString()
    await eventually(() => vendor.calls[0]!.closedByPeer, 1000)
  })

  test.each([400, 401, 429])("the vendor's %i is an exception with its status and words", async (status) => {
    vendor.behave(
      way === "native"
        ? { kind: "status", status, json: { type: "error", error: { type: "some_error", message: "because" } } }
        : { kind: "status", status, json: { error: { message: "because" } } },
    )
    const model = chatAnthropic(way)
    for (const work of [model.invoke("Say hello"), model.stream("Say hello").then(wholeOf)]) {
      const thrown = (await work.catch((error: unknown) => error)) as { status?: number; message: string }
      expect([thrown.status, thrown.message.includes("because")]).toEqual([status, true])
    }
  })

  test("an error in mid-stream is thrown", async () => {
    const cut = { afterEvents: way === "native" ? 5 : 3, how: "fin" } as const
    vendor.behave({ kind: way === "native" ? "messages" : "chat", text: "one two three", gapMs: 100, cut })
    const reading = chatAnthropic(way).stream("Say hello").then(wholeOf)
    expect(String(await reading.catch((error: Error) => error))).toContain("upstream_stream_truncated")
  })
})
