import { describe, expect, test } from "bun:test"
import { type Endpoint, endpoints } from "../core/endpoints.ts"
import type { JsonObject } from "../core/json.ts"
import { promptOf } from "./prompt.ts"

const picture = `data:image/png;base64,${"A".repeat(1000)}`
const tools = [{ name: "look" }]

function textsOf(endpoint: Endpoint, request: JsonObject): readonly string[] {
  return promptOf(endpoint, request).texts.filter((text) => text !== "")
}

describe("chat", () => {
  test("a message is its role, its text and the calls it repeats; tools stand at the end", () => {
    const calls = [{ function: { name: "look", arguments: "{}" } }]
    const messages = [
      { role: "user", content: "Hello" },
      { role: "assistant", content: null, tool_calls: calls },
    ]
    expect(textsOf("chat", { messages, tools })).toEqual([
      "user\nHello",
      `assistant\n${JSON.stringify(calls)}`,
      JSON.stringify(tools),
    ])
  })

  test("pictures and sounds are nothing", () => {
    const content = [
      { type: "text", text: "a" },
      { type: "image_url", image_url: { url: picture } },
      { type: "input_audio", input_audio: { data: picture, format: "wav" } },
      { type: "text", text: "b" },
    ]
    expect(textsOf("chat", { messages: [{ role: "user", content }] })).toEqual(["user\na\nb"])
  })
})

describe("responses", () => {
  test("a text is a message of the user, instructions are one of their own", () => {
    const prompt = promptOf("responses", { instructions: "Be brief", input: "Hello", tools })
    expect(prompt).toEqual({ texts: ["Be brief", "user\nHello", JSON.stringify(tools)], extra: 3 + 2 * 3 })
  })

  test("every kind of item that a model reads", () => {
    const input = [
      { role: "user", content: "Hello" },
      {
        type: "message",
        role: "assistant",
        content: [
          { type: "output_text", text: "Hi" },
          { type: "refusal", refusal: "No" },
        ],
      },
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_text", text: "Look" },
          { type: "input_image", image_url: picture },
          { type: "input_file", file_data: picture },
        ],
      },
      { type: "reasoning", encrypted_content: picture, summary: [{ type: "summary_text", text: "Hm" }] },
      { type: "function_call", call_id: "c", name: "look", arguments: '{"at":1}' },
      { type: "function_call_output", call_id: "c", output: "a tree" },
      { type: "function_call_output", call_id: "d", output: [{ type: "input_text", text: "a bird" }] },
      { type: "custom_tool_call", call_id: "e", name: "run", input: "ls" },
    ]
    const prompt = promptOf("responses", { input })
    expect(prompt.texts).toEqual([
      "user\nHello",
      "assistant\nHi\nNo",
      "user\nLook",
      "Hm",
      'look\n{"at":1}',
      "a tree",
      "a bird",
      "run\nls",
    ])
    expect(prompt.extra).toBe(3 + 8 * 3)
  })
})

describe("messages", () => {
  test.each([["Be brief"], [[{ type: "text", text: "Be brief", cache_control: { type: "ephemeral" } }]]])(
    "the system's words are a message, in whatever form: %j",
    (system) => {
      expect(promptOf("messages", { system, messages: [{ role: "user", content: "Hello" }] })).toEqual({
        texts: ["Be brief", "user\nHello"],
        extra: 3 + 2 * 3,
      })
    },
  )

  test("every kind of block that a model reads", () => {
    const source = { type: "base64", media_type: "image/png", data: picture }
    const blocks = [
      { type: "text", text: "a" },
      { type: "image", source },
      { type: "document", source },
      { type: "thinking", thinking: "b", signature: picture },
      { type: "redacted_thinking", data: picture },
      { type: "tool_use", id: "t", name: "look", input: { at: 1 } },
      { type: "tool_result", tool_use_id: "t", content: "c" },
      {
        type: "tool_result",
        tool_use_id: "t",
        content: [
          { type: "text", text: "d" },
          { type: "image", source },
        ],
      },
    ]
    expect(textsOf("messages", { messages: [{ role: "user", content: blocks }], tools })).toEqual([
      'user\na\nb\nlook\n{"at":1}\nc\nd',
      JSON.stringify(tools),
    ])
  })
})

describe("embeddings", () => {
  test.each([
    ["a text", "Hello", ["Hello"], 0],
    ["texts", ["a", "b"], ["a", "b"], 0],
    ["tokens", [1, 2, 3], [], 3],
    ["lists of tokens", [[1, 2, 3], [4]], [], 4],
    ["texts and pictures", [{ text: "a" }, { image: picture }], ["a"], 0],
  ] as const)("%s", (_, input, texts, extra) => {
    expect(textsOf("embeddings", { input })).toEqual([...texts])
    expect(promptOf("embeddings", { input }).extra).toBe(extra)
  })
})

describe("rerank", () => {
  test("the query counts once, and each document", () => {
    expect(promptOf("rerank", { query: "q", documents: ["a", "b"] })).toEqual({ texts: ["q", "a", "b"], extra: 0 })
  })

  test("documents that are objects count by their text, or by whatever texts they have", () => {
    const documents = [{ text: "a", id: "x" }, { title: "b", body: "c", year: 1999 }, { image: picture }]
    expect(textsOf("rerank", { query: { text: "q" }, documents })).toEqual(["q", "a", "b\nc"])
  })
})

test.each([
  ["image_generations", { prompt: "a tree", size: "1x1" }, ["a tree"]],
  ["image_edits", { prompt: "a tree", image: picture }, ["a tree"]],
  ["speech", { input: "Hello", instructions: "whisper", voice: "v" }, ["Hello", "whisper"]],
  ["transcriptions", { prompt: "names", file: picture }, ["names"]],
  ["video", { prompt: "a tree", image_url: picture }, ["a tree"]],
] as const)("%s: the words of the request", (endpoint, request, texts) => {
  expect(textsOf(endpoint, request)).toEqual([...texts])
  expect(promptOf(endpoint, request).extra).toBe(0)
})

const oddRequests: readonly JsonObject[] = [
  {},
  { messages: null, input: null, system: null, instructions: null, query: null, documents: null, prompt: null },
  { messages: "x", input: 7, system: 7, instructions: [], query: 7, documents: "x", prompt: [], tools: "x" },
  { messages: [null, 3, { role: 5, content: 7 }], input: [null, true, { type: 5, content: [7, null] }] },
  {
    messages: [{ role: {}, content: [{ type: "tool_use" }, { type: "tool_result", content: 7 }] }],
    documents: [7, {}],
  },
]
test.each(endpoints.map((endpoint) => [endpoint] as const))(
  "odd requests are read as far as they go: %s",
  (endpoint) => {
    for (const request of oddRequests) {
      const { texts, extra } = promptOf(endpoint, request)
      expect(texts.every((text) => typeof text === "string")).toBe(true)
      expect(Number.isSafeInteger(extra)).toBe(true)
    }
  },
)
