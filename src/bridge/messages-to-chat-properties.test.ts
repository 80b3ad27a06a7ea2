import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { GatewayError } from "../core/errors.ts"
import type { JsonObject, JsonValue } from "../core/json.ts"
import { readMessagesUsage } from "../core/messages-usage.ts"
import { chatToMessagesAnswer } from "./messages-to-chat-answer.ts"
import { chatErrorToMessages } from "./messages-to-chat-error.ts"
import { messagesToChatRequest } from "./messages-to-chat-request.ts"
import type { BridgeOptions } from "./translator.ts"

/** Stands in every field that must not reach the upstream. */
const secret = "LEAK"

const requestFields = [
  "model",
  "messages",
  "max_tokens",
  "max_completion_tokens",
  "temperature",
  "top_p",
  "stop",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "user",
  "stream",
  "stream_options",
]
const messageFields = ["role", "content", "tool_calls", "tool_call_id"]

interface ChatMessage {
  readonly role: string
  readonly content: string | null | readonly JsonObject[]
  readonly tool_calls?: readonly { readonly id: string }[]
  readonly tool_call_id?: string
}

const anything = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<JsonValue>
const dropped = fc.constantFrom<JsonObject>(
  {},
  { cache_control: { type: "ephemeral", ttl: secret } },
  { citations: [{ cited_text: secret }], caller: { type: secret } },
  { toolset_name: secret, signature: secret, data: secret },
)
const id = fc.constantFrom("t1", "t2", "t3", "t4")
const words = fc.constantFrom("", " ", "a", "two words", "ünï\n")
const text = words.map((said) => ({ type: "text", text: said }))
const image = fc.constantFrom<JsonObject>(
  { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
  { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
  { type: "image", source: { type: "file", file_id: secret } },
)
const document = fc.constantFrom<JsonObject>(
  { type: "document", title: "T", source: { type: "text", data: "d" } },
  { type: "document", source: { type: "base64", media_type: "application/pdf", data: secret } },
  { type: "document", source: { type: "content", content: [{ type: "text", text: "c" }] } },
)
const thought = fc.constantFrom<JsonObject>(
  { type: "thinking", thinking: secret, signature: secret },
  { type: "redacted_thinking", data: secret },
)
const served = fc.constantFrom<JsonObject>(
  { type: "server_tool_use", id: secret, name: "web_search", input: { query: "q" } },
  { type: "web_search_tool_result", tool_use_id: secret, content: [{ url: "u", encrypted_content: secret }] },
)
const use = fc.record({ type: fc.constant("tool_use"), id, name: words.map((name) => `n${name}`), input: anything })
const result = fc.record(
  {
    type: fc.constant("tool_result"),
    tool_use_id: id,
    content: fc.oneof(words, fc.array(fc.oneof(text, image, document), { maxLength: 3 })),
    is_error: fc.boolean(),
  },
  { requiredKeys: ["type", "tool_use_id"] },
)
const blocks = (...kinds: fc.Arbitrary<JsonObject>[]) =>
  fc.oneof(
    words,
    fc.array(
      fc.tuple(fc.oneof(...kinds), dropped).map(([block, more]) => ({ ...more, ...block })),
      { maxLength: 4 },
    ),
  )
const message: fc.Arbitrary<JsonObject> = fc.oneof(
  fc.record({ role: fc.constant("user"), content: blocks(text, image, document, result, result) }),
  fc.record({ role: fc.constant("assistant"), content: blocks(text, use, use, thought, served) }),
  fc.record({ role: fc.constant("system"), content: blocks(text) }),
)
const tool = fc.record({
  name: fc.constantFrom("f", "g", "x".repeat(80), "a.b"),
  input_schema: fc.constant({ type: "object" }),
  strict: fc.constant(secret),
  defer_loading: fc.constant(secret),
})
const request: fc.Arbitrary<JsonObject> = fc.record(
  {
    model: fc.constant(secret),
    messages: fc.array(message, { maxLength: 6 }),
    system: blocks(text),
    tools: fc.array(fc.oneof(tool, fc.constant({ type: `web_search_${secret}`, name: "web_search" })), {
      maxLength: 3,
    }),
    tool_choice: fc.constantFrom<JsonObject>({ type: "auto" }, { type: "any" }, { type: "tool", name: "f" }),
    max_tokens: fc.integer({ min: -1, max: 9 }),
    metadata: fc.constant({ user_id: "u", team: secret }),
    top_k: fc.constant(secret),
    thinking: fc.constant({ type: secret }),
    output_config: fc.constant({ effort: secret }),
    unknown: fc.constant(secret),
  },
  { requiredKeys: ["model", "messages"] },
)
const settings: fc.Arbitrary<Record<string, JsonValue>> = fc.record({
  mid_system: fc.constantFrom("keep", "user", "merge"),
  reasoning_replay: fc.boolean(),
  max_completion_tokens: fc.boolean(),
  tool_name_limit: fc.constantFrom<JsonValue>(64, 20, "none"),
})
const options: BridgeOptions = { upstreamModel: "up", stream: true, streamOptions: true }

/** The request over the wire; null where it is refused as it should be. */
function translated(asked: JsonObject, upstreamSettings: Record<string, JsonValue> = {}): JsonObject | null {
  try {
    return JSON.parse(JSON.stringify(messagesToChatRequest(asked, { ...options, settings: upstreamSettings })))
  } catch (error) {
    if (error instanceof GatewayError && error.status === 400) return null
    throw error
  }
}

/** Fails unless each call is followed directly by exactly its result, and no result stands elsewhere. */
function expectPaired(messages: readonly ChatMessage[]): void {
  let open: string[] = []
  for (const { role, tool_calls: calls, tool_call_id: answered } of messages) {
    if (role === "tool") expect(answered).toBe(open.shift()!)
    else {
      expect(open).toEqual([])
      open = calls?.map((call) => call.id) ?? []
      expect(new Set(open).size).toBe(open.length)
    }
  }
  expect(open).toEqual([])
}

describe("any messages request", () => {
  test("is a valid chat request, or refused", () => {
    let made = 0
    fc.assert(
      fc.property(request, settings, (asked, upstreamSettings) => {
        const chat = translated(asked, upstreamSettings)
        if (chat === null) return
        made += 1
        expect(Object.keys(chat).filter((name) => !requestFields.includes(name))).toEqual([])
        const messages = chat.messages as unknown as readonly ChatMessage[]
        expect(messages.flatMap(Object.keys).filter((name) => !messageFields.includes(name))).toEqual([])
        expectPaired(messages)
        for (const { role, content, tool_calls: calls } of messages) {
          if (role === "tool") expect(content).toBeString()
          else if (calls === undefined) expect(content).not.toBeEmpty()
        }
        expect(JSON.stringify(chat)).not.toContain(secret)
        expect(translated(asked, upstreamSettings)).toEqual(chat)
      }),
      { numRuns: 1000 },
    )
    // The property would hold of nothing at all.
    expect(made).toBeGreaterThan(300)
  })

  test("reaches the upstream with all that the user said, in its order", () => {
    const said = fc.array(fc.oneof(message, fc.constant(null)), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(said, settings, (turns, upstreamSettings) => {
        const marks: string[] = []
        const messages = turns.map((turn, index) => {
          if (turn !== null) return turn
          marks.push(`<${index}>`)
          return { role: "user", content: [{ type: "text", text: `<${index}>` }] }
        })
        const chat = translated({ model: "m", messages }, upstreamSettings)
        if (chat !== null) expect([...(JSON.stringify(chat.messages).match(/<\d+>/g) ?? [])]).toEqual(marks)
      }),
    )
  })

  test("of whatever JSON is refused at worst", () => {
    const fields = fc.constantFrom(
      "messages",
      "system",
      "tools",
      "tool_choice",
      "stop_sequences",
      "metadata",
      "max_tokens",
    )
    const odd = fc.dictionary(fields, anything, { maxKeys: 4 })
    const oddBlock = fc.record({
      type: fc.constantFrom("text", "image", "document", "tool_result", "x"),
      source: anything,
      content: anything,
      text: anything,
    })
    const oddMessages = fc.array(
      fc.record({
        role: fc.constantFrom("user", "assistant", "system"),
        content: fc.oneof(anything, fc.array(oddBlock)),
      }),
    )
    fc.assert(
      fc.property(odd, oddMessages, (more, messages) => {
        translated({ model: "m", messages, ...more } as JsonObject)
      }),
      { numRuns: 500 },
    )
  })
})

const piece = fc.oneof(anything, words, fc.constant("{}"))
const choice = fc.record(
  {
    index: fc.constantFrom(0, 1),
    finish_reason: fc.constantFrom("stop", "length", "tool_calls", "error", null, ""),
    message: fc.record(
      {
        content: fc.oneof(piece, fc.array(text)),
        reasoning_content: piece,
        reasoning: piece,
        refusal: piece,
        tool_calls: fc.oneof(
          piece,
          fc.array(fc.record({ id: piece, function: fc.record({ name: piece, arguments: piece }) })),
        ),
        function_call: piece,
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: [] },
)
const stopReasons = ["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"]

test("any chat answer is a valid message, or an error of the upstream's", () => {
  let made = 0
  fc.assert(
    fc.property(fc.array(choice, { maxLength: 2 }), anything, (choices, usage) => {
      let whole: JsonObject
      try {
        whole = chatToMessagesAnswer({ choices, usage } as unknown as JsonObject, { model: "m", messages: [] })
      } catch (error) {
        if (error instanceof GatewayError && error.status === 502) return
        throw error
      }
      made += 1
      expect(stopReasons).toContain(String(whole.stop_reason))
      expect(readMessagesUsage(whole.usage)).toBeObject()
      const content = whole.content as readonly JsonObject[]
      const calls = content.filter(({ type }) => type === "tool_use")
      expect(new Set(calls.map((call) => call.id)).size).toBe(calls.length)
      for (const call of calls) expect(call.input).toBeObject()
      for (const block of content) if (block.type === "text") expect(String(block.text).trim()).not.toBe("")
    }),
    { numRuns: 1000 },
  )
  expect(made).toBeGreaterThan(300)
})

test("any error is told in the messages envelope", () => {
  const body = fc.oneof(
    anything,
    fc.string(),
    fc.record({ error: fc.record({ message: anything, type: anything, code: anything }) }),
  )
  fc.assert(
    fc.property(fc.integer({ min: 200, max: 599 }), body, (status, said) => {
      const { status: toldStatus, body: told } = chatErrorToMessages(status, said)
      expect(toldStatus).toBeWithin(400, 600)
      const error = told.error as JsonObject
      expect(error.type).toBeString()
      expect(error.message).toBeString()
      expect(String(error.message)).not.toBeEmpty()
      if (status >= 400 && status < 500) expect(toldStatus).toBe(status)
    }),
    { numRuns: 500 },
  )
})
