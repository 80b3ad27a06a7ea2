import { describe, expect, test } from "bun:test"
import { producedBy } from "../../billing/produced.ts"
import { chatToMessages } from "../../bridge/chat-to-messages.ts"
import { responseEvents } from "../../bridge/responses-events.ts"
import { responsesToChat } from "../../bridge/responses-to-chat.ts"
import type { JsonObject } from "../../core/json.ts"
import { utf8 } from "../../lib/bytes.ts"
import { ChatTap } from "./chat.ts"
import { ResponsesTap } from "./responses.ts"

const frame = (value: JsonObject) => `data: ${JSON.stringify(value)}\n\n`

const call = (index: number, name: string, given: string) => ({
  index,
  id: `call_${index}`,
  type: "function",
  function: { name, arguments: given },
})

/** Messages as an upstream would send them whole, and the deltas it would send instead. */
const chatAnswers: readonly (readonly [name: string, message: JsonObject, deltas: readonly JsonObject[]])[] = [
  ["text", { content: "Hello" }, [{ role: "assistant", content: "" }, { content: "Hel" }, { content: "lo" }]],
  [
    "reasoning before text",
    { content: "Hello", reasoning_content: "Hm, yes" },
    [{ reasoning_content: "Hm," }, { reasoning_content: " yes" }, { content: "Hello" }],
  ],
  [
    "reasoning under both names",
    { content: "Hello", reasoning: "Hm", reasoning_content: "Hm" },
    [{ reasoning: "Hm", reasoning_content: "Hm" }, { content: "Hello" }],
  ],
  [
    "content in parts",
    {
      content: [
        { type: "thinking", thinking: [{ type: "text", text: "Hm" }] },
        { type: "text", text: "Hello" },
      ],
    },
    [
      { content: [{ type: "thinking", thinking: [{ type: "text", text: "Hm" }] }] },
      { content: [{ type: "text", text: "Hel" }] },
      { content: "lo" },
    ],
  ],
  ["a refusal", { content: null, refusal: "No way" }, [{ refusal: "No" }, { refusal: " way" }]],
  [
    "calls beside text",
    { content: "Wait", tool_calls: [call(0, "look", '{"at":1}'), call(1, "go", "{}")] },
    [
      { content: "Wait" },
      { tool_calls: [call(0, "look", "")] },
      { tool_calls: [{ index: 0, function: { arguments: '{"at":1}' } }] },
      { tool_calls: [call(1, "go", "{}")] },
    ],
  ],
  [
    "a call of the older form",
    { content: null, function_call: { name: "look", arguments: "{}" } },
    [{ function_call: { name: "look", arguments: "" } }, { function_call: { arguments: "{}" } }],
  ],
]

describe.each(chatAnswers)("a chat completion with %s counts the same", (_, message, deltas) => {
  const produced = producedBy("chat", { choices: [{ index: 0, message, finish_reason: "stop" }] })
  const chunks = deltas.map((delta) => ({ id: "c", choices: [{ index: 0, delta, finish_reason: null }] }))

  test("whole and as a stream", () => {
    const tap = new ChatTap()
    for (const chunk of chunks) tap.push(utf8(frame(chunk)))
    expect(tap.produced).toBe(produced)
    expect(tap.begun).toBe(true)
  })

  test("over the bridge from responses", () => {
    const stream = responsesToChat.stream({ model: "m" })
    for (const chunk of chunks) stream.read(null, JSON.stringify(chunk))
    expect(stream.produced).toBe(produced)
    const whole = responsesToChat.stream({ model: "m" })
    whole.read(null, JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }] }))
    expect(whole.produced).toBe(produced)
  })
})

test("a message counts the same whole and over the bridge from chat", () => {
  const content = [
    { type: "thinking", thinking: "Hm" },
    { type: "text", text: "Wait" },
    { type: "tool_use", id: "a", name: "look", input: { at: 1 } },
    { type: "tool_use", id: "b", name: "go", input: {} },
  ]
  const stream = chatToMessages.stream({ model: "m" })
  for (const [index, content_block] of content.entries()) {
    stream.read(null, JSON.stringify({ type: "content_block_start", index, content_block }))
    stream.read(null, JSON.stringify({ type: "content_block_stop", index }))
  }
  expect(stream.produced).toBe('HmWaitlook{"at":1}go{}')
  expect(stream.produced).toBe(producedBy("messages", { content }))
})

describe("a response", () => {
  const response = {
    id: "resp_1",
    status: "completed",
    output: [
      { id: "rs_1", type: "reasoning", summary: [{ type: "summary_text", text: "Hm" }] },
      {
        id: "msg_1",
        type: "message",
        role: "assistant",
        content: [
          { type: "output_text", text: "Hello", annotations: [] },
          { type: "refusal", refusal: "No" },
        ],
      },
      { id: "fc_1", type: "function_call", call_id: "call_1", name: "look", arguments: '{"at":1}' },
    ],
  }
  const produced = 'HmHelloNolook{"at":1}'

  test("counts the same whole and as a stream", () => {
    const tap = new ResponsesTap()
    tap.push(utf8(responseEvents(response)))
    expect(tap.state).toBe("complete")
    expect(tap.produced).toBe(produced)
    expect(producedBy("responses", response)).toBe(produced)
  })

  test("that came without deltas is counted by its last event", () => {
    const tap = new ResponsesTap()
    tap.push(utf8(frame({ type: "response.completed", response })))
    expect(tap.produced).toBe(produced)
  })

  test.each([
    ["response.output_text.delta", true],
    ["response.refusal.delta", true],
    ["response.reasoning_text.delta", true],
    ["response.reasoning_summary_text.delta", true],
    ["response.function_call_arguments.delta", true],
    ["response.custom_tool_call_input.delta", true],
    ["response.mcp_call_arguments.delta", true],
    ["response.audio.delta", false],
    ["response.audio.transcript.delta", false],
    ["response.code_interpreter_call_code.delta", false],
    ["response.output_text.done", false],
  ])("%s begins it; it is produced: %p", (type, counts) => {
    const tap = new ResponsesTap()
    tap.push(utf8(frame({ type, delta: "abc", text: "abc" })))
    expect(tap.begun).toBe(true)
    expect(tap.produced).toBe(counts ? "abc" : "")
  })
})
