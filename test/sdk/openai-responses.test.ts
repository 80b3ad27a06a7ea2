import { afterAll, beforeEach, describe, expect, test } from "bun:test"
import OpenAI from "openai"
import type { FunctionTool, ResponseInput } from "openai/resources/responses/responses"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { eventually } from "../support/gateway.ts"
import { thrownBy } from "./openai-sides.ts"
import { type Address, openVendorSides, settled } from "./sides.ts"

const sides = await openVendorSides()
const { both, vendor, chatVendor } = sides
beforeEach(sides.reset)
afterAll(sides.close)

const client = (address: Address = sides.through): OpenAI => new OpenAI({ ...address, maxRetries: 0 })
const ask = { model: "sim-large", input: "Say hello" }
const weather: FunctionTool = {
  type: "function",
  name: "get_weather",
  strict: false,
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
}

/** Reads a stream by its events and by its helper. */
async function read(address: Address, more: object = {}) {
  const stream = client(address).responses.stream({ ...ask, ...more })
  const events = await Array.fromAsync(stream)
  const final = await stream.finalResponse()
  return settled({
    types: events.map(({ type }) => type),
    numbers: events.map(({ sequence_number }) => sequence_number),
    text: events.map((event) => (event.type === "response.output_text.delta" ? event.delta : "")).join(""),
    final: { ...final, _request_id: null },
  })
}

