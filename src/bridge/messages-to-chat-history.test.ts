import { describe, expect, test } from "bun:test"
import { GatewayError } from "../core/errors.ts"
import type { JsonObject, JsonValue } from "../core/json.ts"
import { thinkingMarker } from "./messages-to-chat-parts.ts"
import { messagesToChatRequest } from "./messages-to-chat-request.ts"

const options = { upstreamModel: "up", stream: false, streamOptions: true }
const text = (words: string) => ({ type: "text", text: words })
const use = (id: string, fields: JsonObject = {}) => ({ type: "tool_use", id, name: "f", input: { x: 1 }, ...fields })
const result = (id: string, content?: JsonValue, fields: JsonObject = {}) => ({
  type: "tool_result",
  tool_use_id: id,
  ...(content === undefined ? {} : { content }),
  ...fields,
})
const user = (content: JsonValue) => ({ role: "user", content })
const assistant = (content: JsonValue) => ({ role: "assistant", content })
const system = (content: JsonValue) => ({ role: "system", content })
const tool = (id: string, content: string) => ({ role: "tool", tool_call_id: id, content })
const call = (id: string, args = '{"x":1}') => ({ id, type: "function", function: { name: "f", arguments: args } })
const calling = (content: string | null, ...ids: string[]) => ({
  role: "assistant",
  content,
  tool_calls: ids.map((id) => call(id)),
})
const hi = user("hi")
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } }
const imagePart = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }

interface Request {
  readonly messages: readonly JsonObject[]
}

function request(asked: JsonObject, settings: Record<string, JsonValue> = {}): Request {
  return JSON.parse(JSON.stringify(messagesToChatRequest({ model: "m", ...asked }, { ...options, settings })))
}

const spoken = (messages: readonly JsonValue[], settings: Record<string, JsonValue> = {}) =>
  request({ messages }, settings).messages

describe("the system prompt", () => {
  test("vector 1: is the first message", () => {
    expect(request({ system: "S", messages: [hi] }).messages).toEqual([system("S"), hi])
  })

  test("vector 2: an empty one is no message", () => {
    for (const given of ["", [], [text("")], null]) {
      expect(request({ system: given, messages: [hi] }).messages).toEqual([hi])
    }
  })

  test("vector 3: blocks are one message, without what is only for the vendor", () => {
    const made = request({
      system: [text("A"), { ...text("B"), cache_control: { type: "ephemeral" } }, { type: "image" }],
      messages: [hi],
    })
    expect(made.messages).toEqual([system("A\n\nB"), hi])
    expect(JSON.stringify(made)).not.toContain("cache_control")
  })

  test("vector 4: the attribution block is left out", () => {
    const billing = text("x-anthropic-billing-header: cc_version=2.1; cch=1a2b3;")
    expect(request({ system: [billing, text("B")], messages: [hi] }).messages).toEqual([system("B"), hi])
  })

  test("that is neither text nor blocks is refused", () => {
    expect(() => request({ system: 7, messages: [hi] })).toThrow("system: must be a string or an array of text blocks")
  })
})

