import { afterAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test"
import AnthropicNow from "@anthropic-ai/sdk"
import AnthropicBefore from "anthropic-sdk-0"
import { eventually, headerOf } from "../support/gateway.ts"
import { saying, type Way, ways } from "../support/messages-scene.ts"
import { allResults, modelOf, openMessagesSides, resultsTold, threeRounds, weatherIn } from "./messages-sides.ts"

setDefaultTimeout(30_000)
const sides = await openMessagesSides()
beforeEach(sides.reset)
afterAll(sides.close)

/** The clients differ in what they send, not in how they are called. */
const Before = AnthropicBefore as unknown as typeof AnthropicNow
const versions = [
  ["1.8", AnthropicNow],
  ["0.137", Before],
] as const
type Client = AnthropicNow
type Params = AnthropicNow.MessageCreateParamsNonStreaming

const clients = versions.flatMap(([version, Sdk]) => ways.map((way) => [version, way, Sdk] as const))

function clientOf(Sdk: typeof AnthropicNow, more: ConstructorParameters<typeof AnthropicNow>[0] = {}): Client {
  return new Sdk({ apiKey: sides.apiKey, baseURL: sides.baseURL, maxRetries: 0, ...more })
}

function asking(way: Way, more: Partial<Params> = {}): Params {
  return { model: modelOf(way), max_tokens: 100, messages: [{ role: "user", content: "Say hello" }], ...more }
}

const tools: AnthropicNow.Tool[] = [
  {
    name: "get_weather",
    description: "Tells the weather",
    input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
]

/** The loop that programs write: as long as the model calls tools, run them and tell it the results. */
async function converse(client: Client, way: Way, stream: boolean): Promise<{ text: string; rounds: number }> {
  const messages: AnthropicNow.MessageParam[] = [{ role: "user", content: "How warm is it?" }]
  for (let rounds = 1; rounds < 10; rounds++) {
    const params = asking(way, { messages, tools })
    const message = stream ? await client.messages.stream(params).finalMessage() : await client.messages.create(params)
    messages.push({ role: "assistant", content: message.content })
    if (message.stop_reason !== "tool_use") {
      const [last] = message.content
      return { text: last?.type === "text" ? last.text : "", rounds }
    }
    messages.push({
      role: "user",
      content: message.content.flatMap((block) =>
        block.type === "tool_use"
          ? [{ type: "tool_result", tool_use_id: block.id, content: weatherIn((block.input as { city: string }).city) }]
          : [],
      ),
    })
  }
  throw new Error("the model never stopped calling tools")
}

/** What a program can find out about an error. */
async function thrownBy(Sdk: typeof AnthropicNow, work: () => Promise<unknown>): Promise<Record<string, unknown>> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof Sdk.APIError)) throw error
    const { status, type, requestID, message } = error
    return { kind: error.constructor.name, status, type, requestID, message, body: error.error }
  }
  throw new Error("nothing was thrown")
}

