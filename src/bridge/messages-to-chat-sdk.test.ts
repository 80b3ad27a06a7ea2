import { afterAll, describe, expect, test } from "bun:test"
import { createAnthropic } from "@ai-sdk/anthropic"
import Anthropic from "@anthropic-ai/sdk"
import { ChatAnthropic } from "@langchain/anthropic"
import { streamText, tool } from "ai"
import EarlierAnthropic from "anthropic-sdk-0"
import fc from "fast-check"
import { z } from "zod"
import { asked, type BridgedStream, bridgedStreams, chunk, done, finish } from "../../test/support/bridged-streams.ts"
import { chances, chunksOf, completions, deltasOf, dice, wholeAnswer } from "../../test/support/cut-completions.ts"
import { withoutMintedIds } from "../../test/support/messages-check.ts"
import type { JsonObject } from "../core/json.ts"
import { messagesToChat } from "./messages-to-chat.ts"

let served: readonly string[] = []
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: () =>
    new Response(
      (async function* () {
        for (const frames of served) yield frames
      })(),
      { headers: { "content-type": "text/event-stream; charset=utf-8" } },
    ),
})
afterAll(() => server.stop(true))
const address = `http://127.0.0.1:${server.port}`

/** What the upstream's chunks become is what the packages read. */
function serve(chunks: readonly string[]): void {
  const stream = messagesToChat.stream(asked)
  const running = chunks.map((data) => stream.read(null, data))
  served = [...running, stream.closing(null)].filter((frames) => frames !== "")
}

const ask = { model: "m", max_tokens: 100, messages: [{ role: "user" as const, content: "Hi" }] }
const options = { apiKey: "sk-test", baseURL: address, maxRetries: 0 }
const packages = {
  "the anthropic package": () => new Anthropic(options).messages.stream(ask),
  "the anthropic package of before": () => new EarlierAnthropic(options).messages.stream(ask),
}

/** A plain copy, without what the package adds to tell itself what it parsed. */
const plain = (message: object): JsonObject =>
  JSON.parse(JSON.stringify(message, (key, value: unknown) => (/^_?parsed|^_/.test(key) ? undefined : value)))

/** A stream tells text where it comes, a whole answer ahead of the calls. */
function inOneOrder(message: JsonObject): JsonObject {
  const content = message.content as readonly JsonObject[]
  return {
    ...message,
    content: content.toSorted((a, b) => Number(a.type === "tool_use") - Number(b.type === "tool_use")),
  }
}

const whole = (answer: JsonObject): JsonObject => messagesToChat.answer(answer, asked)
const examples: BridgedStream[] = [...bridgedStreams]

describe.each(Object.entries(packages))("vector 88: %s", (_, open) => {
  test.each(examples)("makes of stream $vector what the whole answer says", async ({ chunks, whole: answer }) => {
    serve(chunks)
    const message = plain(await open().finalMessage())
    expect(withoutMintedIds(inOneOrder(message))).toEqual(withoutMintedIds(whole(answer)))
  })

  test("hands out the text as it comes, and each block once", async () => {
    serve(bridgedStreams[0]!.chunks)
    const texts: string[] = []
    const blocks: string[] = []
    const stream = open()
    stream.on("text", (text: string) => void texts.push(text))
    stream.on("contentBlock", ({ type }: { type: string }) => void blocks.push(type))
    await stream.finalMessage()
    expect([texts, blocks]).toEqual([["He", "llo"], ["text"]])
  })

  test("reads arguments that were cut off", async () => {
    const call = { index: 0, id: "a", function: { name: "f", arguments: '{"x":[1,{"y":' } }
    serve([chunk({ tool_calls: [call] }), finish("length"), done])
    expect(await open().finalMessage()).toMatchObject({ stop_reason: "max_tokens", content: [{ type: "tool_use" }] })
  })

  test("throws what the upstream said in mid-stream", async () => {
    serve([chunk({ content: "Hi" }), '{"error":{"code":"overloaded","message":"Too busy"}}'])
    const failure = await open()
      .finalMessage()
      .catch((error: unknown) => error)
    expect(failure).toMatchObject({ type: "overloaded_error", message: expect.stringContaining("Too busy") })
  })

  test("reads any completion, however it is cut and mixed", async () => {
    await fc.assert(
      fc.asyncProperty(completions, chances, async (completion, seed) => {
        const random = dice(seed)
        serve(chunksOf(deltasOf(completion, random), completion, random))
        const message = plain(await open().finalMessage())
        expect(withoutMintedIds(message)).toEqual(plain(withoutMintedIds(whole(wholeAnswer(completion)))))
      }),
      { numRuns: 25 },
    )
  })
})

describe("vector 89: ChatAnthropic of langchain", () => {
  const model = new ChatAnthropic({ model: "m", apiKey: "sk-test", anthropicApiUrl: address, maxRetries: 0 })

  test.each(examples)("adds stream $vector up to the whole answer", async ({ chunks, whole: answer }) => {
    serve(chunks)
    const [first, ...rest] = await Array.fromAsync(await model.stream("Hi"))
    const read = rest.reduce((sum, piece) => sum.concat(piece), first!)
    const { content } = whole(answer) as { content: readonly JsonObject[] }
    const texts = content.filter(({ type }) => type === "text").map(({ text }) => text)
    expect(read.text).toBe(texts.join(""))
    const calls = content.filter(({ type }) => type === "tool_use")
    expect(read.tool_calls ?? []).toEqual(
      calls.map(({ id, name, input }) => ({ id, name, args: input, type: "tool_call" })) as never,
    )
    // It takes the input from message_start, where the usage is zero by rule.
    expect(read.usage_metadata).toMatchObject({ input_tokens: 0, output_tokens: 2 })
  })
})

describe("vector 90: the ai package", () => {
  const model = createAnthropic({ apiKey: "sk-test", baseURL: `${address}/v1` })("m")
  const anyTool = tool({ inputSchema: z.looseObject({}), execute: () => "done" })
  const tools = { f: anyTool, weather: anyTool }

  test.each(examples)("reads stream $vector without an error, to one finish", async ({ chunks, whole: answer }) => {
    serve(chunks)
    const result = streamText({ model, prompt: "Hi", tools, maxOutputTokens: 100, maxRetries: 0, onError: () => {} })
    const parts = await Array.fromAsync(result.fullStream)
    const types = parts.map(({ type }) => type)
    expect(types).not.toContain("error")
    expect(types.filter((type) => type === "finish")).toEqual(["finish"])
    const { content } = whole(answer) as { content: readonly JsonObject[] }
    const said = (type: string, field: string) =>
      content.filter((block) => block.type === type).map((block) => block[field])
    expect(await result.text).toBe(said("text", "text").join(""))
    expect((await result.reasoningText) ?? "").toBe(said("thinking", "thinking").join(""))
    const calls = (await result.toolCalls).map(({ toolCallId, toolName, input }) => [toolCallId, toolName, input])
    const expected = content.filter(({ type }) => type === "tool_use").map(({ id, name, input }) => [id, name, input])
    expect<unknown>(calls).toEqual(expected)
    expect(await result.totalUsage).toMatchObject({ inputTokens: 5, outputTokens: 2 })
    expect(await result.finishReason).toBe(expected.length > 0 ? "tool-calls" : "stop")
  })
})
