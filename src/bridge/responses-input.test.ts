import { expect, test } from "bun:test"
import type { JsonObject, JsonValue } from "../core/json.ts"
import { chatMessages } from "./responses-input.ts"

const call = (id: string, more: JsonObject = {}): JsonObject => ({
  type: "function_call",
  id: `fc_${id}`,
  call_id: id,
  name: "f",
  arguments: `{"of":"${id}"}`,
  status: "completed",
  ...more,
})
const output = (id: string, value: JsonValue = `result ${id}`): JsonObject => ({
  type: "function_call_output",
  call_id: id,
  output: value,
})
const chatCall = (id: string) => ({ id, type: "function", function: { name: "f", arguments: `{"of":"${id}"}` } })
const tool = (id: string, content = `result ${id}`) => ({ role: "tool", tool_call_id: id, content })
const user = (content: JsonValue) => ({ role: "user", content })
const reasoning = { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "hidden" }] }
const png = "data:image/png;base64,AAAA"
const pdf = "data:application/pdf;base64,BBBB"

const conversations: readonly [name: string, input: JsonValue, messages: readonly JsonValue[]][] = [
  ["a string is what the user says", "hi", [user("hi")]],
  ["a message needs no type", [{ role: "user", content: "hi" }], [user("hi")]],
  [
    "texts are joined, empty ones left out",
    [
      user([
        { type: "input_text", text: "a" },
        { type: "input_text", text: "" },
        { type: "input_text", text: "b" },
      ]),
    ],
    [user("a\nb")],
  ],
  [
    "images, files and sounds keep their place among the texts",
    [
      user([
        { type: "input_image", image_url: png, detail: "high" },
        { type: "input_text", text: "what?" },
        { type: "input_image", image_url: "https://example.com/a.png", detail: "auto" },
        { type: "input_file", filename: "a.pdf", file_data: pdf },
        { type: "input_audio", input_audio: { data: "CC", format: "wav" } },
      ]),
    ],
    [
      user([
        { type: "image_url", image_url: { url: png, detail: "high" } },
        { type: "text", text: "what?" },
        { type: "image_url", image_url: { url: "https://example.com/a.png" } },
        { type: "file", file: { filename: "a.pdf", file_data: pdf } },
        { type: "input_audio", input_audio: { data: "CC", format: "wav" } },
      ]),
    ],
  ],
  [
    "system and developer messages are system messages, neighbours one",
    [
      { role: "developer", content: [{ type: "input_text", text: "a" }] },
      { role: "system", content: "b" },
      user("hi"),
      { role: "developer", content: "c" },
    ],
    [{ role: "system", content: "a\n\nb" }, user("hi"), { role: "system", content: "c" }],
  ],
  [
    "what the assistant said goes back as text, its reasoning does not",
    [
      user("hi"),
      reasoning,
      {
        type: "message",
        id: "msg_1",
        role: "assistant",
        content: [{ type: "output_text", text: "yes", annotations: [] }],
      },
      user("and?"),
      { role: "assistant", content: [{ type: "refusal", refusal: "no" }] },
    ],
    [user("hi"), { role: "assistant", content: "yes" }, user("and?"), { role: "assistant", content: "no" }],
  ],
  [
    "text and neighbouring calls are one turn",
    [
      user("hi"),
      { role: "assistant", content: "let me see" },
      reasoning,
      call("a"),
      call("b"),
      output("a"),
      output("b"),
    ],
    [
      user("hi"),
      { role: "assistant", content: "let me see", tool_calls: [chatCall("a"), chatCall("b")] },
      tool("a"),
      tool("b"),
    ],
  ],
  [
    "calls one after another are turns of their own",
    [call("a"), output("a"), reasoning, call("b"), output("b"), { role: "assistant", content: "done" }],
    [
      { role: "assistant", content: null, tool_calls: [chatCall("a")] },
      tool("a"),
      { role: "assistant", content: null, tool_calls: [chatCall("b")] },
      tool("b"),
      { role: "assistant", content: "done" },
    ],
  ],
  [
    "results come directly after their calls, in the order of the calls",
    [call("a"), call("b"), user("hurry"), output("b"), output("a")],
    [
      { role: "assistant", content: null, tool_calls: [chatCall("a"), chatCall("b")] },
      tool("a"),
      tool("b"),
      user("hurry"),
    ],
  ],
  [
    "an id that is used in two turns gets its own result in each",
    [call("a"), output("a", "1"), call("a"), output("a", "2")],
    [
      { role: "assistant", content: null, tool_calls: [chatCall("a")] },
      tool("a", "1"),
      { role: "assistant", content: null, tool_calls: [chatCall("a")] },
      tool("a", "2"),
    ],
  ],
  [
    "images in results follow after all results",
    [
      call("a"),
      call("b"),
      output("a", [
        { type: "input_text", text: "seen" },
        { type: "input_image", image_url: png },
      ]),
      output("b", [{ type: "input_image", image_url: png }]),
    ],
    [
      { role: "assistant", content: null, tool_calls: [chatCall("a"), chatCall("b")] },
      tool("a", "seen"),
      tool("b", "[see the attachment that follows]"),
      user([
        { type: "image_url", image_url: { url: png } },
        { type: "image_url", image_url: { url: png } },
      ]),
    ],
  ],
  [
    "empty arguments are an empty object, an empty result an empty text",
    [call("a", { arguments: "" }), output("a", [])],
    [
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }],
      },
      tool("a", ""),
    ],
  ],
  [
    "messages with nothing in them are left out",
    [{ role: "assistant", content: "" }, { role: "developer", content: " " }, user(""), user("hi")],
    [user("hi")],
  ],
]

test.each(conversations)("%s", (_name, input, messages) => {
  expect<unknown>(chatMessages({ input })).toEqual(messages)
})

test("instructions stand first, in one system message with what developers say there", () => {
  const input = [{ role: "developer", content: "and this" }, user("hi")]
  expect<unknown>(chatMessages({ instructions: "do this", input })).toEqual([
    { role: "system", content: "do this\n\nand this" },
    user("hi"),
  ])
})
