import { afterAll, beforeEach, describe, expect, test } from "bun:test"
import { type AIMessageChunk, HumanMessage, ToolMessage, type UsageMetadata } from "@langchain/core/messages"
import { tool } from "@langchain/core/tools"
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai"
import { z } from "zod"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { eventually } from "../support/gateway.ts"
import { type Address, openVendorSides } from "./sides.ts"

const sides = await openVendorSides()
const { both, vendor, messagesVendor } = sides
beforeEach(sides.reset)
afterAll(sides.close)

type Options = ConstructorParameters<typeof ChatOpenAI>[0]

function chatOpenAI({ baseURL, apiKey }: Address, more: Exclude<Options, string> = {}): ChatOpenAI {
  return new ChatOpenAI({ model: "sim-large", apiKey, configuration: { baseURL }, maxRetries: 0, ...more })
}

const getWeather = tool(({ city }) => `18 degrees in ${city}`, {
  name: "get_weather",
  description: "Tells the weather",
  schema: z.object({ city: z.string() }),
})
const called: Behaviour = {
  kind: "chat",
  toolCalls: [
    { id: "call_1", name: "get_weather", arguments: '{"city":"Paris"}' },
    { id: "call_2", name: "get_weather", arguments: '{"city":"Ōsaka"}' },
  ],
}

async function wholeOf(stream: AsyncIterable<AIMessageChunk>): Promise<AIMessageChunk> {
  const [first, ...rest] = await Array.fromAsync(stream)
  return rest.reduce((sum, chunk) => sum.concat(chunk), first!)
}

/** What a program reads of an answer. */
function told(message: Pick<AIMessageChunk, "text"> & { readonly usage_metadata?: UsageMetadata | undefined }): {
  text: string
  usage: UsageMetadata | undefined
} {
  return { text: message.text, usage: message.usage_metadata }
}

