import { describe, expect, test } from "bun:test"
import type { JsonObject, JsonValue } from "../core/json.ts"
import { chatToMessages } from "./chat-to-messages.ts"

const options = { upstreamModel: "claude-x", stream: false, streamOptions: true }
const user = (content: JsonObject[string]): JsonObject => ({ role: "user", content })
const hi = user("Hi")
const text = (words: string) => ({ type: "text", text: words })
const filler = { role: "user", content: [text(".")] }

function sent(...messages: JsonObject[]): JsonObject {
  return JSON.parse(JSON.stringify(chatToMessages.request({ model: "m", messages }, options)))
}

/** A call in the caller's words and in the vendor's. */
const call = (id: string, args = "{}", name = "f") => ({ id, type: "function", function: { name, arguments: args } })
const use = (id: string, input: JsonObject = {}, name = "f") => ({ type: "tool_use", id, name, input })
const calls = (...ids: string[]): JsonObject => ({
  role: "assistant",
  content: null,
  tool_calls: ids.map((id) => call(id)),
})
const told = (id: string, content: JsonObject[string]): JsonObject => ({ role: "tool", tool_call_id: id, content })
const result = (id: string, content?: JsonValue): JsonObject => ({
  type: "tool_result",
  tool_use_id: id,
  ...(content === undefined ? {} : { content }),
})

describe("system text", () => {
  test("of system and developer messages is joined, wherever they stand", () => {
    const request = sent(
      { role: "system", content: "A" },
      hi,
      { role: "developer", content: [text("B"), text(" "), text("C")] },
      { role: "system", content: "" },
    )
    expect(request.system).toBe("A\n\nB\n\nC")
    expect(request.messages).toEqual([{ role: "user", content: [text("Hi")] }])
  })

  test("alone is followed by a user's turn, which the vendor demands", () => {
    expect(sent({ role: "system", content: "A" }).messages).toEqual([filler])
  })

  test("that is blank is not sent", () => {
    expect(sent({ role: "system", content: " " }, hi)).not.toHaveProperty("system")
  })
})

describe("turns", () => {
  test("of one role are merged in order", () => {
    expect(
      sent(
        user("a"),
        user([text("b"), text("c")]),
        { role: "assistant", content: "d" },
        { role: "assistant", content: "e" },
      ).messages,
    ).toEqual([
      { role: "user", content: [text("a"), text("b"), text("c")] },
      { role: "assistant", content: [text("d"), text("e")] },
    ])
  })

  test("begin with a user", () => {
    expect(sent({ role: "assistant", content: "Hello" }, hi).messages).toEqual([
      filler,
      { role: "assistant", content: [text("Hello")] },
      { role: "user", content: [text("Hi")] },
    ])
  })

  test.each([[null], [""], [" \n"], [[]], [[text("")]], [undefined]])("with the content %p are left out", (content) => {
    expect(sent(hi, { role: "assistant", ...(content === undefined ? {} : { content }) }, user("b")).messages).toEqual([
      { role: "user", content: [text("Hi"), text("b")] },
    ])
  })

  test("carry no names and no reasoning", () => {
    const request = sent(
      { ...hi, name: "ann" },
      { role: "assistant", name: "bot", content: "x", reasoning_content: "secret", audio: null },
    )
    expect(JSON.stringify(request)).not.toMatch(/ann|bot|secret|name|audio/)
  })

  test("with a refusal say it", () => {
    expect(sent(hi, { role: "assistant", content: null, refusal: "No." }, hi).messages).toMatchObject([
      {},
      { content: [text("No.")] },
      {},
    ])
    expect(sent(hi, { role: "assistant", content: [{ type: "refusal", refusal: "No." }] }, hi).messages).toMatchObject([
      {},
      { content: [text("No.")] },
      {},
    ])
  })

  test("that begin the answer lose their trailing space, which the vendor refuses", () => {
    expect(sent(hi, { role: "assistant", content: " {\n" }).messages).toEqual([
      { role: "user", content: [text("Hi")] },
      { role: "assistant", content: [text(" {")] },
    ])
    expect(sent(hi, { role: "assistant", content: "x \n" }, hi).messages).toMatchObject([
      {},
      { content: [text("x \n")] },
      {},
    ])
  })
})

describe("content", () => {
  const image = (url: string) => ({ type: "image_url", image_url: { url, detail: "high" } })
  const file = (file_data: string, filename = "a.pdf") => ({ type: "file", file: { file_data, filename } })
  const base64 = (media_type: string, data: string) => ({ type: "base64", media_type, data })

  const parts: Readonly<Record<string, readonly [part: JsonObject, block: JsonObject]>> = {
    "an image as data": [image("data:image/png;base64,AAAA"), { type: "image", source: base64("image/png", "AAAA") }],
    "a misspelt media type": [image("data:image/jpg;base64,AA"), { type: "image", source: base64("image/jpeg", "AA") }],
    "a data URL with parameters": [
      image("DATA:image/webp; charset=x ;BASE64,AA,=="),
      { type: "image", source: base64("image/webp", "AA,==") },
    ],
    "an image by address": [
      image("https://a.example/i.png?x=1"),
      { type: "image", source: { type: "url", url: "https://a.example/i.png?x=1" } },
    ],
    "an image as a bare string": [
      { type: "image_url", image_url: "http://a.example/i" },
      { type: "image", source: { type: "url", url: "http://a.example/i" } },
    ],
    "a PDF": [
      file("data:application/pdf;base64,JVBE"),
      { type: "document", source: base64("application/pdf", "JVBE"), title: "a.pdf" },
    ],
    "a PDF in an image part": [
      image("data:application/pdf;base64,JVBE"),
      { type: "document", source: base64("application/pdf", "JVBE") },
    ],
    "an image in a file part": [file("data:image/gif;base64,R0"), { type: "image", source: base64("image/gif", "R0") }],
    "a text file": [
      file(`data:text/markdown;base64,${btoa("# T")}`, "t.md"),
      { type: "document", source: { type: "text", media_type: "text/plain", data: "# T" }, title: "t.md" },
    ],
    "a file by address": [
      file("https://a.example/a.pdf"),
      { type: "document", source: { type: "url", url: "https://a.example/a.pdf" }, title: "a.pdf" },
    ],
  }
  test.each(Object.entries(parts))("%s", (_, [part, block]) => {
    expect(sent(user([text("before"), part, text("after")])).messages).toEqual([
      { role: "user", content: [text("before"), block, text("after")] },
    ])
  })

  test("of a megabyte arrives whole", () => {
    const data = "QUJD".repeat(262_144)
    expect(sent(user([image(`data:image/png;base64,${data}`)])).messages).toMatchObject([
      { content: [{ source: { data } }] },
    ])
  })
})

