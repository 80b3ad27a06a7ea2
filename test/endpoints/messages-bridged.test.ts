import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { eventually, headerOf } from "../support/gateway.ts"
import { checkMessages, messagesEvents } from "../support/messages-check.ts"
import { askMessages, messageOf, messagesPath, modes, over, postMessages } from "../support/messages-scene.ts"
import { asked, chunk, done, finishChunk, roleChunk, stopWithoutComplaint, usageChunk } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

const schema = { type: "object", properties: { city: { type: "string" } } }

/** All that a caller may send, and more: what is marked must not reach a chat upstream in any form. */
const everything = {
  max_tokens: 55,
  system: [{ type: "text", text: "Be kind.", cache_control: { type: "ephemeral", note: "dropped" } }],
  messages: [{ role: "user", content: [{ type: "text", text: "Hi", citations: [{ note: "dropped" }] }] }],
  temperature: 0,
  top_p: 1,
  stop_sequences: ["END"],
  tools: [
    { name: "get_weather", description: "Weather", input_schema: schema, defer_loading: true, strict: "dropped" },
    { type: "web_search_20250305", name: "web_search", note: "dropped" },
  ],
  tool_choice: { type: "any", disable_parallel_tool_use: true },
  metadata: { user_id: "u-1", note: "dropped" },
  top_k: 5,
  thinking: { type: "enabled", budget_tokens: 1024, note: "dropped" },
  output_config: { effort: "dropped" },
  context_management: { edits: ["dropped"] },
  service_tier: "dropped",
  container: "dropped",
  mcp_servers: [{ url: "dropped" }],
  unknown_field: "dropped",
}

