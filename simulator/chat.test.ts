import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test"
import OpenAI from "openai"
import type { Behaviour } from "./behaviour.ts"
import { type Simulator, startSimulator } from "./simulator.ts"
import { chatBody } from "./testing/raw-client.ts"
import type { SimulatedVendor } from "./vendor.ts"

let simulator: Simulator
let vendor: SimulatedVendor
let client: OpenAI

beforeAll(async () => {
  simulator = await startSimulator()
  vendor = simulator.vendor("openai")
  client = new OpenAI({ apiKey: "sk-any", baseURL: vendor.baseUrl, maxRetries: 0 })
})
beforeEach(() => vendor.reset())
afterAll(async () => {
  await simulator.stop()
  expect(simulator.complaints).toEqual([])
})

async function streamText(step: Behaviour, extra: Record<string, unknown> = {}): Promise<string> {
  vendor.behave(step)
  const body = chatBody({ stream: true, ...extra })
  return await (await fetch(`${vendor.baseUrl}/chat/completions`, { method: "POST", body })).text()
}

/** The data of every event, `[DONE]` aside. */
function chunksOf(text: string): Record<string, unknown>[] {
  const lines = text.split(/\r\n|\n|\r/).filter((line) => line.startsWith("data: {"))
  return lines.map((line) => JSON.parse(line.slice("data: ".length)))
}

const usageAsked = { stream_options: { include_usage: true } }
const messages = [{ role: "user", content: "What is the capital of France?" }] as const
const weatherTool = {
  type: "function",
  function: {
    name: "get_weather",
    parameters: { type: "object", properties: { city: { type: "string" }, days: { type: "integer" } } },
  },
} as const

describe("with the openai package", () => {
  test("a completion quotes the question and counts its tokens", async () => {
    const answer = await client.chat.completions.create({ model: "gpt-x", messages: [...messages] })
    expect(answer.model).toBe("gpt-x")
    expect(answer.choices[0]?.message.content).toContain("the capital of France?")
    expect(answer.choices[0]?.finish_reason).toBe("stop")
    expect(answer.usage?.prompt_tokens).toBe(Math.ceil(messages[0].content.length / 4) + 4)
    expect(answer.usage?.total_tokens).toBe(answer.usage!.prompt_tokens + answer.usage!.completion_tokens)
  })

  test("a stream says the same text in pieces and ends with usage when asked", async () => {
    vendor.behave({ kind: "chat", text: "one two three", gapMs: 0 })
    const stream = await client.chat.completions.create({
      model: "gpt-x",
      messages: [...messages],
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = await Array.fromAsync(stream)
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toBe("one two three")
    expect(chunks.at(-1)?.choices).toEqual([])
    expect(chunks.at(-1)?.usage?.completion_tokens).toBe(4)
  })

  test("a mentioned tool is called, and the tool's result is answered in text", async () => {
    const ask = { model: "gpt-x", tools: [weatherTool] }
    const first = await client.chat.completions.create({
      ...ask,
      messages: [{ role: "user", content: "Please get weather for tomorrow" }],
    })
    const call = first.choices[0]?.message.tool_calls?.[0]
    expect(first.choices[0]?.finish_reason).toBe("tool_calls")
    expect(call?.type === "function" && JSON.parse(call.function.arguments)).toEqual({ city: "Paris", days: 1 })
    const second = await client.chat.completions.create({
      ...ask,
      messages: [
        { role: "user", content: "Please get weather for tomorrow" },
        first.choices[0]!.message,
        { role: "tool", tool_call_id: call!.id, content: "sunny, 21 degrees" },
      ],
    })
    expect(second.choices[0]?.message.content).toContain("sunny, 21 degrees")
  })

  test("streamed tool calls add up", async () => {
    const toolCalls = [
      { id: "call_a", name: "f", arguments: '{"a":1}' },
      { id: "call_b", name: "g", arguments: '{"é":"🎉"}' },
    ]
    vendor.behave({ kind: "chat", toolCalls, gapMs: 0 })
    const runner = client.chat.completions.stream({ model: "gpt-x", messages: [...messages], tools: [weatherTool] })
    const final = await runner.finalChatCompletion()
    expect(
      final.choices[0]?.message.tool_calls?.map(
        (call) => call.type === "function" && [call.id, call.function.name, call.function.arguments],
      ),
    ).toEqual(toolCalls.map((call) => [call.id, call.name, call.arguments]))
  })

  test("models are listed, and an unexpected key is refused as the vendor does", async () => {
    vendor.expectKey("sk-right")
    const refused = await client.models.list().then(
      () => null,
      (error: unknown) => error,
    )
    expect(refused).toBeInstanceOf(OpenAI.AuthenticationError)
    vendor.expectKey("sk-any")
    const list = await Array.fromAsync(client.models.list())
    expect(list.map(({ id }) => id)).toEqual([...vendor.models])
    expect(vendor.calls.map((call) => call.answeredWith)).toEqual(["unauthorized", "chat"])
  })
})

describe("where usage is told", () => {
  const said = { kind: "chat", text: "hi", gapMs: 0 } as const
  const usageChunks = (text: string): unknown[] => chunksOf(text).filter(({ usage }) => usage)

  test("not without being asked", async () => {
    expect(usageChunks(await streamText(said))).toEqual([])
  })
  test("asked: one last chunk without choices, null in all others", async () => {
    const chunks = chunksOf(await streamText(said, usageAsked))
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true)
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 1 } })
  })
  test("in_finish, unasked too", async () => {
    const [only, ...others] = usageChunks(await streamText({ ...said, usage: "in_finish" }))
    expect(only).toMatchObject({ choices: [{ finish_reason: "stop" }] })
    expect(others).toEqual([])
  })
  test("none, twice, an exact object, and null", async () => {
    expect(usageChunks(await streamText({ ...said, usage: "none" }, usageAsked))).toEqual([])
    expect(usageChunks(await streamText({ ...said, usage: "twice" }, usageAsked))).toHaveLength(2)
    const exact = { prompt_tokens: 0, completion_tokens: 7, odd: { x: [1] } }
    expect(usageChunks(await streamText({ ...said, usage: exact }, usageAsked))).toMatchObject([{ usage: exact }])
    expect(chunksOf(await streamText({ ...said, usage: null }, usageAsked)).at(-1)).toMatchObject({
      choices: [],
      usage: null,
    })
  })
  test("cached tokens are part of the prompt", async () => {
    const text = await streamText({ ...said, cachedTokens: 500 }, usageAsked)
    expect(chunksOf(text).at(-1)?.usage).toMatchObject({
      prompt_tokens: 500,
      prompt_tokens_details: { cached_tokens: 500 },
    })
  })
})

