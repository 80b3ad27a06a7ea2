import { describe, expect, test } from "bun:test"
import Anthropic from "@anthropic-ai/sdk"
import type { BehaviourOf } from "../../behaviour.ts"
import { eventually, post, rawClient } from "../../testing/raw-client.ts"
import { eventsIn, failureOf, standWith } from "../../testing/stand.ts"

const stand = standWith("anthropic")
const anthropic = (): Anthropic => new Anthropic({ apiKey: "sk-ant-any", baseURL: stand.home, maxRetries: 0 })

const path = "/v1/messages"
const user = (content: string): Anthropic.MessageParam => ({ role: "user", content })
const ask = { model: "claude-x", max_tokens: 100, messages: [user("What is the capital of France?")] }
const weather: Anthropic.Tool = {
  name: "get_weather",
  input_schema: { type: "object", properties: { city: { type: "string" } } },
}

async function streamed(step: Partial<BehaviourOf<"messages">> = {}): Promise<Record<string, unknown>[]> {
  const response = await stand.post(path, { ...ask, stream: true }, { step: { kind: "messages", gapMs: 0, ...step } })
  return eventsIn(await response.text())
}

describe("with the anthropic package", () => {
  test("a whole answer quotes the question and counts its tokens, cached ones apart", async () => {
    stand.vendor.behave({ kind: "messages", cachedTokens: 500, cacheWriteTokens: 70 })
    const answer = await anthropic().messages.create(ask)
    expect(answer.content[0]).toMatchObject({ type: "text", text: expect.stringContaining("the capital of France?") })
    expect(answer).toMatchObject({ model: "claude-x", stop_reason: "end_turn", role: "assistant" })
    expect(answer.usage).toMatchObject({ cache_read_input_tokens: 500, cache_creation_input_tokens: 70 })
    expect(answer.usage.input_tokens).toBe(Math.ceil("What is the capital of France?".length / 4) + 4)
  })

  test("a stream adds up to the whole answer: thinking, text, tool use and usage", async () => {
    const toolCalls = [{ id: "toolu_a", name: "f", arguments: '{"é":"🎉"}' }]
    const step = {
      kind: "messages",
      thinking: "well now",
      text: "one two",
      toolCalls,
      cachedTokens: 9,
      gapMs: 0,
    } as const
    stand.vendor.behave(step)
    const whole = await anthropic().messages.create(ask)
    const final = await anthropic().messages.stream(ask).finalMessage()
    expect(final.content).toMatchObject(whole.content)
    expect(final.content.map(({ type }) => type)).toEqual(["thinking", "text", "tool_use"])
    expect(final.content[2]).toMatchObject({ id: "toolu_a", input: { é: "🎉" } })
    expect(final.stop_reason).toBe("tool_use")
    expect(final.usage).toMatchObject({ cache_read_input_tokens: 9, output_tokens: whole.usage.output_tokens })
  })

  test("a mentioned tool is used, and its result is answered in text", async () => {
    const first = await anthropic().messages.create({
      ...ask,
      messages: [user("Please get weather for tomorrow")],
      tools: [weather],
    })
    const use = first.content[0]!
    if (use.type !== "tool_use") throw new Error(`a ${use.type} came instead of a tool use`)
    expect(use.input).toEqual({ city: "Paris" })
    const second = await anthropic().messages.create({
      ...ask,
      tools: [weather],
      messages: [
        user("Please get weather for tomorrow"),
        { role: "assistant", content: [{ type: "tool_use", id: use.id, name: use.name, input: use.input }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: "sunny, 21 degrees" }] },
      ],
    })
    expect(second.content[0]).toMatchObject({ type: "text", text: expect.stringContaining("sunny, 21 degrees") })
  })

  test("tokens are counted without an answer", async () => {
    const { model, messages } = ask
    const short = await anthropic().messages.countTokens({ model, messages })
    const long = await anthropic().messages.countTokens({ model, messages, system: "x".repeat(400) })
    expect(long.input_tokens - short.input_tokens).toBe(100)
  })

  test("an error in mid-stream is thrown with its type", async () => {
    stand.vendor.behave({ kind: "messages", ending: "error", endAfterEvents: 4, gapMs: 0 })
    const error = await failureOf(anthropic().messages.stream(ask).finalMessage())
    expect(error).toBeInstanceOf(Anthropic.APIError)
    expect(String(error)).toContain("overloaded_error")
  })

  test.each([
    [401, Anthropic.AuthenticationError, "authentication_error"],
    [403, Anthropic.PermissionDeniedError, "permission_error"],
    [404, Anthropic.NotFoundError, "not_found_error"],
    [429, Anthropic.RateLimitError, "rate_limit_error"],
    [500, Anthropic.InternalServerError, "api_error"],
  ])("status %i has the vendor's own body", async (status, kind, type) => {
    stand.vendor.behave({ kind: "status", status, headers: { "retry-after": "7" } })
    const error = await failureOf(anthropic().messages.create(ask))
    expect(error).toBeInstanceOf(kind)
    if (!(error instanceof Anthropic.APIError)) return
    expect(error.error).toMatchObject({ type: "error", error: { type }, request_id: error.requestID })
    expect(error.headers?.get("retry-after")).toBe("7")
  })
})

