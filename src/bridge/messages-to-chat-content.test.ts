import { describe, expect, test } from "bun:test"
import type { JsonObject, JsonValue } from "../core/json.ts"
import { blockParts, flatText } from "./messages-to-chat-content.ts"
import { messagesToChatRequest } from "./messages-to-chat-request.ts"

const options = { upstreamModel: "up", stream: false, streamOptions: true }
const text = (words: string) => ({ type: "text", text: words })
const image = (source: JsonObject) => ({ type: "image", source })
const png = image({ type: "base64", media_type: "image/png", data: "AAAA" })
const pngPart = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }
const pdf = { type: "document", title: "T", source: { type: "base64", media_type: "application/pdf", data: "JVBE" } }

function messagesFor(content: JsonValue, settings: JsonObject = {}): readonly JsonValue[] {
  const asked = { model: "m", messages: [{ role: "user", content }] }
  const made = messagesToChatRequest(asked, { ...options, settings: settings as Record<string, JsonValue> })
  return made.messages as readonly JsonValue[]
}

const contentFor = (content: JsonValue, settings: JsonObject = {}) =>
  (messagesFor(content, settings)[0] as JsonObject).content

describe("what a user says", () => {
  test("vector 5: a string stays the same string", () => {
    expect(messagesFor("  Hi\n")).toEqual([{ role: "user", content: "  Hi\n" }])
  })

  test("vector 6: several texts are one message, in order", () => {
    expect(messagesFor([text("a"), text("b")])).toEqual([{ role: "user", content: "a\nb" }])
  })

  test("vector 7: empty texts are left out", () => {
    expect(contentFor([text(""), text("a")])).toBe("a")
    expect(contentFor([text(""), png, text("")])).toEqual([pngPart])
  })

  test("a message that says nothing is left out, a conversation that does is refused", () => {
    const asked = (messages: JsonValue) => messagesToChatRequest({ model: "m", messages }, options).messages
    const empty = { role: "user", content: [text("")] }
    expect(asked([empty, { role: "user", content: "a" }])).toEqual([{ role: "user", content: "a" }])
    expect(() => asked([empty, { role: "system", content: "s" }, { role: "user" }])).toThrow(
      "messages: must hold at least one message with content",
    )
  })

  test("vector 8: an image in base64 is a data URL", () => {
    expect(contentFor([png])).toEqual([pngPart])
  })

  test("vector 9: an image's address is unchanged", () => {
    const url = "https://example.com/a b.png?x=1&y=%20"
    expect(contentFor([image({ type: "url", url })])).toEqual([{ type: "image_url", image_url: { url } }])
  })

  test("vector 10: parts keep their order", () => {
    expect(contentFor([png, text("a"), png])).toEqual([pngPart, text("a"), pngPart])
  })

  test.each([
    [image({ type: "file", file_id: "file_1" }), "[image omitted: file reference]"],
    [image({ type: "base64", data: 7 }), "[image omitted]"],
    [{ type: "image" }, "[image omitted]"],
  ])("an image that cannot be sent (%j) is told of", (block, expected) => {
    expect(contentFor([block])).toBe(expected)
  })

  test("vector 44: an image of a megabyte passes unchanged", () => {
    const data = "A".repeat(1 << 20)
    const [part] = contentFor([image({ type: "base64", media_type: "image/jpeg", data })]) as JsonObject[]
    const { url } = part!.image_url as JsonObject
    expect(String(url)).toHaveLength("data:image/jpeg;base64,".length + data.length)
    expect(String(url).endsWith(data)).toBe(true)
  })
})

describe("documents", () => {
  test("vector 11: a text is told with its title and context", () => {
    const source = { type: "text", media_type: "text/plain", data: "words" }
    expect(contentFor([{ type: "document", title: "T", context: "C", source }])).toBe("T\nC\nwords")
    expect(contentFor([{ type: "document", source }, text("a")])).toBe("words\na")
  })

  test("vector 12: a PDF that the upstream cannot read is told of", () => {
    expect(contentFor([pdf])).toBe("T\n[document omitted: this model cannot read PDF]")
  })

  test("a PDF goes as a file where the upstream reads them", () => {
    const file = (filename: string) => ({
      type: "file",
      file: { filename, file_data: "data:application/pdf;base64,JVBE" },
    })
    expect(contentFor([pdf, text("a")], { pdf: true })).toEqual([file("T"), text("a")])
    expect(contentFor([{ ...pdf, title: null, context: "C" }], { pdf: true })).toEqual([
      text("C"),
      file("document.pdf"),
    ])
  })

  test("content is taken apart", () => {
    const document = (content: JsonValue) => ({ type: "document", title: "T", source: { type: "content", content } })
    expect(contentFor([document([text("a"), png])])).toEqual([text("T"), text("a"), pngPart])
    expect(contentFor([document("words")])).toBe("T\nwords")
  })

  test.each([
    [{ type: "url", url: "https://example.com/a.pdf" }, "[document: https://example.com/a.pdf]"],
    [{ type: "file", file_id: "file_1" }, "[document omitted: file reference]"],
    [undefined, "[document omitted]"],
  ])("with the source %j it is told of", (source, expected) => {
    expect(blockParts({ type: "document", source }, true)).toEqual([text(expected)])
  })
})

describe("other blocks", () => {
  test("a search result is its title, source and content", () => {
    const result = { type: "search_result", title: "T", source: "https://s", content: [text("a"), text("b")] }
    expect(contentFor([{ ...result, citations: { enabled: true } }])).toBe("T\nhttps://s\na\nb")
  })

  test.each([
    [{ type: "input_text", text: "a" }, "a"],
    [{ type: "news", content: [{ type: "item", title: "t", url: "u", encrypted_content: "zz" }] }, "t\nu"],
    [{ type: "container_upload", file_id: "file_1" }, ""],
    [{ type: "text", text: 7 }, ""],
    [{}, ""],
  ])("of %j the words are kept: %j", (block, expected) => {
    expect(flatText(block as JsonObject)).toBe(expected)
  })

  test("a nest without end is not followed", () => {
    let nest: JsonObject = { type: "text", text: "deep" }
    let documents: JsonObject = nest
    for (let depth = 0; depth < 100_000; depth += 1) {
      nest = { type: "x", content: [nest] }
      documents = { type: "document", source: { type: "content", content: [documents] } }
    }
    expect(flatText(nest)).toBe("")
    expect(blockParts(documents, false)).toEqual([])
  })
})
