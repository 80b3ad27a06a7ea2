import { describe, expect, test } from "bun:test"
import { readWithOpenAi } from "../../test/support/openai-reader.ts"
import { checkStream } from "../../test/support/responses-check.ts"
import type { JsonObject } from "../core/json.ts"
import { responseEvents } from "./responses-events.ts"
import { responsesToChat } from "./responses-to-chat.ts"

const asked = { model: "asked-name", input: "hi", tools: [{ type: "function", name: "f" }], top_p: 0.5 }
const usage = {
  prompt_tokens: 20,
  prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 2 },
  completion_tokens: 9,
  completion_tokens_details: { reasoning_tokens: 4 },
}

function completion(message: JsonObject, finish: string | null = "stop", more: JsonObject = {}): JsonObject {
  const choices = [{ index: 0, message: { role: "assistant", ...message }, finish_reason: finish }]
  return { id: "chatcmpl-1", object: "chat.completion", created: 1_700_000_000, model: "up", choices, usage, ...more }
}

function call(id: string | null, args: JsonObject | string | null): JsonObject {
  return {
    ...(id === null ? {} : { id }),
    type: "function",
    function: { name: "f", ...(args === null ? {} : { arguments: args }) },
  }
}

const text = (words: string) => ({ type: "output_text", text: words, annotations: [], logprobs: [] })
const said = (status: string, ...content: JsonObject[]) => ({ type: "message", status, role: "assistant", content })
const called = (call_id: unknown, args: string, status = "completed") => ({
  type: "function_call",
  status,
  arguments: args,
  call_id,
  name: "f",
})
const minted = expect.stringMatching(/^call_[0-9a-f]{32}$/)

const answers: readonly [name: string, answered: JsonObject, output: readonly unknown[]][] = [
  ["a text", completion({ content: "hi" }), [said("completed", text("hi"))]],
  [
    "content in parts",
    completion({
      content: [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
    }),
    [said("completed", text("ab"))],
  ],
  ["a refusal", completion({ content: null, refusal: "no" }), [said("completed", { type: "refusal", refusal: "no" })]],
  [
    "reasoning before the text",
    completion({ content: "hi", reasoning_content: "hm" }),
    [{ type: "reasoning", summary: [{ type: "summary_text", text: "hm" }] }, said("completed", text("hi"))],
  ],
  ["a call", completion({ content: null, tool_calls: [call("a", '{"z":1}')] }, "tool_calls"), [called("a", '{"z":1}')]],
  ["a call that the upstream finished with stop", completion({ tool_calls: [call("a", "{}")] }), [called("a", "{}")]],
  [
    "two calls with one id",
    completion({ tool_calls: [call("a", "{}"), call("a", "{}")] }),
    [called("a", "{}"), called(minted, "{}")],
  ],
  ["a call without id and arguments", completion({ tool_calls: [call(null, null)] }), [called(minted, "{}")]],
  ["arguments that are an object", completion({ tool_calls: [call("a", { z: 1 })] }), [called("a", '{"z":1}')]],
  ["the older function_call", completion({ function_call: { name: "f", arguments: "{}" } }), [called(minted, "{}")]],
  ["nothing", completion({ content: "" }), []],
  ["a text cut short", completion({ content: "he" }, "length"), [said("incomplete", text("he"))]],
  [
    "a call cut short",
    completion({ content: "x", tool_calls: [call("a", '{"z')] }, "length"),
    [said("completed", text("x")), called("a", '{"z', "incomplete")],
  ],
]

describe.each(answers)("%s", (_name, answered, output) => {
  test("becomes the output of a response", () => {
    const response = responsesToChat.answer(answered, asked)
    const items = (response.output as readonly JsonObject[]).map(({ id, ...item }) => item)
    expect<unknown>(items).toEqual([...output])
  })

  test("can be told as a stream, which the openai package reads", async () => {
    const response = responsesToChat.answer(answered, asked)
    const events = responseEvents(response)
    expect<unknown>(checkStream(events).response).toEqual(JSON.parse(JSON.stringify(response)))
    expect((await readWithOpenAi(events)).usage?.total_tokens).toBe(29)
  })
})

test("a response has its own ids, the caller's model and the upstream's usage", () => {
  const answered = completion({ content: "hi", reasoning: "hm", tool_calls: [call("a", "{}")] })
  const response = responsesToChat.answer(answered, asked)
  expect(response).toMatchObject({
    object: "response",
    status: "completed",
    created_at: 1_700_000_000,
    model: "asked-name",
    top_p: 0.5,
  })
  expect(response.usage).toEqual({
    input_tokens: 20,
    input_tokens_details: { cached_tokens: 8, cache_write_tokens: 2 },
    output_tokens: 9,
    output_tokens_details: { reasoning_tokens: 4 },
    total_tokens: 29,
  })
  const ids = [response.id, ...(response.output as readonly JsonObject[]).map(({ id }) => id)].map(String)
  expect(ids.map((id) => id.split("_")[0])).toEqual(["resp", "rs", "msg", "fc"])
  expect(responsesToChat.answer(answered, asked).id).not.toBe(response.id)
})

test.each([
  ["length", "max_output_tokens"],
  ["content_filter", "content_filter"],
])("an answer that ended by %s is incomplete", (finish, reason) => {
  const response = responsesToChat.answer(completion({ content: "he" }, finish), asked)
  expect(response).toMatchObject({ status: "incomplete", incomplete_details: { reason }, completed_at: null })
})

test("an answer without a usage has none here", () => {
  expect(responsesToChat.answer(completion({ content: "x" }, "stop", { usage: null }), asked).usage).toBeNull()
})

test.each([[{}], [{ choices: [] }], [{ choices: "x" }], [{ choices: [null] }]])("%p is no answer", (answered) => {
  expect(() => responsesToChat.answer(answered, asked)).toThrow(
    expect.objectContaining({ code: "upstream_invalid_response", status: 502 }),
  )
})

test("an answer by which the upstream says that it broke down is its error", () => {
  expect(() => responsesToChat.answer(completion({ content: "" }, "insufficient_system_resource"), asked)).toThrow(
    expect.objectContaining({ code: "upstream_error" }),
  )
})