describe("the assistant's turns", () => {
  test("vector 13: text and calls are one message, arguments are text", () => {
    expect(spoken([hi, assistant([text("a"), use("t1")]), user([result("t1", "r")])])).toEqual([
      hi,
      calling("a", "t1"),
      tool("t1", "r"),
    ])
  })

  test("vector 14: calls alone have no content", () => {
    expect(spoken([assistant([use("t1")]), user([result("t1", "r")])])[0]).toEqual(calling(null, "t1"))
  })

  test("vector 15: a call without arguments has an empty object of them", () => {
    for (const input of [{}, null, undefined, [], 7, "", "garbage", '"text"', "[1]"]) {
      const [message] = spoken([assistant([use("t1", { input })])])
      expect(message?.tool_calls).toEqual([call("t1", "{}")])
    }
    expect(spoken([assistant([use("t1", { input: '{"a": 1}' })])])[0]?.tool_calls).toEqual([call("t1", '{"a": 1}')])
  })

  const thinking = (words: string, signature: string) => ({ type: "thinking", thinking: words, signature })

  test("vector 16: thinking is left out", () => {
    const made = spoken([hi, assistant([thinking("hm", thinkingMarker), text("a")]), hi])
    expect(made).toEqual([hi, assistant("a"), hi])
  })

  test("vector 17: an upstream's own reasoning goes back to one that wants it, no other", () => {
    const turn = [thinking("hm", thinkingMarker), thinking("vendor's", "EqQB"), text("a"), use("t1")]
    const made = spoken([hi, assistant(turn), user([result("t1", "r")])], { reasoning_replay: true })
    expect(made[1]).toEqual({ ...calling("a", "t1"), reasoning_content: "hm" })
    expect(spoken([assistant([thinking("vendor's", "EqQB"), text("a")])], { reasoning_replay: true })).toEqual([
      assistant("a"),
    ])
  })

  test("vector 18: a turn of which nothing is left is omitted", () => {
    expect(spoken([hi, assistant([{ type: "redacted_thinking", data: "x" }]), hi])).toEqual([hi, hi])
    expect(spoken([hi, assistant([thinking("hm", thinkingMarker)])], { reasoning_replay: true })).toEqual([hi])
  })

  test("tools that the vendor ran are told in words, call and result together", () => {
    const turn = [
      text("Let me look."),
      { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "q" } },
      {
        type: "web_search_tool_result",
        tool_use_id: "srvtoolu_1",
        content: [{ type: "web_search_result", title: "T", url: "https://u", encrypted_content: "zz" }],
      },
      text("Found."),
    ]
    expect(spoken([hi, assistant(turn), hi])[1]).toEqual(
      assistant('Let me look.\n[web_search {"query":"q"}]\n\nT\nhttps://u\nFound.'),
    )
  })

  test("texts are joined as they are, text after a call too, and a last one stays last", () => {
    expect(spoken([hi, assistant([text(" a"), use("t1"), text("b ")])])).toEqual([
      hi,
      calling(" ab ", "t1"),
      tool("t1", "[no result]"),
    ])
    expect(spoken([hi, assistant("{")])).toEqual([hi, assistant("{")])
  })

  test("calls that go on in a second message are one turn", () => {
    const results = user([result("t2", "b"), result("t1", "a")])
    expect(spoken([assistant([use("t1")]), assistant([use("t2"), text("x")]), results])).toEqual([
      calling("x", "t1", "t2"),
      tool("t1", "a"),
      tool("t2", "b"),
    ])
  })

  test("calls with one id get two", () => {
    const [message, ...rest] = spoken([assistant([use("t1"), use("t1")]), user([result("t1", "r")])])
    expect(message?.tool_calls).toEqual([call("t1"), call("t1_2")])
    expect(rest).toEqual([tool("t1", "r"), tool("t1_2", "r")])
  })

  test.each([
    [use(""), "messages[0]: the id of a tool_use: must be a non-empty string"],
    [use("t1", { name: null }), "messages[0]: the name of a tool_use: must be a non-empty string"],
  ])("%j is refused", (block, problem) => {
    expect(() => spoken([assistant([block])])).toThrow(new GatewayError("invalid_parameter", problem))
  })
})

