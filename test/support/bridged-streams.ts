import type { JsonObject } from "../../src/core/json.ts"

/** What a caller of messages asked, in the tests of the bridge to chat completions. */
export const asked: JsonObject = {
  model: "asked-name",
  max_tokens: 100,
  messages: [{ role: "user", content: "Hi" }],
  tools: ["f", "weather", "weather_now"].map((name) => ({ name, input_schema: { type: "object" } })),
  stop_sequences: ["END"],
}

/** The data of a chunk with this delta. */
export function chunk(delta: JsonObject, finish: string | null = null, more: JsonObject = {}): string {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }]
  return JSON.stringify({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "up",
    choices,
    ...more,
  })
}

export const finish = (reason: string): string => chunk({}, reason)
export const tokens = (prompt_tokens: number, completion_tokens: number): JsonObject => ({
  prompt_tokens,
  completion_tokens,
  total_tokens: prompt_tokens + completion_tokens,
})
export const usage = (prompt: number, completion: number): string =>
  JSON.stringify({ id: "chatcmpl-1", choices: [], usage: tokens(prompt, completion) })
export const role = chunk({ role: "assistant", content: "" })
export const done = "[DONE]"

/** A fragment of a call; null leaves a field out. */
export function fragment(
  index: number | null,
  id: string | null,
  name: string | null,
  args: string | null,
): Readonly<Record<string, JsonObject | string | number>> {
  return {
    ...(index === null ? {} : { index }),
    ...(id === null ? {} : { id, type: "function" }),
    function: { ...(name === null ? {} : { name }), ...(args === null ? {} : { arguments: args }) },
  }
}

export function called(...tool_calls: readonly JsonObject[]): JsonObject {
  return { tool_calls }
}

export interface BridgedStream {
  readonly vector: number
  readonly name: string
  /** The data of the upstream's events. */
  readonly chunks: readonly string[]
  /** The same as a whole answer. */
  readonly whole: JsonObject
  /** In short: T text, K thinking, C call with id, name and input, each with its index. */
  readonly blocks: readonly string[]
  readonly stop: string
}

function answer(message: JsonObject, finish_reason: string): JsonObject {
  return {
    id: "chatcmpl-1",
    choices: [{ index: 0, message: { role: "assistant", content: null, ...message }, finish_reason }],
    usage: tokens(5, 2),
  }
}

const call = (id: string, name: string, args: string): JsonObject => ({
  id,
  type: "function",
  function: { name, arguments: args },
})
const end = [usage(5, 2), done]

/** The ordinary streams, each as chunks and as a whole answer. */
export const bridgedStreams: readonly BridgedStream[] = [
  {
    vector: 61,
    name: "text",
    chunks: [role, chunk({ content: "He" }), chunk({ content: "llo" }), finish("stop"), ...end],
    whole: answer({ content: "Hello" }, "stop"),
    blocks: ["T0:Hello"],
    stop: "end_turn",
  },
  {
    vector: 62,
    name: "reasoning_content, then text",
    chunks: [chunk({ reasoning_content: "r" }), chunk({ content: "a" }), finish("stop"), ...end],
    whole: answer({ reasoning_content: "r", content: "a" }, "stop"),
    blocks: ["K0:r", "T1:a"],
    stop: "end_turn",
  },
  {
    vector: 63,
    name: "reasoning, then text",
    chunks: [chunk({ reasoning: "r" }), chunk({ content: "a" }), finish("stop"), ...end],
    whole: answer({ reasoning: "r", content: "a" }, "stop"),
    blocks: ["K0:r", "T1:a"],
    stop: "end_turn",
  },
  {
    vector: 64,
    name: "text, then a call",
    chunks: [
      chunk({ content: "a" }),
      chunk(called(fragment(0, "id", "f", "{"))),
      chunk(called(fragment(0, null, null, "}"))),
      finish("tool_calls"),
      ...end,
    ],
    whole: answer({ content: "a", tool_calls: [call("id", "f", "{}")] }, "tool_calls"),
    blocks: ["T0:a", "C1:id f {}"],
    stop: "tool_use",
  },
  {
    vector: 65,
    name: "two calls, one after the other",
    chunks: [
      chunk(called(fragment(0, "a", "f", '{"x":'))),
      chunk(called(fragment(0, null, null, "1}"))),
      chunk(called(fragment(1, "b", "weather", '{"y":'))),
      chunk(called(fragment(1, null, null, "2}"))),
      finish("tool_calls"),
      ...end,
    ],
    whole: answer({ tool_calls: [call("a", "f", '{"x":1}'), call("b", "weather", '{"y":2}')] }, "tool_calls"),
    blocks: ['C0:a f {"x":1}', 'C1:b weather {"y":2}'],
    stop: "tool_use",
  },
  {
    vector: 66,
    name: "a whole call in one chunk with finish and usage",
    chunks: [chunk(called(fragment(0, "a", "f", '{"x":1}')), "tool_calls", { usage: tokens(5, 2) }), done],
    whole: answer({ tool_calls: [call("a", "f", '{"x":1}')] }, "tool_calls"),
    blocks: ['C0:a f {"x":1}'],
    stop: "tool_use",
  },
  {
    vector: 67,
    name: "two calls in one chunk",
    chunks: [chunk(called(fragment(0, "a", "f", "{}"), fragment(1, "b", "f", "{}"))), finish("stop"), ...end],
    whole: answer({ tool_calls: [call("a", "f", "{}"), call("b", "f", "{}")] }, "stop"),
    blocks: ["C0:a f {}", "C1:b f {}"],
    stop: "tool_use",
  },
  {
    vector: 68,
    name: "text after a call",
    chunks: [chunk(called(fragment(0, "a", "f", "{}"))), chunk({ content: "done" }), finish("tool_calls"), ...end],
    whole: answer({ content: "done", tool_calls: [call("a", "f", "{}")] }, "tool_calls"),
    blocks: ["C0:a f {}", "T1:done"],
    stop: "tool_use",
  },
]
