import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { readSaid } from "../support/chat-said.ts"
import { headerOf } from "../support/gateway.ts"
import { asked, readAnswer, stopWithoutComplaint } from "../support/scene.ts"
import { chunksOf } from "../support/sse-events.ts"
import { chatUsage, messagesUsage, modes, overMessages, used } from "./over-messages.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

describe.each(modes)("%s", (_, stream) => {
  test("text, identity and usage; the vendor is called its own way", async () => {
    await using stage = await overMessages(simulator)
    stage.vendor("a").behave({
      kind: "messages",
      id: "msg_01abc",
      text: "Grüße aus 北京 👋",
      model: "claude-their-name",
      usage: messagesUsage,
      gapMs: 1,
    })
    const answer = await stage.ask(stream, { temperature: 1.7, stop: ["END", ""], user: "u", logprobs: true, seed: 1 })
    expect(readSaid(answer, stream)).toEqual({
      role: "assistant",
      content: "Grüße aus 北京 👋",
      reasoning: "",
      calls: [],
      finish: ["stop"],
      usage: chatUsage,
    })
    const [first] = stream ? chunksOf(answer.text) : [JSON.parse(answer.text)]
    expect(first).toMatchObject({
      id: "chatcmpl-01abc",
      object: stream ? "chat.completion.chunk" : "chat.completion",
      model: "claude-their-name",
      created: expect.any(Number),
    })
    expect(answer.headers.get("content-type")).toStartWith(stream ? "text/event-stream" : "application/json")
    expect(answer.headers.get("x-upstream-request-id")).toStartWith("req_")
    expect(answer.story).toMatchObject({ ending: "completed", usage: used, estimated: false, endpoint: "chat", stream })

    const [call] = stage.vendor("a").calls
    expect(call!.path).toEndWith("/v1/messages")
    expect(headerOf(call!, "x-api-key")).toBe("credential-of-a")
    expect(headerOf(call!, "authorization")).toBeUndefined()
    expect(headerOf(call!, "anthropic-version")).toBe("2023-06-01")
    expect(headerOf(call!, "content-type")).toBe("application/json")
    expect(asked(stage)).toEqual({
      model: "m-upstream",
      max_tokens: 4096,
      messages: [{ role: "user", content: [{ type: "text", text: "Say hello" }] }],
      ...(stream ? { stream: true } : {}),
      temperature: 1,
      stop_sequences: ["END"],
      metadata: { user_id: "u" },
    })
  })

  test("the caller's own anthropic headers stay behind: they are about another dialect", async () => {
    await using stage = await overMessages(simulator)
    const response = await stage.gateway.chat(
      { model: "m", stream, messages: [{ role: "user", content: "x" }] },
      { headers: { "anthropic-version": "2099-01-01", "anthropic-beta": "odd" } },
    )
    expect((await readAnswer(stage.gateway, response)).status).toBe(200)
    const [call] = stage.vendor("a").calls
    expect(headerOf(call!, "anthropic-version")).toBe("2023-06-01")
    expect(headerOf(call!, "anthropic-beta")).toBeUndefined()
  })

  test("thinking is reasoning_content, and its signature is not told", async () => {
    await using stage = await overMessages(simulator)
    stage.vendor("a").behave({ kind: "messages", thinking: "let me see", signature: "c2ln", text: "done", gapMs: 1 })
    const answer = await stage.ask(stream)
    expect(readSaid(answer, stream)).toMatchObject({ reasoning: "let me see", content: "done", finish: ["stop"] })
    expect(answer.text).not.toContain("c2ln")
  })

  test("tools: declared, called, and their results sent back", async () => {
    await using stage = await overMessages(simulator)
    const toolCalls = [
      { id: "toolu_a", name: "get_weather", arguments: '{"city":"Zürich"}' },
      { id: "toolu_b", name: "get_time", arguments: "{}" },
    ]
    stage
      .vendor("a")
      .behave({ kind: "messages", text: "I look.", toolCalls, gapMs: 1 }, { kind: "messages", text: "Sunny." })
    const parameters = { type: "object", properties: { city: { type: "string" } } }
    const tools = [
      { type: "function", function: { name: "get_weather", description: "Weather", parameters } },
      { type: "function", function: { name: "get_time" } },
    ]
    const answer = await stage.ask(stream, { tools, tool_choice: "required", parallel_tool_calls: false })
    expect(readSaid(answer, stream)).toMatchObject({
      content: "I look.",
      finish: ["tool_calls"],
      calls: [
        { id: "toolu_a", type: "function", name: "get_weather", arguments: '{"city":"Zürich"}' },
        { id: "toolu_b", type: "function", name: "get_time", arguments: "{}" },
      ],
    })
    expect(asked(stage)).toMatchObject({
      tools: [
        { name: "get_weather", description: "Weather", input_schema: parameters },
        { name: "get_time", input_schema: { type: "object", properties: {} } },
      ],
      tool_choice: { type: "any", disable_parallel_tool_use: true },
    })

    const history = [
      { role: "system", content: "Be kind." },
      { role: "user", content: "Weather?" },
      {
        role: "assistant",
        content: "I look.",
        tool_calls: toolCalls.map(({ id, name, arguments: given }) => ({
          id,
          type: "function",
          function: { name, arguments: given },
        })),
      },
      { role: "tool", tool_call_id: "toolu_a", content: "21 degrees" },
      { role: "tool", tool_call_id: "toolu_b", content: "noon" },
    ]
    const second = await stage.ask(stream, { messages: history, tools })
    expect(readSaid(second, stream)).toMatchObject({ content: "Sunny.", calls: [], finish: ["stop"] })
    expect(asked(stage)).toMatchObject({
      system: "Be kind.",
      messages: [
        { role: "user", content: [{ type: "text", text: "Weather?" }] },
        {
          role: "assistant",
          content: [
            { type: "text", text: "I look." },
            { type: "tool_use", id: "toolu_a", name: "get_weather", input: { city: "Zürich" } },
            { type: "tool_use", id: "toolu_b", name: "get_time", input: {} },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "toolu_a", content: "21 degrees" },
            { type: "tool_result", tool_use_id: "toolu_b", content: "noon" },
          ],
        },
      ],
    })
  })

  test("images and documents reach the vendor as blocks", async () => {
    await using stage = await overMessages(simulator)
    const content = [
      { type: "text", text: "What is this?" },
      { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
      { type: "image_url", image_url: { url: "https://example.com/x.png" } },
      { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,BBBB" } },
    ]
    const answer = await stage.ask(stream, {
      messages: [{ role: "user", content }],
      max_completion_tokens: 7,
      max_tokens: 9,
    })
    expect(answer.status).toBe(200)
    expect(asked(stage)).toMatchObject({
      max_tokens: 7,
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is this?" },
            { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
            { type: "image", source: { type: "url", url: "https://example.com/x.png" } },
            {
              type: "document",
              source: { type: "base64", media_type: "application/pdf", data: "BBBB" },
              title: "a.pdf",
            },
          ],
        },
      ],
    })
  })

  test.each([
    ["max_tokens", "length"],
    ["refusal", "content_filter"],
    ["stop_sequence", "stop"],
    ["pause_turn", "stop"],
    ["model_context_window_exceeded", "length"],
  ])("stop reason %s is finish reason %s", async (stopReason, finish) => {
    await using stage = await overMessages(simulator)
    stage.vendor("a").behave({ kind: "messages", text: "so far", stopReason, gapMs: 0 })
    expect(readSaid(await stage.ask(stream), stream).finish).toEqual([finish])
  })

  test.each([
    ["n", { n: 2 }],
    ["messages", { messages: [] }],
    [
      "messages[1].tool_calls[0].function.arguments",
      {
        messages: [
          { role: "user", content: "x" },
          { role: "assistant", tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{" } }] },
        ],
      },
    ],
    [
      "messages[0].content[0].type",
      { messages: [{ role: "user", content: [{ type: "input_audio", input_audio: {} }] }] },
    ],
    ["tools[0].type", { tools: [{ type: "custom", custom: { name: "x" } }] }],
  ])("what cannot be told to the vendor is a 400 that names it (%s), and nobody is asked", async (place, more) => {
    await using stage = await overMessages(simulator)
    const answer = await stage.ask(stream, more)
    const { error } = JSON.parse(answer.text)
    expect([answer.status, error.type, error.code]).toEqual([400, "invalid_request_error", "invalid_parameter"])
    expect(error.message).toStartWith(`${place}: `)
    expect(stage.calls()).toEqual([0])
  })

  test.each([
    [400, "invalid_request_error", null],
    [413, "request_too_large", null],
    [401, "invalid_request_error", "invalid_api_key"],
    [402, "billing_error", null],
    [403, "permission_error", null],
    [404, "not_found_error", "model_not_found"],
    [429, "rate_limit_exceeded", "rate_limit_exceeded"],
  ])("its refusal %i keeps the status and comes in chat style", async (status, type, code) => {
    await using stage = await overMessages(simulator)
    stage.vendor("a").behave({ kind: "status", status, headers: { "retry-after": "60" } })
    const answer = await stage.ask(stream)
    expect([answer.status, JSON.parse(answer.text)]).toEqual([
      status,
      { error: { message: expect.any(String), type, param: null, code } },
    ])
    expect(answer.headers.get("content-type")).toBe("application/json")
    expect(answer.headers.get("retry-after")).toBe("60")
    expect(answer.story).toMatchObject({ ending: "refused", status })
    expect(stage.calls()).toEqual([1])
  })

  test("the words of a refusal that is no JSON are kept, our credential blanked out", async () => {
    await using stage = await overMessages(simulator)
    const headers = { "content-type": "text/plain" }
    stage.vendor("a").behave({ kind: "status", status: 400, body: "bad thing about credential-of-a", headers })
    const answer = await stage.ask(stream)
    expect([answer.status, JSON.parse(answer.text).error.message]).toEqual([400, "bad thing about ***"])
    expect(answer.headers.get("content-type")).toBe("application/json")
  })
})