describe("the shape of a stream", () => {
  test("is the vendor's sequence, each event named by its type", async () => {
    const events = await streamed({ text: "Hi there" })
    expect(events.map(({ type }) => type)).toEqual([
      "message_start",
      "content_block_start",
      "ping",
      "content_block_delta",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ])
    expect(events[0]).toMatchObject({ message: { content: [], stop_reason: null, usage: { output_tokens: 1 } } })
    const text = await (await stand.post(path, { ...ask, stream: true })).text()
    expect(text).toStartWith('event: message_start\ndata: {"type":"message_start"')
  })
  test("signature comes last in the thinking, arguments begin with an empty piece", async () => {
    const events = await streamed({
      thinking: "hm",
      signature: "sig",
      text: "",
      toolCalls: [{ name: "f", arguments: "{}" }],
    })
    const deltas = events.filter(({ type }) => type === "content_block_delta").map(({ delta }) => delta)
    expect(deltas).toEqual([
      { type: "thinking_delta", thinking: "hm" },
      { type: "signature_delta", signature: "sig" },
      { type: "input_json_delta", partial_json: "" },
      { type: "input_json_delta", partial_json: "{" },
      { type: "input_json_delta", partial_json: "}" },
    ])
  })
  test("the end is as told: without message_stop, with an error, without ping or usage", async () => {
    expect((await streamed({ ending: "none" })).at(-1)).toMatchObject({ type: "message_delta" })
    const failed = await streamed({ ending: "error", error: { code: "api_error", message: "no luck" } })
    expect(failed.at(-1)).toEqual({ type: "error", error: { type: "api_error", message: "no luck" } })
    expect(failed.map(({ type }) => type)).not.toContain("message_delta")
    const bare = await streamed({ ping: false, usage: "none", stopReason: "stop_sequence", stopSequence: "END" })
    expect(bare.map(({ type }) => type)).not.toContain("ping")
    expect(bare.at(-2)).toEqual({
      type: "message_delta",
      delta: { stop_reason: "stop_sequence", stop_sequence: "END" },
    })
  })
  test("a stall sends ping events, not comments", async () => {
    stand.vendor.behave({ kind: "messages", gapMs: 0, cut: { afterEvents: 1, how: "stall" }, pingEveryMs: 5 })
    const client = await rawClient(stand.simulator.port)
    client.send(post(`/anthropic${path}`, JSON.stringify({ ...ask, stream: true })))
    await eventually(() => client.text().split("event: ping\n").length > 3)
    expect(client.text()).not.toContain("\n: ")
    client.leave()
    await eventually(() => stand.vendor.openCalls() === 0)
  })
})

test("an error that is not streamed has its own status", async () => {
  const response = await stand.post(path, ask, { step: { kind: "messages", ending: "error" } })
  expect(response.status).toBe(529)
  expect(await response.json()).toMatchObject({ type: "error", error: { type: "overloaded_error" } })
})

test("max_tokens 0 warms the cache and says nothing", async () => {
  const response = await stand.post(path, { ...ask, max_tokens: 0 })
  expect(await response.json()).toMatchObject({ content: [], stop_reason: "max_tokens", usage: { output_tokens: 0 } })
})

test("an unexpected key is refused in the vendor's words, wherever it stands", async () => {
  stand.vendor.expectKey("sk-ant-right")
  expect(await failureOf(anthropic().messages.create(ask))).toBeInstanceOf(Anthropic.AuthenticationError)
  expect((await stand.post(path, ask, { headers: { "x-api-key": "sk-ant-right" } })).status).toBe(200)
})

test.each([
  [{ max_tokens: 1, messages: [] }, "model"],
  [{ model: "m", messages: [] }, "max_tokens"],
  [{ model: "m", max_tokens: 1 }, "messages"],
  [{ model: "m", max_tokens: 1, messages: [] }, "at least one message"],
])("a body the vendor would refuse is refused: %j", async (body, reason) => {
  const response = await stand.post(path, body)
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({
    type: "error",
    error: { type: "invalid_request_error", message: expect.stringContaining(reason) },
  })
})
