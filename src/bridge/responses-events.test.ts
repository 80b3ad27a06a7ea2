import { describe, expect, test } from "bun:test"
import { readWithOpenAi, withoutParsed } from "../../test/support/openai-reader.ts"
import { checkStream } from "../../test/support/responses-check.ts"
import type { JsonObject } from "../core/json.ts"
import { responseEvents } from "./responses-events.ts"

const usage = {
  input_tokens: 7,
  input_tokens_details: { cached_tokens: 2, cache_write_tokens: 0 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 1 },
  total_tokens: 12,
}
const head = { id: "resp_1", object: "response", created_at: 1_700_000_000, model: "gpt-x", error: null }
const tail = { incomplete_details: null, tools: [], metadata: {}, unheard_of: { kept: true }, usage }

function response(output: readonly JsonObject[], more: JsonObject = {}): JsonObject {
  return { ...head, status: "completed", output, ...tail, ...more }
}

function text(words: string, more: JsonObject = {}): JsonObject {
  return { type: "output_text", text: words, annotations: [], logprobs: [], ...more }
}

function message(content: readonly JsonObject[], more: JsonObject = {}): JsonObject {
  return { id: "msg_1", type: "message", status: "completed", role: "assistant", content, ...more }
}

const call = {
  id: "fc_1",
  type: "function_call",
  status: "completed",
  arguments: '{"city":"Paris"}',
  call_id: "call_1",
  name: "get_weather",
}
const citation = { type: "url_citation", start_index: 0, end_index: 2, title: "T", url: "https://example.com" }
const search = { id: "ws_1", type: "web_search_call", status: "completed", action: { type: "search", query: "q" } }

const whole: Readonly<Record<string, JsonObject>> = {
  "a text": response([message([text("Hello\n\ndata: x \u2028 🙂")])]),
  "an empty text": response([message([text("")])]),
  "two parts, one a refusal": response([message([text("Well"), { type: "refusal", refusal: "no" }])]),
  "a text with citations and logprobs": response([
    message([
      text("ok", {
        annotations: [citation, { ...citation, start_index: 1 }],
        logprobs: [{ token: "ok", logprob: -0.5, bytes: [111, 107], top_logprobs: [] }],
      }),
    ]),
  ]),
  "a function call": response([call]),
  "a call without arguments": response([{ ...call, arguments: "" }]),
  "reasoning, text and calls": response([
    { id: "rs_1", type: "reasoning", summary: [{ type: "summary_text", text: "think" }], encrypted_content: "abc" },
    message([text("So:")]),
    call,
    { ...call, id: "fc_2", call_id: "call_2" },
  ]),
  "reasoning with its own text": response([
    {
      id: "rs_1",
      type: "reasoning",
      status: "completed",
      summary: [
        { type: "summary_text", text: "a" },
        { type: "summary_text", text: "b" },
      ],
      content: [{ type: "reasoning_text", text: "raw" }],
    },
  ]),
  "no output at all": response([]),
  "an item of a type that is not known": response([search, { id: "x_1", type: "of_tomorrow", a: [1] }]),
  "a message with a part that is not known": response([message([{ type: "hologram", data: "…" }])]),
  "a call without an id": response([{ ...call, id: undefined }]),
  "an answer cut short": response([message([text("Hel")], { status: "incomplete" })], {
    status: "incomplete",
    incomplete_details: { reason: "max_output_tokens" },
  }),
  "a failure": response([], { status: "failed", error: { code: "server_error", message: "broke" } }),
}

describe.each(Object.entries(whole))("%s", (_name, given) => {
  const clean = JSON.parse(JSON.stringify(given)) as JsonObject

  test("becomes the standard sequence, the last event holding the upstream's object", () => {
    const { events, response: last } = checkStream(responseEvents(given))
    expect<unknown>(last).toEqual(clean)
    expect(events.at(-1)?.type).toBe(`response.${String(given.status)}`)
  })

  test("is read back the same by the openai package", async () => {
    const read = await readWithOpenAi(responseEvents(given))
    const { output_text, ...rest } = withoutParsed(read)
    expect<unknown>(rest).toEqual(clean)
    expect(output_text).toBe(textOf(given))
  })
})

function textOf(given: JsonObject): string {
  const parts = (given.output as readonly JsonObject[]).flatMap((item) => (item.content ?? []) as readonly JsonObject[])
  return parts.map((part) => (part.type === "output_text" ? String(part.text) : "")).join("")
}

test("the opening events hold the request's echo, but neither output nor usage", () => {
  const given = response([message([text("hi")])], { completed_at: 1_700_000_009, output_text: "hi" })
  const [created] = checkStream(responseEvents(given)).events
  expect(created?.response).toEqual({
    ...given,
    status: "in_progress",
    output: [],
    usage: null,
    completed_at: null,
    output_text: "",
  })
})

test("citations are told one by one, before their text is done", () => {
  const { events } = checkStream(
    responseEvents(response([message([text("ok", { annotations: [citation, citation] })])])),
  )
  const types = events.map(({ type }) => type)
  const told = events.filter(({ type }) => type === "response.output_text.annotation.added")
  expect(told.map(({ annotation, annotation_index }) => [annotation, annotation_index])).toEqual([
    [citation, 0],
    [citation, 1],
  ])
  expect(types.lastIndexOf("response.output_text.annotation.added")).toBe(
    types.indexOf("response.output_text.done") - 1,
  )
})

test("items that are not known come whole, once as added and once as done", () => {
  const { events } = checkStream(responseEvents(response([search])))
  const inner = events.slice(2, -1)
  expect(inner.map(({ type }) => type)).toEqual(["response.output_item.added", "response.output_item.done"])
  expect(inner.map(({ item }) => item)).toEqual([search, search])
})

test.each([
  [{ status: "cancelled" }, "response.failed"],
  [{ status: undefined }, "response.completed"],
  [{ status: undefined, error: { code: "x", message: "y" } }, "response.failed"],
  [{ status: undefined, incomplete_details: { reason: "content_filter" } }, "response.incomplete"],
  [{ status: "queued" }, "response.queued"],
])("a response with %p ends with %s", (more, last) => {
  const frames = responseEvents(response([], more)).trimEnd().split("\n\n")
  expect(frames.at(-1)).toStartWith(`event: ${last}\n`)
})

test.each([{}, { output: null }, { output: "x" }, { output: [null, 3, "x"] }, { output: [{}, { id: 1, type: 2 }] }])(
  "%p does not throw",
  (given) => {
    expect(responseEvents(given)).toContain("event: response.completed\n")
  },
)