describe("calls and results", () => {
  test("arguments are parsed, absent ones are an empty object", () => {
    const tool_calls = [
      call("a", '{"x":[1,null]}', "g"),
      call("b", ""),
      call("c", " "),
      { id: "d", function: { name: "f" } },
      { id: "e", type: "function", function: { name: "f", arguments: { y: 1 } } },
    ]
    const uses = [use("a", { x: [1, null] }, "g"), use("b"), use("c"), use("d"), use("e", { y: 1 })]
    expect(sent(hi, { role: "assistant", content: "Let me see.", tool_calls }).messages).toMatchObject([
      {},
      { role: "assistant", content: [text("Let me see."), ...uses] },
      {},
    ])
  })

  test("results come first in one user turn, in the order of the calls", () => {
    expect(sent(hi, calls("a", "b"), told("b", "2"), told("a", "1"), user("and?")).messages).toEqual([
      { role: "user", content: [text("Hi")] },
      { role: "assistant", content: [use("a"), use("b")] },
      { role: "user", content: [result("a", "1"), result("b", "2"), text("and?")] },
    ])
  })

  test("results after the user's words still come first", () => {
    expect(sent(hi, calls("a"), user("wait"), told("a", "1")).messages).toMatchObject([
      {},
      {},
      { content: [result("a", "1"), text("wait")] },
    ])
  })

  test("results of parts keep their images, blank ones have no content", () => {
    const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AA" } }
    const block = { type: "image", source: { type: "base64", media_type: "image/png", data: "AA" } }
    const { messages } = sent(hi, calls("a", "b", "c"), told("a", [text("see"), picture]), told("b", ""), told("c", []))
    expect(messages).toMatchObject([{}, {}, { content: [result("a", [text("see"), block]), result("b"), result("c")] }])
    expect(messages).not.toMatchObject([{}, {}, { content: [{}, { content: "" }, {}] }])
  })

  test("a call without a result gets one, in mid conversation and at its end", () => {
    const missing = (id: string) => result(id, "[no result]")
    expect(sent(hi, calls("a", "b"), told("b", "2"), user("go on")).messages).toMatchObject([
      {},
      {},
      { content: [missing("a"), result("b", "2"), text("go on")] },
    ])
    expect(sent(hi, calls("a")).messages).toMatchObject([{}, {}, { role: "user", content: [missing("a")] }])
  })

  test("a result without a call becomes the user's words", () => {
    expect(sent(told("x", "lost"), hi).messages).toEqual([{ role: "user", content: [text("lost"), text("Hi")] }])
    expect(sent(told("x", "")).messages).toEqual([filler])
    expect(
      sent(hi, calls("a"), told("a", "1"), { role: "assistant", content: "ok" }, told("a", "late")).messages,
    ).toMatchObject([{}, {}, { content: [result("a", "1")] }, {}, { content: [text("late")] }])
  })

  test("of two results for one call the last counts", () => {
    expect(sent(hi, calls("a"), told("a", "1"), told("a", "2")).messages).toMatchObject([
      {},
      {},
      { content: [result("a", "2")] },
    ])
  })

  test("ids the vendor would refuse are replaced alike in call and result", () => {
    const { messages } = sent(hi, calls("functions.f:0"), told("functions.f:0", "1"))
    const id = (messages as { content: { id?: string }[] }[])[1]?.content[0]?.id ?? ""
    expect(id).toMatch(/^toolu_[0-9a-f]{24}$/)
    expect(messages).toMatchObject([{}, {}, { content: [result(id, "1")] }])
  })

  test("an id used again in a later turn is made unique, with its result", () => {
    expect(sent(hi, calls("a"), told("a", "1"), calls("a"), told("a", "2")).messages).toEqual([
      { role: "user", content: [text("Hi")] },
      { role: "assistant", content: [use("a")] },
      { role: "user", content: [result("a", "1")] },
      { role: "assistant", content: [use("a_2")] },
      { role: "user", content: [result("a_2", "2")] },
    ])
  })

  test("the older form is paired by the function's name", () => {
    const called = (name: string) => ({
      role: "assistant",
      content: null,
      function_call: { name, arguments: '{"n":1}' },
    })
    const answer = (name: string, content: string) => ({ role: "function", name, content })
    expect(sent(hi, called("f"), answer("f", "1"), called("f"), answer("f", "2"), answer("h", "?")).messages).toEqual([
      { role: "user", content: [text("Hi")] },
      { role: "assistant", content: [use("function_call_0", { n: 1 })] },
      { role: "user", content: [result("function_call_0", "1")] },
      { role: "assistant", content: [use("function_call_1", { n: 1 })] },
      { role: "user", content: [result("function_call_1", "2"), text("?")] },
    ])
  })
})