describe("ChatOpenAI", () => {
  test("invoke: text and usage_metadata", async () => {
    const { direct, through } = await both(async (address) => told(await chatOpenAI(address).invoke("Say hello")), {
      kind: "chat",
      text: "Grüße, 世界 👋",
      cachedTokens: 2,
    })
    expect(through).toEqual(direct)
    expect(through).toMatchObject({
      text: "Grüße, 世界 👋",
      usage: { total_tokens: expect.any(Number), input_token_details: { cache_read: 2 } },
    })
  })

  test("stream: text and usage_metadata, counted once", async () => {
    const { direct, through } = await both(
      async (address) => told(await wholeOf(await chatOpenAI(address).stream("Say hello"))),
      { kind: "chat", text: "Grüße, 世界 👋 again", cachedTokens: 2 },
    )
    expect(through).toEqual(direct)
    const usage = through.usage!
    expect(through.text).toBe("Grüße, 世界 👋 again")
    expect(usage.output_tokens).toBeGreaterThan(0)
    expect(usage.total_tokens).toBe(usage.input_tokens + usage.output_tokens)
  })

  test("stream with streamUsage off: usage comes all the same, as the gateway always tells it", async () => {
    const { direct, through } = await both(async (address) =>
      told(await wholeOf(await chatOpenAI(address, { streamUsage: false }).stream("Say hello"))),
    )
    expect(through.text).toBe(direct.text)
    expect(direct.usage).toBeUndefined()
    const asked = told(await wholeOf(await chatOpenAI(sides.through).stream("Say hello")))
    expect(through.usage).toEqual(asked.usage!)
  })

  test.each([false, true])("bindTools: two calls, then the answer to their results (stream: %p)", async (stream) => {
    const scenario = async (address: Address) => {
      const bound = chatOpenAI(address).bindTools([getWeather])
      const question = new HumanMessage("How warm is it?")
      const asking = stream ? wholeOf(await bound.stream([question])) : bound.invoke([question])
      const first = await asking
      const results = await Promise.all((first.tool_calls ?? []).map((call) => getWeather.invoke(call)))
      const second = await bound.invoke([question, first, ...results.filter((one) => one instanceof ToolMessage)])
      return { calls: first.tool_calls?.map(({ name, args, id }) => ({ name, args, id })), said: second.text }
    }
    const { direct, through, throughCalls } = await both(scenario, called, { kind: "chat", text: "18 in both." })
    expect(through).toEqual(direct)
    expect(through).toEqual({
      calls: [
        { name: "get_weather", args: { city: "Paris" }, id: "call_1" },
        { name: "get_weather", args: { city: "Ōsaka" }, id: "call_2" },
      ],
      said: "18 in both.",
    })
    expect(throughCalls).toBe(2)
    expect(Buffer.from(vendor.calls[1]!.body).toString()).toContain("18 degrees in Ōsaka")
  })

  test.each(["jsonSchema", "functionCalling", "jsonMode"] as const)("withStructuredOutput by %s", async (method) => {
    const schema = z.object({ city: z.string(), degrees: z.number() })
    const object = '{"city":"Paris","degrees":18}'
    const { direct, through } = await both(
      (address) =>
        chatOpenAI(address)
          .withStructuredOutput(schema, { name: "weather", method })
          .invoke("How warm is it in Paris?"),
      method === "functionCalling"
        ? { kind: "chat", toolCalls: [{ id: "call_1", name: "weather", arguments: object }] }
        : { kind: "chat", text: object },
    )
    expect(through).toEqual(direct)
    expect(through).toEqual({ city: "Paris", degrees: 18 })
  })

  test("over the responses API, as a stream", async () => {
    const { direct, through } = await both(
      async (address) => told(await wholeOf(await chatOpenAI(address, { useResponsesApi: true }).stream("Say hello"))),
      { kind: "responses", text: "Hello there." },
    )
    expect(through).toEqual(direct)
    expect(through).toMatchObject({ text: "Hello there.", usage: { total_tokens: expect.any(Number) } })
    expect(vendor.calls.map(({ path }) => path)).toEqual(["/openai/v1/responses"])
  })

  test("on a vendor that speaks only messages", async () => {
    messagesVendor.behave({ kind: "messages", text: "Hello there.", cachedTokens: 2 })
    const model = chatOpenAI(sides.through, { model: "over-messages" })
    const whole = told(await model.invoke("Say hello"))
    const streamed = told(await wholeOf(await model.stream("Say hello")))
    expect(streamed).toEqual(whole)
    expect(whole.text).toBe("Hello there.")
    expect(whole.usage?.input_token_details?.cache_read).toBe(2)
  })

  test("a refusal is the same exception", async () => {
    const error = { message: "no such thing", type: "invalid_request_error", param: "x", code: "odd" }
    const { direct, through } = await both((address) => chatOpenAI(address).invoke("Say hello").then(String, String), {
      kind: "status",
      status: 422,
      json: { error },
    })
    expect(through).toEqual(direct)
    expect(through).toContain("422 no such thing")
  })

  test("leaving in mid-stream ends the vendor's call", async () => {
    vendor.behave({ kind: "chat", chunks: 500, gapMs: 20 })
    for await (const chunk of await chatOpenAI(sides.through).stream("Say hello")) if (chunk.text !== "") break
    await eventually(() => vendor.calls[0]?.closedByPeer, 1000)
  })
})

test("OpenAIEmbeddings: a query and documents", async () => {
  const { direct, through } = await both(async ({ baseURL, apiKey }) => {
    const embeddings = new OpenAIEmbeddings({ model: "sim-embed", apiKey, configuration: { baseURL }, maxRetries: 0 })
    return [await embeddings.embedQuery("first text"), ...(await embeddings.embedDocuments(["one", "二", "three"]))]
  })
  expect(through).toEqual(direct)
  expect(through.map((vector) => vector.length)).toEqual([1536, 1536, 1536, 1536])
})
