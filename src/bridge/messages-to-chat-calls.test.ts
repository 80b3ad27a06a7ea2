import { describe, expect, test } from "bun:test"
import { asked, called, chunk, finish, fragment } from "../../test/support/bridged-streams.ts"
import { checkMessages } from "../../test/support/messages-check.ts"
import type { JsonObject } from "../core/json.ts"
import { messagesToChat } from "./messages-to-chat.ts"
import { toolNames } from "./messages-to-chat-parts.ts"

type Call = readonly [id: string, name: string, input: JsonObject]
type Piece = JsonObject | readonly JsonObject[]

function translate(chunks: readonly string[], from: JsonObject = asked) {
  const stream = messagesToChat.stream(from)
  return checkMessages(chunks.map((data) => stream.read(null, data)).join("") + stream.closing(null))
}

function callsOf(chunks: readonly string[], from: JsonObject = asked): readonly unknown[] {
  return translate(chunks, from).message.content.map(({ type, id, name, input }) => {
    expect(type).toBe("tool_use")
    return [String(id).startsWith("toolu_") ? "minted" : id, name, input]
  })
}

const f = (id: string, input: JsonObject = {}): Call => [id, "f", input]
const weather = (id: string, input: JsonObject = {}): Call => [id, "weather", input]

const forms: readonly [form: string, pieces: readonly Piece[], calls: readonly Call[]][] = [
  [
    "interleaved pieces",
    [
      fragment(0, "a", "f", ""),
      fragment(1, "b", "weather", ""),
      fragment(1, null, null, '{"y":'),
      fragment(0, null, null, '{"z":'),
      fragment(1, null, null, "2}"),
      fragment(0, null, null, "1}"),
    ],
    [f("a", { z: 1 }), weather("b", { y: 2 })],
  ],
  ["index 0 for all, told apart by id", [fragment(0, "a", "f", "{}"), fragment(0, "b", "f", "{}")], [f("a"), f("b")]],
  [
    "index 0 for all, in pieces",
    [
      fragment(0, "a", "f", "{"),
      fragment(0, null, null, "}"),
      fragment(0, "b", "f", '{"y":'),
      fragment(0, null, null, "2}"),
    ],
    [f("a"), f("b", { y: 2 })],
  ],
  [
    "index 0 for all, without ids",
    [fragment(0, null, "f", "{}"), fragment(0, null, "weather", "{}")],
    [f("minted"), weather("minted")],
  ],
  ["no index", [fragment(null, "a", "f", "{"), fragment(null, null, null, "}")], [f("a")]],
  [
    "no index, told apart by id",
    [
      fragment(null, "a", "f", "{"),
      fragment(null, "b", "weather", "{"),
      fragment(null, "a", null, "}"),
      fragment(null, "b", null, "}"),
    ],
    [f("a"), weather("b")],
  ],
  [
    "no index and no id: a name starts a call",
    [fragment(null, null, "f", "{}"), fragment(null, null, "weather", "{}")],
    [f("minted"), weather("minted")],
  ],
  ["a name in pieces", [fragment(0, "a", "wea", null), fragment(0, null, "ther", "{}")], [weather("a")]],
  [
    "a name that could be the start of another",
    [fragment(0, "a", "weather", ""), fragment(0, null, "_now", "{}")],
    [["a", "weather_now", {}]],
  ],
  [
    "a name repeated",
    [fragment(0, "a", "f", "{"), fragment(0, "a", "f", '"x":1'), fragment(0, "a", "f", "}")],
    [f("a", { x: 1 })],
  ],
  [
    "a name repeated before the arguments",
    [fragment(0, "a", "f", ""), fragment(0, "a", "f", ""), fragment(0, null, null, "{}")],
    [f("a")],
  ],
  [
    "arguments repeated as a whole",
    [fragment(0, "a", "f", '{"x":'), fragment(0, null, null, "1}"), fragment(0, "a", "f", '{"x":1}')],
    [f("a", { x: 1 })],
  ],
  ["an id that comes late", [fragment(0, null, "f", null), fragment(0, "a", null, "{}")], [f("a")]],
  ["an id that comes too late", [fragment(0, null, "f", "{"), fragment(0, "a", null, "}")], [f("minted")]],
  ["a name that comes after its arguments", [fragment(0, "a", null, "{"), fragment(0, null, "f", "}")], [f("a")]],
  ["no id", [fragment(0, null, "f", "{}")], [f("minted")]],
  [
    "the same id for all",
    [fragment(0, "a", "f", "{}"), fragment(1, "a", "weather", "{}")],
    [f("a"), weather("minted")],
  ],
  ["several in one chunk", [[fragment(0, "a", "f", "{}"), fragment(1, "b", "weather", "{}")]], [f("a"), weather("b")]],
  [
    "several in one chunk, no index",
    [[fragment(null, "a", "f", "{}"), fragment(null, "b", "f", "{}")]],
    [f("a"), f("b")],
  ],
  ["indexes that start elsewhere", [fragment(7, "a", "f", "{}"), fragment(3, "b", "f", "{}")], [f("a"), f("b")]],
  ["no arguments", [fragment(0, "a", "f", null)], [f("a")]],
  ["empty arguments", [fragment(0, "a", "f", ""), fragment(1, "b", "weather", " ")], [f("a"), weather("b")]],
  [
    "arguments with brackets in their strings",
    [fragment(0, "a", "f", '{"x":"}\\"'), fragment(0, null, null, '{"}')],
    [f("a", { x: '}"{' })],
  ],
  [
    "arguments that are an object already",
    [{ index: 0, id: "a", function: { name: "f", arguments: { x: 1 } } }],
    [f("a", { x: 1 })],
  ],
  [
    "arguments wrapped into text twice",
    [fragment(0, "a", "f", '"{\\"x\\"'), fragment(0, null, null, ':1}"')],
    [f("a", { x: 1 })],
  ],
  ["arguments that are a list", [fragment(0, "a", "f", "[1]"), fragment(1, "b", "f", "{}")], [f("a"), f("b")]],
  ["arguments that are no JSON", [fragment(0, "a", "f", "x = 1"), fragment(1, "b", "f", "{}")], [f("a"), f("b")]],
  [
    "empty arguments after proper ones",
    [fragment(0, "a", "f", '{"x":1}'), fragment(1, "b", "f", "")],
    [f("a", { x: 1 }), f("b")],
  ],
  [
    "a list after proper arguments",
    [fragment(0, "a", "f", '{"x":1}'), fragment(1, "b", "f", "[1]")],
    [f("a", { x: 1 }), f("b")],
  ],
  ["space before the arguments", [fragment(0, "a", "f", " \n"), fragment(0, null, null, "{}")], [f("a")]],
  ["a call that never gets a name", [fragment(0, "a", null, "{}"), fragment(1, "b", "f", "{}")], [f("b")]],
  ["pieces that say nothing", [fragment(0, null, null, null), fragment(1, "a", "f", "{}")], [f("a")]],
]

