import { describe, expect, test } from "bun:test"
import OpenAI from "openai"
import type { Behaviour, BehaviourOf } from "../../behaviour.ts"
import { rawClient } from "../../testing/raw-client.ts"
import { eventsIn, failureOf, standWith } from "../../testing/stand.ts"

const stand = standWith("openai")
const openai = (): OpenAI => new OpenAI({ apiKey: "sk-any", baseURL: stand.vendor.baseUrl, maxRetries: 0 })

const path = "/v1/responses"
const ask = { model: "gpt-x", input: "What is the capital of France?" }
const weather = {
  type: "function",
  name: "get_weather",
  strict: null,
  parameters: { type: "object", properties: { city: { type: "string" } } },
} as const

async function streamed(step: Partial<BehaviourOf<"responses">> = {}): Promise<Record<string, unknown>[]> {
  const response = await stand.post(path, { ...ask, stream: true }, { step: { kind: "responses", gapMs: 0, ...step } })
  return eventsIn(await response.text())
}

describe("with the openai package", () => {
  test("a whole answer quotes the question, repeats the settings and counts its tokens", async () => {
    const answer = await openai().responses.create({ ...ask, instructions: "Be kind.", temperature: 0.5 })
    expect(answer.output_text).toContain("the capital of France?")
    expect(answer).toMatchObject({ model: "gpt-x", status: "completed", instructions: "Be kind.", temperature: 0.5 })
    expect(answer.usage!.total_tokens).toBe(answer.usage!.input_tokens + answer.usage!.output_tokens)
  })

  test("a stream adds up to the whole answer, reasoning, text, calls and usage", async () => {
    const toolCalls = [{ id: "call_a", name: "f", arguments: '{"é":"🎉"}' }]
    stand.vendor.behave({
      kind: "responses",
      reasoning: "well now",
      text: "one two",
      toolCalls,
      cachedTokens: 40,
      gapMs: 0,
    })
    const types: string[] = []
    const runner = openai().responses.stream(ask)
    for await (const event of runner) types.push(event.type)
    const final = await runner.finalResponse()
    expect(final.output_text).toBe("one two")
    expect(final.output.map(({ type }) => type)).toEqual(["reasoning", "message", "function_call"])
    expect(final.output[2]).toMatchObject({ call_id: "call_a", name: "f", arguments: '{"é":"🎉"}' })
    expect(final.usage).toMatchObject({ input_tokens: 40, input_tokens_details: { cached_tokens: 40 } })
    expect([types[0], types.at(-1)]).toEqual(["response.created", "response.completed"])
  })

  test("a mentioned tool is called, and the tool's result is answered in text", async () => {
    const input = [{ role: "user", content: "Please get weather for tomorrow" }] as const
    const first = await openai().responses.create({ model: "gpt-x", input: [...input], tools: [weather] })
    const call = first.output[0]!
    if (call.type !== "function_call") throw new Error(`a ${call.type} came instead of a call`)
    expect(JSON.parse(call.arguments)).toEqual({ city: "Paris" })
    const result = { type: "function_call_output", call_id: call.call_id, output: "sunny, 21 degrees" } as const
    const second = await openai().responses.create({
      model: "gpt-x",
      input: [...input, call, result],
      tools: [weather],
    })
    expect(second.output_text).toContain("sunny, 21 degrees")
  })

  test("an error event is thrown as such", async () => {
    stand.vendor.behave({ kind: "responses", gapMs: 0, ending: "error", error: { message: "out of luck" } })
    const stream = await openai().responses.create({ ...ask, stream: true })
    expect(String(await failureOf(Array.fromAsync(stream)))).toContain("out of luck")
  })
})

describe("the shape of a stream", () => {
  test("is the vendor's sequence, numbered from 0", async () => {
    const events = await streamed({ text: "Hi there" })
    expect(events.map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ])
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
  })
  test("every event is named by its type", async () => {
    const text = await (await stand.post(path, { ...ask, stream: true })).text()
    for (const [, name, type] of text.matchAll(/event: (\S+)\ndata: \{"type":"([^"]+)"/g)) expect(name).toBe(type)
    expect(text.match(/^event: /gm)!.length).toBe(eventsIn(text).length)
  })
  test("failed, incomplete and error end it, after as many events as told", async () => {
    const failed = await streamed({ ending: "failed", endAfterEvents: 5, error: { code: "rate_limit_exceeded" } })
    expect(failed).toHaveLength(6)
    expect(failed[5]).toMatchObject({
      type: "response.failed",
      sequence_number: 5,
      response: { status: "failed", error: { code: "rate_limit_exceeded" }, usage: null },
    })
    expect((await streamed({ ending: "incomplete" })).at(-1)).toMatchObject({
      type: "response.incomplete",
      response: { incomplete_details: { reason: "max_output_tokens" }, usage: { input_tokens: expect.any(Number) } },
    })
    const bare = await streamed({ ending: "error", endAfterEvents: 0 })
    expect(bare).toEqual([
      { type: "error", code: "server_error", message: expect.any(String), param: null, sequence_number: 0 },
    ])
  })
  test("usage can be exact, or missing", async () => {
    const usage = { input_tokens: 0, output_tokens: 3, odd: [1] }
    expect((await streamed({ usage })).at(-1)).toMatchObject({ response: { usage } })
    expect((await streamed({ usage: "none" })).at(-1)?.response).not.toHaveProperty("usage")
  })
})

test.each(["fin", "rst"] as const)("a stream is cut by %s after as many events as told", async (how) => {
  stand.vendor.behave({ kind: "responses", gapMs: 0, cut: { afterEvents: 4, how } })
  const client = await rawClient(stand.simulator.port)
  const body = JSON.stringify({ ...ask, stream: true })
  client.send(`POST /openai${path} HTTP/1.1\r\nHost: s\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  expect(await client.ended).toBe(how === "fin" ? "end" : "ECONNRESET")
  expect(client.text()).not.toContain("0\r\n\r\n")
  if (how === "fin") expect(eventsIn(client.text())).toHaveLength(4)
})

test("a stream that ends early but clean looks complete to HTTP", async () => {
  expect(await streamed({ cut: { afterEvents: 3, how: "clean" } })).toHaveLength(3)
})

test("JSON comes though a stream was asked for, if told so", async () => {
  const step: Behaviour = { kind: "responses", ignoresStream: true, text: "hi" }
  const response = await stand.post(path, { ...ask, stream: true }, { step })
  expect(response.headers.get("content-type")).toBe("application/json")
  expect(await response.json()).toMatchObject({
    object: "response",
    status: "completed",
    output: [{ type: "message" }],
  })
})

test.each([
  [{ model: "m" }, "input"],
  [{ input: "x" }, "model"],
])("a body the vendor would refuse is refused: %j", async (body, reason) => {
  const response = await stand.post(path, body)
  expect(response.status).toBe(400)
  expect(await response.text()).toContain(reason)
})