describe("the vendor speaks responses", () => {
  test("text: the same events and the same final response as without the gateway, usage included", async () => {
    const step: Behaviour = { kind: "responses", text: "Grüße, 世界 👋", chunks: 3, reasoning: "Hm.", cachedTokens: 3 }
    const { direct, through } = await both(read, step)
    expect(through).toEqual(direct)
    expect(through.text).toBe("Grüße, 世界 👋")
    expect(through.final.output_text).toBe("Grüße, 世界 👋")
    expect(through.final).toMatchObject({
      status: "completed",
      model: "sim-large",
      usage: { input_tokens_details: { cached_tokens: 3 }, total_tokens: expect.any(Number) },
    })
    expect(through.types.at(-1)).toBe("response.completed")
    expect(through.numbers).toEqual(through.numbers.map((_, position) => position))
    expect(JSON.parse(Buffer.from(vendor.calls[0]!.body).toString())).toEqual({ ...ask, stream: true })
  })

  test("a call of a tool and the round after it", async () => {
    const called: Behaviour = {
      kind: "responses",
      toolCalls: [
        { id: "call_1", name: "get_weather", arguments: '{"city":"Paris"}' },
        { id: "call_2", name: "get_weather", arguments: '{"city":"Ōsaka"}' },
      ],
    }
    const { direct, through, throughCalls } = await both(toolRounds, called, { kind: "responses", text: "18 in both." })
    expect(through).toEqual(direct)
    expect(through).toEqual({ cities: ["Paris", "Ōsaka"], said: "18 in both." })
    expect(throughCalls).toBe(2)
  })

  test("`create` with stream: true is the same stream", async () => {
    const { direct, through } = await both(
      async (address) =>
        settled(await Array.fromAsync(await client(address).responses.create({ ...ask, stream: true }))),
      { kind: "responses", text: "Hello there." },
    )
    expect(through).toEqual(direct)
  })

  test("`create` without stream fails in the SDK, which gets events where it looks for an object", async () => {
    vendor.behave({ kind: "responses", text: "Hello." })
    const asking = client().responses.create(ask)
    const raw = await asking.asResponse()
    expect([raw.status, raw.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"])
    await expect((async () => client().responses.create(ask))()).rejects.toThrow(TypeError)
    expect(JSON.parse(Buffer.from(vendor.calls[0]!.body).toString())).toEqual({ ...ask, stream: true })
  })

  test("an unfinished or failed response is told as the vendor tells it", async () => {
    for (const ending of ["incomplete", "failed"] as const) {
      const { direct, through } = await both(read, { kind: "responses", text: "So far", ending })
      expect(through).toEqual(direct)
      expect(through.final.status).toBe(ending)
    }
  })

  test("a vendor that answers with JSON all the same: the helper reads a whole stream", async () => {
    vendor.behave({ kind: "responses", text: "All at once.", ignoresStream: true, id: "resp_1" })
    const { types, text, final, numbers } = await read(sides.through)
    expect([types[0], types.at(-1)]).toEqual(["response.created", "response.completed"])
    expect([text, final.output_text]).toEqual(["All at once.", "All at once."])
    expect(final.usage?.total_tokens).toBeGreaterThan(0)
    expect(numbers).toEqual(numbers.map((_, position) => position))
  })

  test("a refusal of the vendor is the same exception", async () => {
    const refusing = (address: Address) =>
      thrownBy(() => client(address).responses.create({ ...ask, stream: true, temperature: 9 }))
    const error = { message: "temperature too high", type: "invalid_request_error", param: "temperature", code: null }
    const { direct, through } = await both(refusing, { kind: "status", status: 400, json: { error } })
    expect(through).toEqual(direct)
    expect(through).toMatchObject({ kind: "BadRequestError", status: 400, param: "temperature" })
  })

  test("a stream cut short throws and never looks complete", async () => {
    vendor.behave({ kind: "responses", chunks: 20, cut: { afterEvents: 8, how: "fin" } })
    const thrown = await thrownBy(() => read(sides.through))
    expect(thrown).toMatchObject({ kind: "APIError", code: "upstream_stream_truncated" })
  })

  test("leaving in mid-stream ends the vendor's call", async () => {
    vendor.behave({ kind: "responses", chunks: 500, gapMs: 20 })
    const stream = client().responses.stream(ask)
    for await (const event of stream) if (event.type === "response.output_text.delta") break
    stream.abort()
    await eventually(() => vendor.calls[0]?.closedByPeer, 1000)
  })
})

async function toolRounds(address: Address): Promise<{ cities: string[]; said: string }> {
  const { model } = ask
  const input: ResponseInput = [{ role: "user", content: "How warm is it?" }]
  const first = await client(address)
    .responses.stream({ model, input, tools: [weather] })
    .finalResponse()
  const calls = first.output.filter((item) => item.type === "function_call")
  const cities = calls.map((call) => (JSON.parse(call.arguments) as { city: string }).city)
  for (const call of calls) {
    input.push(call, { type: "function_call_output", call_id: call.call_id, output: "18 degrees" })
  }
  const second = await client(address)
    .responses.stream({ model, input, tools: [weather] })
    .finalResponse()
  return { cities, said: second.output_text }
}

describe("the vendor speaks only chat", () => {
  const bridged = { model: "over-chat" }

  test("text, reasoning and usage read as from a vendor that speaks responses", async () => {
    chatVendor.behave({ kind: "chat", text: "Grüße, 世界 👋", reasoning: "Hm.", cachedTokens: 2 })
    const { types, text, final, numbers } = await read(sides.through, bridged)
    expect([text, final.output_text]).toEqual(["Grüße, 世界 👋", "Grüße, 世界 👋"])
    expect(final.output.map(({ type }) => type)).toEqual(["reasoning", "message"])
    expect(final).toMatchObject({ status: "completed", usage: { input_tokens_details: { cached_tokens: 2 } } })
    expect(final.usage!.total_tokens).toBe(final.usage!.input_tokens + final.usage!.output_tokens)
    expect([types[0], types.at(-1)]).toEqual(["response.created", "response.completed"])
    expect(numbers).toEqual(numbers.map((_, position) => position))
    expect(chatVendor.calls.map(({ path }) => path)).toEqual(["/deepseek/v1/chat/completions"])
  })

  test("calls of tools arrive whole, and their results go back", async () => {
    chatVendor.behave(
      {
        kind: "chat",
        toolCalls: [
          { id: "call_1", name: "get_weather", arguments: '{"city":"Paris"}' },
          { id: "call_2", name: "get_weather", arguments: '{"city":"Ōsaka"}' },
        ],
      },
      { kind: "chat", text: "18 in both." },
    )
    const input: ResponseInput = [{ role: "user", content: "How warm is it?" }]
    const first = await client()
      .responses.stream({ ...bridged, input, tools: [weather] })
      .finalResponse()
    const calls = first.output.filter((item) => item.type === "function_call")
    for (const { call_id } of calls) input.push({ type: "function_call_output", call_id, output: "18 degrees" })
    input.splice(1, 0, ...calls)
    const second = await client()
      .responses.stream({ ...bridged, input, tools: [weather] })
      .finalResponse()
    expect(second.output_text).toBe("18 in both.")
    const sent = JSON.parse(Buffer.from(chatVendor.calls[1]!.body).toString()) as { messages: object[] }
    expect(sent.messages).toMatchObject([
      { role: "user", content: "How warm is it?" },
      { role: "assistant", tool_calls: [{ id: "call_1" }, { id: "call_2" }] },
      { role: "tool", tool_call_id: "call_1", content: "18 degrees" },
      { role: "tool", tool_call_id: "call_2", content: "18 degrees" },
    ])
  })

  test("what chat cannot carry is a BadRequestError, and the vendor is not asked", async () => {
    const asking = client().responses.create({ ...ask, ...bridged, stream: true, previous_response_id: "resp_1" })
    const thrown = await thrownBy(() => asking)
    expect(thrown).toMatchObject({ kind: "BadRequestError", status: 400, code: "invalid_parameter" })
    expect(thrown.message).toContain("previous_response_id")
    expect(chatVendor.calls).toHaveLength(0)
  })
})