describe.each([...forms])("%s", (_form, pieces, calls) => {
  const deltas = pieces.map((each) =>
    called(...(Array.isArray(each) ? (each as readonly JsonObject[]) : [each as JsonObject])),
  )
  const chunks = deltas.map((delta) => chunk(delta))

  test("the calls come out whole, one after another", () => {
    expect(callsOf([...chunks, finish("tool_calls")])).toEqual([...calls])
  })

  test("the same where the last piece rides with the finish", () => {
    expect(callsOf([...chunks.slice(0, -1), chunk(deltas.at(-1)!, "stop")])).toEqual([...calls])
  })

  test("the same where only the end marker follows", () => {
    expect(callsOf([...chunks, "[DONE]"])).toEqual([...calls])
  })
})

test("the older function_call is a call as well", () => {
  const piece = (fields: JsonObject): string => chunk({ function_call: fields })
  const chunks = [piece({ name: "f", arguments: "{" }), piece({ arguments: "}" }), finish("function_call")]
  expect(callsOf(chunks)).toEqual([f("minted")])
})

test("a call is announced as soon as nothing about it can change", () => {
  const stream = messagesToChat.stream(asked)
  const announced = (piece: JsonObject) => stream.read(null, chunk(called(piece))).includes("content_block_start")
  // "weather" may still become "weather_now".
  expect(announced(fragment(0, "a", "weather", ""))).toBe(false)
  expect(announced(fragment(0, null, null, "{}"))).toBe(true)
  expect(announced(fragment(1, "b", "f", ""))).toBe(true)
  expect(announced(fragment(2, "c", "unheard_of", ""))).toBe(false)
})

test("arguments go on piece by piece", () => {
  const stream = messagesToChat.stream(asked)
  stream.read(null, chunk(called(fragment(0, "a", "f", '{"x":"'))))
  expect(stream.read(null, chunk(called(fragment(0, null, null, "yes"))))).toBe(
    `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"yes"}}\n\n`,
  )
})

test("a piece that says nothing holds nothing up, nor do arguments that had to be mended", () => {
  const stream = messagesToChat.stream(asked)
  stream.read(null, chunk(called(fragment(0, null, null, null))))
  stream.read(null, chunk(called(fragment(1, "a", "f", "[1]"))))
  expect(stream.read(null, chunk(called(fragment(2, "b", "f", '{"x":'))))).toContain('"partial_json":"{\\"x\\":"')
})

test("text behind an unfinished call waits for it", () => {
  const { message } = translate([
    chunk(called(fragment(0, "a", "f", '{"x":'))),
    chunk({ content: "so" }),
    chunk(called(fragment(0, null, null, "1}"))),
    chunk({ content: " there" }, "stop"),
  ])
  expect(message.content).toEqual([
    { type: "tool_use", id: "a", name: "f", input: { x: 1 } },
    { type: "text", text: "so there" },
  ])
})

test("arguments that were cut are told as far as they came", () => {
  const stream = messagesToChat.stream(asked)
  const text = stream.read(null, chunk(called(fragment(0, "a", "f", '{"x":')), "length")) + stream.closing(null)
  const { message } = checkMessages(text, { brokenArguments: true })
  expect(message).toMatchObject({ stop_reason: "max_tokens", content: [{ input: '{"x":' }] })
})

test("a name that was shortened for the upstream comes back as the caller knows it", () => {
  const long = `mcp__${"server".repeat(15)}__do`
  const from = { ...asked, tools: [{ name: long, input_schema: { type: "object" } }] }
  const short = toolNames(from, 64).toUpstream(long)
  expect(short).not.toBe(long)
  expect(callsOf([chunk(called(fragment(0, "a", short, "{}"))), finish("tool_calls")], from)).toEqual([["a", long, {}]])
})