describe.each(modes)("%s", (_, stream) => {
  test("exactly the eleven fields reach the upstream, in its own dialect", async () => {
    await using stage = await over("bridged", simulator)
    const headers = { "anthropic-version": "2026-10-21", "anthropic-beta": "dropped" }
    const answer = await askMessages(
      stage,
      { ...everything, stream },
      { headers, path: `${messagesPath}?beta=true&x=dropped` },
    )
    expect(answer.status).toBe(200)
    const [call] = stage.vendor("a").calls
    expect(call!.path).toEndWith("/v1/chat/completions")
    expect(asked(stage)).toEqual({
      model: "m-upstream",
      messages: [
        { role: "system", content: "Be kind." },
        { role: "user", content: "Hi" },
      ],
      max_tokens: 55,
      temperature: 0,
      top_p: 1,
      stop: ["END"],
      tools: [{ type: "function", function: { name: "get_weather", description: "Weather", parameters: schema } }],
      tool_choice: "required",
      parallel_tool_calls: false,
      user: "u-1",
      ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
    })
    expect(JSON.stringify([call!.headers, call!.path])).not.toContain("dropped")
    expect(headerOf(call!, "anthropic-version")).toBeUndefined()
    expect(headerOf(call!, "authorization")).toBe("Bearer credential-of-a")
    expect(headerOf(call!, "x-api-key")).toBeUndefined()
  })

  test("text, usage and identity: the caller's model, ids of its own", async () => {
    await using stage = await over("bridged", simulator)
    const usage = {
      prompt_tokens: 45,
      completion_tokens: 8,
      total_tokens: 53,
      prompt_tokens_details: { cached_tokens: 30, cache_write_tokens: 5 },
      completion_tokens_details: { reasoning_tokens: 3 },
    }
    stage
      .vendor("a")
      .behave({ kind: "chat", text: 'Grüße,\n"世界" \u2028 👋 data: x', usage, model: "theirs", gapMs: 1 })
    const first = await askMessages(stage, { stream })
    expect(messageOf(first, stream)).toEqual({
      id: expect.stringMatching(/^msg_\w+$/),
      type: "message",
      role: "assistant",
      model: "m",
      content: [{ type: "text", text: 'Grüße,\n"世界" \u2028 👋 data: x' }],
      stop_reason: "end_turn",
      stop_sequence: null,
      usage: {
        input_tokens: 10,
        output_tokens: 8,
        cache_creation_input_tokens: 5,
        cache_read_input_tokens: 30,
        output_tokens_details: { thinking_tokens: 3 },
      },
    } as never)
    expect(first.text).not.toContain("[DONE]")
    expect(first.headers.get("request-id")).toBe(first.headers.get("x-request-id"))
    expect(first.headers.get("anthropic-organization-id")).toBeNull()
    if (stream) {
      expect(first.headers.get("cache-control")).toBe("no-cache, no-transform")
      expect(first.headers.get("x-accel-buffering")).toBe("no")
    }
    expect(first.story).toMatchObject({
      ending: "completed",
      endpoint: "messages",
      stream,
      estimated: false,
      usage: { input: 45, cachedInput: 30, cacheWrite: 5, output: 8, reasoning: 3 },
    })
    const second = await askMessages(stage, { stream })
    expect(messageOf(second, stream).id).not.toBe(messageOf(first, stream).id)
  })

  test.each(["reasoning_content", "reasoning"])("%s becomes thinking, with a signature", async (field) => {
    await using stage = await over("bridged", simulator)
    const usage = { prompt_tokens: 7, completion_tokens: 5 }
    const message = { role: "assistant", content: "so", [field]: "let me see" }
    stage.vendor("a").behave(
      stream
        ? {
            kind: "stream",
            frames: [
              roleChunk,
              chunk({ [field]: "let me " }),
              chunk({ [field]: "see" }),
              chunk({ content: "so" }),
            ].concat(finishChunk, usageChunk, done),
            gapMs: 1,
          }
        : { kind: "status", status: 200, json: { choices: [{ index: 0, message, finish_reason: "stop" }], usage } },
    )
    expect(messageOf(await askMessages(stage, { stream }), stream).content).toEqual([
      { type: "thinking", thinking: "let me see", signature: expect.stringMatching(/./) },
      { type: "text", text: "so" },
    ])
  })

  test.each([
    ["stop", [], "end_turn"],
    ["length", [], "max_tokens"],
    ["content_filter", [], "refusal"],
    ["stop", [{ name: "f", arguments: "{}" }], "tool_use"],
    ["tool_calls", [], "end_turn"],
    ["never_heard_of", [], "end_turn"],
  ])("finish reason %s with calls %j is stop reason %s", async (finishReason, toolCalls, stop) => {
    await using stage = await over("bridged", simulator)
    stage.vendor("a").behave({ kind: "chat", text: "so far", finishReason, toolCalls, gapMs: 0 })
    expect(messageOf(await askMessages(stage, { stream }), stream).stop_reason).toBe(stop)
  })

  test("without usage it is counted, told and marked", async () => {
    await using stage = await over("bridged", simulator)
    stage.vendor("a").behave({ kind: "chat", text: "one two three", usage: "none", gapMs: 1 })
    const answer = await askMessages(stage, { stream })
    const { usage } = messageOf(answer, stream)
    expect(usage.output_tokens).toBeGreaterThan(0)
    expect(usage.input_tokens).toBeGreaterThan(0)
    expect(answer.story).toMatchObject({
      estimated: true,
      usage: { input: usage.input_tokens, output: usage.output_tokens },
    })
  })
})

