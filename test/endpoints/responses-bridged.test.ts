import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { headerOf } from "../support/gateway.ts"
import { expectWellFormed, finalOf, typesOf } from "../support/responses-events.ts"
import { asked, scene, stopWithoutComplaint } from "../support/scene.ts"
import { ask, bridged, expectCompleted, mistral } from "./bridged-responses.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

const chatUsage = {
  prompt_tokens: 50,
  completion_tokens: 12,
  total_tokens: 62,
  prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 3 },
  completion_tokens_details: { reasoning_tokens: 5 },
}
const responsesUsage = {
  input_tokens: 50,
  input_tokens_details: { cached_tokens: 20, cache_write_tokens: 3 },
  output_tokens: 12,
  output_tokens_details: { reasoning_tokens: 5 },
  total_tokens: 62,
}
const used = { input: 50, cachedInput: 20, cacheWrite: 3, audioInput: 0, output: 12, reasoning: 5, audioOutput: 0 }

describe("over a chat upstream", () => {
  test.each([{}, { stream: false }, { stream: true }])("text and usage, asked with %j", async (more) => {
    await using stage = await bridged(simulator)
    stage.vendor("a").behave({ kind: "chat", text: "Grüße aus 北京 👋", usage: chatUsage, gapMs: 1 })
    const answer = await ask(stage, { ...more, instructions: "Be kind.", max_output_tokens: 99, temperature: 0 })
    expectCompleted(answer)
    expect(answer.headers.get("cache-control")).toBe("no-cache, no-transform")
    const final = finalOf(answer.text)
    expect(final).toMatchObject({
      object: "response",
      status: "completed",
      // What the caller asked for, not the upstream's name.
      model: "m",
      instructions: "Be kind.",
      max_output_tokens: 99,
      temperature: 0,
      usage: responsesUsage,
      output: [
        {
          type: "message",
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text: "Grüße aus 北京 👋" }],
        },
      ],
    })
    expect(final.id).toStartWith("resp_")
    expect(answer.story).toMatchObject({ usage: used, estimated: false })
    expect(asked(stage)).toEqual({
      model: "m-upstream",
      messages: [
        { role: "system", content: "Be kind." },
        { role: "user", content: "Say hello" },
      ],
      max_tokens: 99,
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
    })
    const [call] = stage.vendor("a").calls
    expect(call!.path).toEndWith("/v1/chat/completions")
    expect(headerOf(call!, "content-type")).toBe("application/json")
    expect(headerOf(call!, "authorization")).toBe("Bearer credential-of-a")
  })

  test("an upstream that refuses stream_options is not sent them, and its usage is read all the same", async () => {
    await using stage = await scene(simulator, ["a"], { each: { a: mistral } })
    stage.vendor("a").behave({ kind: "chat", text: "Hi", usage: "in_finish", gapMs: 1 })
    const answer = await ask(stage)
    expectCompleted(answer)
    expect(asked(stage)).not.toHaveProperty("stream_options")
    expect(answer.story.estimated).toBeFalse()
    expect(finalOf(answer.text).usage).toMatchObject({ output_tokens: answer.story.usage!.output })
  })

  test("an upstream that turns out to refuse stream_options is asked again without", async () => {
    await using stage = await bridged(simulator)
    stage.vendor("a").behave({ kind: "echo_stream_options_error" })
    expectCompleted(await ask(stage))
    expectCompleted(await ask(stage))
    expect(stage.calls()).toEqual([3])
  })

  test("without usage it is counted, told in the last event and marked", async () => {
    await using stage = await bridged(simulator)
    stage.vendor("a").behave({ kind: "chat", text: "one two three", usage: "none", gapMs: 1 })
    const answer = await ask(stage)
    expectCompleted(answer)
    expect(answer.story.estimated).toBeTrue()
    expect(answer.story.usage!.output).toBeGreaterThan(0)
    expect(finalOf(answer.text).usage).toMatchObject({
      input_tokens: answer.story.usage!.input,
      output_tokens: answer.story.usage!.output,
    })
  })

  test("reasoning comes as an item of its own, before the text", async () => {
    await using stage = await bridged(simulator)
    stage.vendor("a").behave({ kind: "chat", reasoning: "let me think", text: "done", gapMs: 1 })
    const answer = await ask(stage, { reasoning: { effort: "high" } })
    expectCompleted(answer)
    expect(finalOf(answer.text).output).toMatchObject([
      { type: "reasoning", summary: [{ type: "summary_text", text: "let me think" }] },
      { type: "message", content: [{ text: "done" }] },
    ])
    expect(asked(stage).reasoning_effort).toBe("high")
  })

  test("tools: the calls come as items, and their outputs go back to the upstream", async () => {
    await using stage = await bridged(simulator)
    const toolCalls = [
      { id: "call_a", name: "get_weather", arguments: '{"city":"Paris"}' },
      { id: "call_b", name: "get_time", arguments: "{}" },
    ]
    stage.vendor("a").behave({ kind: "chat", text: "", toolCalls, gapMs: 1 }, { kind: "chat", text: "sunny" })
    const parameters = { type: "object", properties: { city: { type: "string" } } }
    const tools = [
      { type: "function", name: "get_weather", description: "Weather", parameters, strict: true },
      { type: "function", name: "get_time", parameters: null },
    ]
    const first = await ask(stage, { tools, tool_choice: "required", parallel_tool_calls: true })
    expectCompleted(first)
    const { output } = finalOf(first.text)
    expect(output).toMatchObject([
      {
        type: "function_call",
        call_id: "call_a",
        name: "get_weather",
        arguments: '{"city":"Paris"}',
        status: "completed",
      },
      { type: "function_call", call_id: "call_b", name: "get_time", arguments: "{}", status: "completed" },
    ])
    expect(asked(stage)).toMatchObject({
      tools: [
        { type: "function", function: { name: "get_weather", description: "Weather", parameters, strict: true } },
        { type: "function", function: { name: "get_time" } },
      ],
      tool_choice: "required",
      parallel_tool_calls: true,
    })

    const outputs = [
      { type: "function_call_output", call_id: "call_b", output: "noon" },
      { type: "function_call_output", call_id: "call_a", output: [{ type: "input_text", text: "21 degrees" }] },
    ]
    const second = await ask(stage, { tools, input: [{ role: "user", content: "Weather?" }, ...output, ...outputs] })
    expectCompleted(second)
    expect(asked(stage).messages).toEqual([
      { role: "user", content: "Weather?" },
      {
        role: "assistant",
        content: null,
        tool_calls: toolCalls.map(({ id, name, arguments: given }) => ({
          id,
          type: "function",
          function: { name, arguments: given },
        })),
      },
      { role: "tool", tool_call_id: "call_a", content: "21 degrees" },
      { role: "tool", tool_call_id: "call_b", content: "noon" },
    ])
  })

  test("images, files and formats reach the upstream in its own words", async () => {
    await using stage = await bridged(simulator)
    const schema = { type: "object", properties: {}, additionalProperties: false }
    const answer = await ask(stage, {
      input: [
        { role: "developer", content: "Be brief." },
        {
          type: "message",
          role: "user",
          content: [
            { type: "input_text", text: "What is this?" },
            { type: "input_image", image_url: "data:image/png;base64,AAAA", detail: "high" },
            { type: "input_image", image_url: "https://example.com/x.png" },
            { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,BBBB" },
          ],
        },
      ],
      text: { format: { type: "json_schema", name: "shape", schema, strict: true } },
      store: true,
      user: "u",
    })
    expectCompleted(answer)
    const sent = asked(stage)
    expect(sent.messages).toEqual([
      { role: "system", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "What is this?" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AAAA", detail: "high" } },
          { type: "image_url", image_url: { url: "https://example.com/x.png" } },
          { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,BBBB" } },
        ],
      },
    ])
    expect(sent.response_format).toEqual({ type: "json_schema", json_schema: { name: "shape", schema, strict: true } })
    expect(sent).not.toHaveProperty("store")
    expect(sent.user).toBe("u")
  })

  test("a cut answer is response.incomplete", async () => {
    await using stage = await bridged(simulator)
    stage.vendor("a").behave({ kind: "chat", text: "so far", finishReason: "length", gapMs: 1 })
    const answer = await ask(stage)
    expectWellFormed(answer.text)
    expect(typesOf(answer.text).at(-1)).toBe("response.incomplete")
    expect(finalOf(answer.text)).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
    })
    expect(answer.story).toMatchObject({ ending: "completed", error: null })
  })

  test("JSON though a stream was asked for: the same events", async () => {
    await using stage = await bridged(simulator)
    stage.vendor("a").behave({ kind: "chat", text: "Hi there", ignoresStream: true, usage: chatUsage })
    const answer = await ask(stage)
    expectCompleted(answer)
    expect(finalOf(answer.text)).toMatchObject({ model: "m", usage: responsesUsage })
    expect(answer.story).toMatchObject({ usage: used, estimated: false })
  })

  test("a 4xx of the upstream passes with its bytes, and the credential blanked out", async () => {
    await using stage = await bridged(simulator)
    stage.vendor("a").behave({ kind: "status", status: 422, body: '{ "error":{"message":"no: credential-of-a"}}' })
    const answer = await ask(stage)
    expect([answer.status, answer.text]).toEqual([422, '{ "error":{"message":"no: ***"}}'])
    expect(stage.calls()).toEqual([1])
  })
})
