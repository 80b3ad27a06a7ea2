import { describe, expect, test } from "bun:test"
import { GatewayError } from "../core/errors.ts"
import type { JsonObject } from "../core/json.ts"
import { readChatUsage } from "../core/usage.ts"
import { chatToMessages } from "./chat-to-messages.ts"

const asked: JsonObject = { model: "asked-model", messages: [] }
const message = (fields: JsonObject): JsonObject => ({
  id: "msg_01Ab",
  type: "message",
  role: "assistant",
  model: "claude-x-2026",
  content: [],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 2 },
  ...fields,
})
const text = (words: string) => ({ type: "text", text: words })
const use = (fields: JsonObject) => ({ type: "tool_use", id: "toolu_1", name: "f", input: {}, ...fields })

interface Answer {
  readonly id: string
  readonly created: number
  readonly model: unknown
  readonly usage?: JsonObject
  readonly choices: readonly [
    { readonly finish_reason: string; readonly message: JsonObject & { tool_calls?: readonly JsonObject[] } },
  ]
}

function answer(fields: JsonObject, from: JsonObject = asked): Answer {
  return JSON.parse(JSON.stringify(chatToMessages.answer(message(fields), from)))
}

test("a plain answer is a whole chat completion", () => {
  const before = Math.floor(Date.now() / 1000)
  const whole = answer({ content: [text("Hel"), text("lo")] })
  expect(whole).toEqual({
    id: "chatcmpl-01Ab",
    object: "chat.completion",
    created: expect.any(Number),
    model: "claude-x-2026",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: "Hello", refusal: null },
        logprobs: null,
        finish_reason: "stop",
      },
    ],
    usage: {
      prompt_tokens: 3,
      completion_tokens: 2,
      total_tokens: 5,
      prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    },
  } as unknown as Answer)
  expect(whole.created).toBeWithin(before, before + 60)
})

test("an answer without id and model gets a fresh id and the name that was asked for", () => {
  const bare = () => answer({ id: null, model: "" })
  expect(bare().id).toMatch(/^chatcmpl-[0-9a-f]{32}$/)
  expect(bare().id).not.toBe(bare().id)
  expect(bare().model).toBe("asked-model")
})

test("thinking is reasoning, in order; what cannot be read or is the vendor's own is left out", () => {
  const content = [
    { type: "thinking", thinking: "Hm. ", signature: "s" },
    { type: "redacted_thinking", data: "x" },
    { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "q" } },
    { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] },
    { type: "thinking", thinking: "Yes." },
    text("Done"),
    "garbage",
    null,
  ]
  const [choice] = answer({ content }).choices
  expect(choice.message).toEqual({ role: "assistant", content: "Done", refusal: null, reasoning_content: "Hm. Yes." })
  expect(choice.finish_reason).toBe("stop")
})

describe("calls", () => {
  test("keep the vendor's ids and have their arguments as text", () => {
    const content = [use({ id: "toolu_a", input: { x: [1] } }), use({ id: "toolu_b", name: "g" })]
    expect(answer({ content, stop_reason: "tool_use" }).choices).toMatchObject([
      {
        finish_reason: "tool_calls",
        message: {
          content: null,
          tool_calls: [
            { id: "toolu_a", type: "function", function: { name: "f", arguments: '{"x":[1]}' } },
            { id: "toolu_b", type: "function", function: { name: "g", arguments: "{}" } },
          ],
        },
      },
    ])
  })

  test("stand beside text", () => {
    expect(answer({ content: [text("Wait."), use({})] }).choices[0].message.content).toBe("Wait.")
  })

  test("of odd upstreams are made whole: no id, arguments as text or none, no name", () => {
    const content = [use({ id: "" }), use({ input: '{"a":1}' }), use({ input: null }), use({ name: "" })]
    const made = answer({ content }).choices[0].message.tool_calls ?? []
    expect(made.map((call) => (call.function as JsonObject).arguments)).toEqual(["{}", '{"a":1}', "{}"])
    expect(made[0]?.id).toMatch(/^call_[0-9a-f]{32}$/)
  })

  test("are told in the older form to a caller that speaks it", () => {
    const [choice] = answer({ content: [use({ input: { a: 1 } }), use({ name: "g" })] }, { functions: [] }).choices
    expect(choice.message.function_call).toEqual({ name: "f", arguments: '{"a":1}' })
    expect(choice.message).not.toHaveProperty("tool_calls")
    expect(choice.finish_reason).toBe("function_call")
  })
})

const call = [use({})]
test.each([
  ["end_turn", [], "stop"],
  ["stop_sequence", [], "stop"],
  ["pause_turn", [], "stop"],
  ["max_tokens", [], "length"],
  ["max_tokens", call, "length"],
  ["model_context_window_exceeded", [], "length"],
  ["tool_use", call, "tool_calls"],
  ["tool_use", [], "stop"],
  ["end_turn", call, "tool_calls"],
  ["refusal", [], "content_filter"],
  ["refusal", call, "content_filter"],
  [null, [], "stop"],
  ["a new one", call, "tool_calls"],
  ["constructor", [], "stop"],
] as const)("stop reason %p with the calls %j is %s", (stop_reason, content, expected) => {
  expect(answer({ stop_reason, content }).choices[0].finish_reason).toBe(expected)
})

describe("usage", () => {
  test("counts cached input inside the prompt and reads back as what was reported", () => {
    const usage = {
      input_tokens: 10,
      cache_read_input_tokens: 90,
      cache_creation_input_tokens: 5,
      output_tokens: 7,
      output_tokens_details: { thinking_tokens: 4 },
    }
    const chat = answer({ usage }).usage
    expect(chat).toMatchObject({ prompt_tokens: 105, completion_tokens: 7, total_tokens: 112 })
    expect(readChatUsage(chat)).toEqual({
      input: 105,
      cachedInput: 90,
      cacheWrite: 5,
      audioInput: 0,
      output: 7,
      reasoning: 4,
      audioOutput: 0,
    })
  })

  test.each([[null], [{}], ["x"], [{ input_tokens: 3, output_tokens: -2 }], [{ input_tokens: 3 }]])(
    "that is none, or none to charge by, (%p) is left out, not made up",
    (usage) => {
      expect(answer({ usage })).not.toHaveProperty("usage")
    },
  )
})

test.each([
  [{}],
  [{ type: "message", content: "Hello" }],
  [{ type: "error", error: { type: "api_error", message: "m" } }],
])("%p is no answer", (answered) => {
  const read = () => chatToMessages.answer(answered, asked)
  expect(read).toThrow(GatewayError)
  expect(read).toThrow(expect.objectContaining({ code: "upstream_invalid_response" }))
})