describe("streams", () => {
  test("the whole sequence: zero usage first, one message_delta with the real one, message_stop last", async () => {
    await using stage = await over("bridged", simulator)
    stage
      .vendor("a")
      .behave({ kind: "chat", text: "Hel lo", usage: { prompt_tokens: 5, completion_tokens: 2 }, gapMs: 1 })
    const events = messagesEvents((await askMessages(stage, { stream: true })).text)
    expect(events.map(({ type }) => type)).toEqual([
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ])
    const none = { input_tokens: 0, output_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }
    expect(events[0]!.message!.usage).toEqual(none)
    expect(events[5]!.usage).toMatchObject({ input_tokens: 5, output_tokens: 2 })
  })

  test("vector 72: a finish without [DONE] is a normal end", async () => {
    await using stage = await over("bridged", simulator)
    stage.vendor("a").behave({ kind: "chat", text: "one", done: false, gapMs: 1 })
    const answer = await askMessages(stage, { stream: true })
    expect(messageOf(answer, true)).toMatchObject({ stop_reason: "end_turn" })
    expect(answer.story).toMatchObject({ ending: "completed", estimated: false })
  })

  test("vector 78: JSON though a stream was asked for is told as the events it would have been", async () => {
    await using stage = await over("bridged", simulator)
    const toolCalls = [{ id: "call_1", name: "f", arguments: '{"a":1}' }]
    for (const usage of ["in_finish", "none"] as const) {
      stage.vendor("a").behave({ kind: "chat", text: "whole", reasoning: "hm", toolCalls, usage, ignoresStream: true })
      const answer = await askMessages(stage, { stream: true })
      const message = messageOf(answer, true)
      expect(message).toMatchObject({
        model: "m",
        content: [
          { type: "thinking", thinking: "hm" },
          { type: "text", text: "whole" },
          { type: "tool_use", id: "call_1", name: "f", input: { a: 1 } },
        ],
        stop_reason: "tool_use",
      })
      expect(message.usage.output_tokens).toBe(answer.story.usage!.output)
      expect(answer.headers.get("cache-control")).toBe("no-cache, no-transform")
      expect(answer.story).toMatchObject({ ending: "completed", estimated: usage === "none" })
    }
  })

  test("vector 79: 429 before the stream is an HTTP 429 with its retry-after, no stream", async () => {
    await using stage = await over("bridged", simulator)
    stage
      .vendor("a")
      .behave({ kind: "status", status: 429, headers: { "retry-after": "17", "x-should-retry": "true" } })
    const answer = await askMessages(stage, { stream: true })
    expect(answer.status).toBe(429)
    expect(answer.headers.get("content-type")).toBe("application/json")
    expect([answer.headers.get("retry-after"), answer.headers.get("x-should-retry")]).toEqual(["17", "true"])
    expect(JSON.parse(answer.text)).toMatchObject({ type: "error", error: { type: "rate_limit_error" } })
  })

  test("vector 83: the client leaves, the upstream is let go", async () => {
    await using stage = await over("bridged", simulator)
    stage.vendor("a").behave({ kind: "chat", text: "one two", gapMs: 5, cut: { afterEvents: 2, how: "stall" } })
    const leaving = new AbortController()
    const response = await postMessages(stage.gateway, { stream: true }, { signal: leaving.signal })
    await response.body!.getReader().read()
    leaving.abort()
    await eventually(() => stage.vendor("a").calls[0]!.closedByPeer, 1000)
    const story = await eventually(() => stage.gateway.stories[0])
    expect(story).toMatchObject({ ending: "client_gone", estimated: true })
    expect(story.usage!.output).toBeGreaterThan(0)
  })

  test("vector 86: 10 000 deltas keep their order, and the first comes before the last was sent", async () => {
    await using stage = await over("bridged", simulator)
    const digits = Array.from({ length: 10_000 }, (_, number) => String(number % 10))
    const frames = [digits.slice(0, 5000), digits.slice(5000)].map((half) =>
      half.map((content) => chunk({ content })).join(""),
    )
    const gapMs = 300
    stage.vendor("a").behave({ kind: "stream", frames: [...frames, finishChunk + usageChunk + done], gapMs })
    const response = await postMessages(stage.gateway, { stream: true })
    const reader = response.body!.getReader()
    const first = await reader.read()
    expect(stage.vendor("a").openCalls()).toBe(1)
    let text = Buffer.from(first.value!).toString()
    const decoder = new TextDecoder()
    for (let next = await reader.read(); !next.done; next = await reader.read())
      text += decoder.decode(next.value, { stream: true })
    const { message, events } = checkMessages(text)
    expect(message.content).toEqual([{ type: "text", text: digits.join("") }])
    expect(events).toHaveLength(10_000 + 5)
  })

  test("an image of a megabyte reaches the upstream whole", async () => {
    await using stage = await over("bridged", simulator)
    const data = Buffer.alloc(786_432, 7).toString("base64")
    const source = { type: "base64", media_type: "image/png", data }
    const content = [
      { type: "image", source },
      { type: "text", text: "What is it?" },
    ]
    expect((await askMessages(stage, { messages: [{ role: "user", content }] })).status).toBe(200)
    expect(asked(stage).messages).toEqual([
      {
        role: "user",
        content: [
          { type: "image_url", image_url: { url: `data:image/png;base64,${data}` } },
          { type: "text", text: "What is it?" },
        ],
      },
    ])
  })
})