describe.each(clients)("SDK %s, %s", (version, way, Sdk) => {
  const client = clientOf(Sdk)
  const vendor = sides.vendor(way)

  test("create: the message, its usage and the request's id", async () => {
    vendor.behave(saying(way, { text: "Grüße, 世界 👋" }))
    const message = await client.messages.create(asking(way))
    expect(message).toMatchObject({
      type: "message",
      role: "assistant",
      model: way === "native" ? `${modelOf(way)}-upstream` : modelOf(way),
      content: [{ type: "text", text: "Grüße, 世界 👋" }],
      stop_reason: "end_turn",
      stop_sequence: null,
    })
    expect(message.usage.input_tokens).toBeGreaterThan(0)
    expect(message.usage.output_tokens).toBeGreaterThan(0)
    expect(message._request_id).toBe(sides.gateway.stories.at(-1)!.requestId)
    expect(JSON.stringify(vendor.calls[0]!.headers)).not.toContain(sides.apiKey)
    if (way === "native")
      expect(headerOf(vendor.calls[0]!, "anthropic-version")).toBe(version === "1.8" ? "2026-10-21" : "2023-06-01")
  })

  test("stream: text as it comes, and a final message like the one that create gives", async () => {
    vendor.behave(saying(way, { thinking: "let me see", text: "Grüße, 世界 👋 again" }))
    const whole = await client.messages.create(asking(way))
    const stream = client.messages.stream(asking(way))
    const texts: string[] = []
    const thoughts: string[] = []
    const blocks: string[] = []
    stream.on("text", (delta) => void texts.push(delta))
    stream.on("thinking", (delta) => void thoughts.push(delta))
    stream.on("contentBlock", ({ type }) => void blocks.push(type))
    const message = await stream.finalMessage()
    expect(texts.join("")).toBe("Grüße, 世界 👋 again")
    expect(texts.length).toBeGreaterThan(1)
    expect(thoughts.join("")).toBe("let me see")
    expect(blocks).toEqual(["thinking", "text"])
    expect<readonly unknown[]>(message.content).toEqual(whole.content)
    expect(message.content[0]).toMatchObject({ type: "thinking", signature: expect.stringMatching(/./) })
    expect(message.stop_reason).toBe("end_turn")
    const { input_tokens, output_tokens } = whole.usage
    expect(message.usage).toMatchObject({ input_tokens, output_tokens })
    expect(stream.request_id).toBe((await stream.withResponse()).response.headers.get("request-id"))
  })

  test("create with stream: raw events in their order", async () => {
    vendor.behave(saying(way, { text: "Hello there" }))
    const events = await Array.fromAsync(await client.messages.create({ ...asking(way), stream: true }))
    const types = events.map(({ type }) => type)
    expect([types[0], types.at(-2), types.at(-1)]).toEqual(["message_start", "message_delta", "message_stop"])
    expect(types.filter((type) => type === "message_delta")).toHaveLength(1)
  })

  test.each([false, true])("a tool-use loop of three rounds (stream: %p)", async (stream) => {
    vendor.behave(...threeRounds(way))
    expect(await converse(client, way, stream)).toEqual({ text: "18 in all three.", rounds: 3 })
    expect(resultsTold(vendor)).toEqual(allResults)
    expect(vendor.calls).toHaveLength(3)
  })

  test("thinking is sent back with the calls it led to", async () => {
    vendor.behave(...threeRounds(way))
    const params = asking(way, { tools, thinking: { type: "enabled", budget_tokens: 1024 } })
    const first = await client.messages.stream(params).finalMessage()
    expect(first.content.map(({ type }) => type)).toEqual(["thinking", "text", "tool_use", "tool_use"])
    const turn = { role: "assistant" as const, content: first.content }
    const second = await client.messages.create({ ...params, messages: [...params.messages, turn] })
    expect(second.stop_reason).toBe("tool_use")
    const body = Buffer.from(vendor.calls[1]!.body).toString()
    expect(body.includes("Two cities")).toBe(way === "native")
    expect(body.includes("budget_tokens")).toBe(way === "native")
  })

  test("abort: the stream throws, the vendor's call ends", async () => {
    vendor.behave(saying(way, { chunks: 500, gapMs: 20 }))
    const stream = client.messages.stream(asking(way))
    stream.on("text", () => stream.abort())
    expect(await stream.finalMessage().catch((error: Error) => error.constructor.name)).toBe("APIUserAbortError")
    await eventually(() => vendor.calls[0]!.closedByPeer, 1000)
  })

  test("leaving the loop ends the vendor's call as well", async () => {
    vendor.behave(saying(way, { chunks: 500, gapMs: 20 }))
    for await (const event of client.messages.stream(asking(way))) if (event.type === "content_block_delta") break
    await eventually(() => vendor.calls[0]!.closedByPeer, 1000)
  })

  test.each([
    [400, "BadRequestError", "invalid_request_error"],
    [401, "AuthenticationError", "authentication_error"],
    [403, "PermissionDeniedError", "permission_error"],
    [404, "NotFoundError", "not_found_error"],
    [413, version === "1.8" ? "ContentTooLargeError" : "APIError", "request_too_large"],
    [429, "RateLimitError", "rate_limit_error"],
    [529, version === "1.8" ? "OverloadedError" : "InternalServerError", "overloaded_error"],
  ])("the vendor's %i is a %s of type %s, streamed or not", async (status, kind, type) => {
    vendor.behave({ kind: "status", status })
    for (const work of [
      () => client.messages.create(asking(way)),
      () => client.messages.stream(asking(way)).finalMessage(),
    ]) {
      const thrown = await thrownBy(Sdk, work)
      expect(thrown).toMatchObject({ kind, status, type, body: { type: "error", error: { type } } })
      expect((thrown.body as { request_id: string }).request_id).toBe(String(thrown.requestID))
    }
  })

  test("an error in mid-stream is thrown with its type", async () => {
    const cut = { afterEvents: way === "native" ? 5 : 3, how: "fin" } as const
    vendor.behave({ kind: way === "native" ? "messages" : "chat", text: "one two three", gapMs: 100, cut })
    const seen: string[] = []
    const stream = client.messages.stream(asking(way))
    stream.on("text", (text) => void seen.push(text))
    const thrown = await thrownBy(Sdk, () => stream.finalMessage())
    expect(thrown).toMatchObject({ kind: "APIError", status: undefined, type: "api_error" })
    expect(seen.join("")).toStartWith("one ")
  })

  test("our own refusals: a model nobody has, a key nobody gave", async () => {
    const lost = await thrownBy(Sdk, () => client.messages.create(asking(way, { model: "nope" })))
    expect(lost).toMatchObject({
      kind: "NotFoundError",
      type: "not_found_error",
      body: { error: { code: "model_not_found" } },
    })
    const stranger = clientOf(Sdk, { apiKey: "sk-wrong-0123456789" })
    const refused = await thrownBy(Sdk, () => stranger.messages.create(asking(way)))
    expect(refused).toMatchObject({ kind: "AuthenticationError", body: { error: { code: "invalid_api_key" } } })
    expect(vendor.calls).toHaveLength(0)
  })

  test("what fails once is asked again by the client and answered", async () => {
    const patient = clientOf(Sdk, { maxRetries: 1 })
    vendor.behave({ kind: "status", status: 409 }, saying(way, { text: "now" }))
    expect(await patient.messages.create(asking(way))).toMatchObject({ content: [{ text: "now" }] })
  })

  test("countTokens: a number that grows with the input", async () => {
    const { model, messages } = asking(way)
    const few = await client.messages.countTokens({ model, messages })
    const many = await client.messages.countTokens({ model, messages, system: "word ".repeat(200), tools })
    expect(few.input_tokens).toBeGreaterThan(0)
    expect(many.input_tokens).toBeGreaterThan(few.input_tokens + 100)
  })

  test("beta.messages: with its query", async () => {
    vendor.behave(saying(way, { text: "beta" }))
    const message = await client.beta.messages.create({ ...asking(way), betas: ["context-1m-2025-08-07"] } as never)
    expect(message).toMatchObject({ content: [{ type: "text", text: "beta" }] })
    const [call] = vendor.calls
    // The newer client no longer asks for it in the query.
    expect(call!.path.endsWith("?beta=true")).toBe(way === "native" && version !== "1.8")
    expect(headerOf(call!, "anthropic-beta")).toBe(way === "native" ? "context-1m-2025-08-07" : undefined)
  })
})