describe("the shape of a stream", () => {
  test("line ends, comments, role chunk, [DONE], id and model are as told", async () => {
    const text = await streamText({
      kind: "chat",
      text: "a b",
      gapMs: 0,
      eol: "cr",
      comments: true,
      roleChunk: false,
      done: false,
      id: "id-1",
      model: "other",
    })
    expect(text).not.toContain("\n")
    expect(text.match(/: keep-alive\r\r/g)).toHaveLength(3)
    expect(text).not.toContain("[DONE]")
    expect(text).not.toContain('"role"')
    expect(chunksOf(text).every(({ id, model }) => id === "id-1" && model === "other")).toBe(true)
  })
  test("crlf", async () => {
    expect(await streamText({ kind: "chat", text: "a", gapMs: 0, eol: "crlf" })).toEndWith("data: [DONE]\r\n\r\n")
  })
  test("the text comes in as many chunks as told, and is made longer if it was not given", async () => {
    const contents = (text: string): number => text.split('"delta":{"content"').length - 1
    expect(contents(await streamText({ kind: "chat", text: "日本語テキスト🎉", chunks: 4, gapMs: 0 }))).toBe(4)
    expect(contents(await streamText({ kind: "chat", chunks: 300, gapMs: 0 }))).toBe(300)
  })
  test("reasoning comes before the text", async () => {
    const text = await streamText({ kind: "chat", reasoning: "well now", text: "yes", gapMs: 0 })
    expect(text.indexOf("reasoning_content")).toBeLessThan(text.indexOf('"content":"yes"'))
  })
  test("it is cut after as many events as told, or is no stream at all", async () => {
    const cut = { afterEvents: 2, how: "clean" } as const
    expect(chunksOf(await streamText({ kind: "chat", text: "a b c", gapMs: 0, cut }))).toHaveLength(2)
    const whole = await streamText({ kind: "chat", text: "a b c", ignoresStream: true })
    expect(JSON.parse(whole)).toMatchObject({ object: "chat.completion" })
  })
  test("finishReason null leaves the finish out", async () => {
    expect(await streamText({ kind: "chat", text: "a", gapMs: 0, finishReason: null })).not.toContain(
      '"finish_reason":"',
    )
  })
})

test("any path that ends like the endpoint works; others and wrong methods are refused", async () => {
  const ask = (path: string, method = "POST"): Promise<Response> =>
    fetch(`${simulator.url}/v${path}`, method === "POST" ? { method, body: chatBody() } : { method })
  for (const prefix of ["/v1", "/openai/v1", "/compatible-mode/v1", ""]) {
    expect((await ask(`${prefix}/chat/completions?api-version=1`)).status).toBe(200)
  }
  expect((await ask("/v1/chat/completions", "GET")).status).toBe(405)
  expect((await ask("/v1/nothing")).status).toBe(404)
})

test.each([
  ["{", "parse"],
  ["[]", "parse"],
  ['{"messages":[]}', "model"],
  ['{"model":"m"}', "messages"],
])("a body the vendor would refuse is refused: %s", async (body, reason) => {
  const response = await fetch(`${vendor.baseUrl}/chat/completions`, { method: "POST", body })
  expect(response.status).toBe(400)
  expect(await response.text()).toContain(reason)
})

test("a vendor that does not know stream_options refuses it and only it", async () => {
  const step = { kind: "echo_stream_options_error" } as const
  expect(await streamText(step, usageAsked)).toContain("unknown parameter: stream_options")
  expect(await streamText(step)).toContain("[DONE]")
})