describe("results", () => {
  const called = assistant([use("t1")])
  const calledTwice = assistant([use("t1"), use("t2")])

  test("vector 19: one alone is one tool message", () => {
    expect(spoken([called, user([result("t1", "r")])])).toEqual([calling(null, "t1"), tool("t1", "r")])
  })

  test("vector 20: come before what the user says", () => {
    expect(spoken([called, user([text("a"), result("t1", "r"), text("b")])])).toEqual([
      calling(null, "t1"),
      tool("t1", "r"),
      user("a\nb"),
    ])
  })

  test("vector 21: follow the order of the calls", () => {
    expect(spoken([calledTwice, user([result("t2", "b"), result("t1", "a")])])).toEqual([
      calling(null, "t1", "t2"),
      tool("t1", "a"),
      tool("t2", "b"),
    ])
  })

  test("in several messages are all found", () => {
    const made = spoken([calledTwice, user([result("t1", "a")]), user([text("x"), result("t2", "b")])])
    expect(made).toEqual([calling(null, "t1", "t2"), tool("t1", "a"), tool("t2", "b"), user("x")])
  })

  test("vector 22: their images follow after all tool messages", () => {
    const made = spoken([calledTwice, user([result("t1", [text("a"), image]), result("t2", [image]), text("look")])])
    expect(made).toEqual([
      calling(null, "t1", "t2"),
      tool("t1", "a"),
      tool("t2", "[image]"),
      { role: "user", content: [imagePart, imagePart, text("look")] },
    ])
  })

  test("a PDF in one follows as a file where the upstream reads them", () => {
    const pdf = { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBE" } }
    const made = spoken([called, user([result("t1", [pdf])])], { pdf: true })
    expect(made.slice(1)).toEqual([
      tool("t1", "[document]"),
      user([
        { type: "file", file: { filename: "document.pdf", file_data: "data:application/pdf;base64,JVBE" } },
      ] as JsonValue),
    ])
  })

  test("vector 23: without content are empty", () => {
    for (const content of [undefined, null, [], ""]) {
      expect(spoken([called, user([result("t1", content)])])[1]).toEqual(tool("t1", ""))
    }
  })

  test("vector 24: of a failure say so", () => {
    const failed = (content?: JsonValue) =>
      spoken([called, user([result("t1", content, { is_error: true })])])[1]?.content
    expect(failed("boom")).toBe("Error: boom")
    expect(failed([text("boom")])).toBe("Error: boom")
    expect(failed("Error: boom")).toBe("Error: boom")
    expect(failed("<tool_use_error>boom</tool_use_error>")).toBe("<tool_use_error>boom</tool_use_error>")
    expect(failed()).toBe("Error")
  })

  test("vector 25: that refer to a tool name it", () => {
    const content = [text("found"), { type: "tool_reference", tool_name: "mcp__x" }]
    expect(spoken([called, user([result("t1", content)])])[1]).toEqual(tool("t1", "found\ntool: mcp__x"))
  })

  test("of documents, searches and unknown blocks are told in words", () => {
    const content = [
      { type: "document", title: "D", source: { type: "text", data: "d" } },
      { type: "search_result", title: "S", source: "https://s", content: [text("s")] },
      { type: "browser_state", url: "https://b", screenshot: "zz" },
      "bare",
    ]
    expect(spoken([called, user([result("t1", content)])])[1]?.content).toBe("D\nd\nS\nhttps://s\ns\nhttps://b\nbare")
  })

  test("vector 26: without their call are the user's words", () => {
    expect(spoken([hi, assistant("a"), user([result("t9", "r"), text("b")])])).toEqual([
      hi,
      assistant("a"),
      user("r\nb"),
    ])
    expect(spoken([user([result("t9", [image])])])[0]?.content).toEqual([text("[image]"), imagePart])
    const late = [called, user([result("t1", "r")]), assistant("a"), user([result("t1", "again")])]
    expect(spoken(late).slice(1)).toEqual([tool("t1", "r"), assistant("a"), user("again")])
  })

  test("vector 27: that are missing are stood in for before the user's words", () => {
    expect(spoken([calledTwice, user([text("b"), result("t2", "r")])])).toEqual([
      calling(null, "t1", "t2"),
      tool("t1", "[no result]"),
      tool("t2", "r"),
      user("b"),
    ])
    expect(spoken([called])).toEqual([calling(null, "t1"), tool("t1", "[no result]")])
  })

  test("for one call twice: the last one wins, its images alone are shown", () => {
    const made = spoken([called, user([result("t1", [text("a"), image]), result("t1", "b")])])
    expect(made).toEqual([calling(null, "t1"), tool("t1", "b")])
    const turned = spoken([called, user([result("t1", "b"), result("t1", [text("a"), image])])])
    expect(turned).toEqual([calling(null, "t1"), tool("t1", "a"), { role: "user", content: [imagePart] }])
  })
})

describe("a system message in mid conversation", () => {
  const conversation = [hi, assistant([use("t1")]), system("S"), user([result("t1", "r"), text("a")])]
  const start = [hi, calling(null, "t1"), tool("t1", "r")]

  test("vector 28: keeps its place, but never parts calls from results", () => {
    expect(spoken(conversation)).toEqual([...start, system("S"), user("a")])
  })

  test("can be a user's, joined with its neighbours since roles have to alternate", () => {
    expect(spoken(conversation, { mid_system: "user" })).toEqual([...start, user("S\n\na")])
    expect(spoken([system("S"), user([image])], { mid_system: "user" })).toEqual([
      { role: "user", content: [text("S"), imagePart] },
    ])
  })

  test("can go to the first one", () => {
    const made = request({ system: "A", messages: conversation }, { mid_system: "merge" }).messages
    expect(made).toEqual([system("A\n\nS"), ...start, user("a")])
  })

  test("at the start is one with the system prompt", () => {
    expect(request({ system: "A", messages: [system("B"), hi, system("C")] }).messages).toEqual([
      system("A\n\nB"),
      hi,
      system("C"),
    ])
  })

  test("vector 29: in blocks is one text", () => {
    expect(spoken([hi, system([text("A"), { ...text("B"), cache_control: {} }])])).toEqual([hi, system("A\n\nB")])
    expect(spoken([hi, system([])])).toEqual([hi])
  })
})

test.each([
  [7, "messages[0]: must be an object"],
  [{ role: "developer", content: "a" }, 'messages[0].role: must be "user", "assistant" or "system", not "developer"'],
  [{ content: "a" }, 'messages[0].role: must be "user", "assistant" or "system", not nothing'],
  [user(7), "messages[0].content: must be a string or an array of blocks"],
  [user(["a"]), "messages[0].content[0]: must be an object"],
])("the message %j is refused", (message, problem) => {
  expect(() => spoken([message])).toThrow(new GatewayError("invalid_parameter", problem))
})
