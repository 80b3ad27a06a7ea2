import { describe, expect, test } from "bun:test"
import { readWithOpenAi } from "../../test/support/openai-reader.ts"
import { checkStream } from "../../test/support/responses-check.ts"
import type { JsonObject } from "../core/json.ts"
import { ChatToResponsesStream } from "./responses-stream.ts"

const tool = (name: string): JsonObject => ({ type: "function", name, parameters: {} })
const asked: JsonObject = {
  model: "m",
  input: [
    { type: "function_call", call_id: "call_old", name: "weather", arguments: "{}" },
    { type: "function_call_output", call_id: "call_old", output: "" },
  ],
  tools: ["weather", "weather_now", "clock"].map(tool),
}

/** One fragment of a call; what is not said is left out, as upstreams do. */
function piece(index: number | null, id: string | null, name: string | null, text: string | null): JsonObject {
  const called = { ...(name === null ? {} : { name }), ...(text === null ? {} : { arguments: text }) }
  return {
    ...(index === null ? {} : { index }),
    ...(id === null ? {} : { id, type: "function" }),
    ...(name === null && text === null ? {} : { function: called }),
  }
}

function chunk(delta: JsonObject, finish: string | null = null): string {
  return JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })
}

function translate(chunks: readonly string[]): string {
  const stream = new ChatToResponsesStream(asked)
  return chunks.map((data) => stream.read(null, data)).join("") + stream.closing(null)
}

type Call = readonly [callId: string, name: string, args: string]

/** The calls of a response; an id that was minted is told as such. */
function callsOf(output: readonly Record<string, unknown>[]): Call[] {
  return output.map(({ call_id, name, arguments: args }) => {
    const minted = /^call_[0-9a-f]{32}$/.test(String(call_id))
    return [minted ? "minted" : String(call_id), String(name), String(args)]
  })
}

const forms: readonly [
  form: string,
  pieces: readonly (JsonObject | readonly JsonObject[])[],
  calls: readonly Call[],
][] = [
  [
    "arguments in many pieces",
    [piece(0, "a", "clock", ""), piece(0, null, null, '{"z'), piece(0, null, null, '":1}')],
    [["a", "clock", '{"z":1}']],
  ],
  ["arguments in one piece", [piece(0, "a", "clock", '{"z":1}')], [["a", "clock", '{"z":1}']]],
  [
    "arguments that are an object",
    [{ index: 0, id: "a", function: { name: "clock", arguments: { z: 1 } } }],
    [["a", "clock", '{"z":1}']],
  ],
  ["no arguments", [piece(0, "a", "clock", null)], [["a", "clock", "{}"]]],
  ["empty arguments", [piece(0, "a", "clock", ""), piece(0, null, null, "")], [["a", "clock", "{}"]]],
  ["arguments that are no JSON", [piece(0, "a", "clock", "no"), piece(0, null, null, "w}")], [["a", "clock", "now}"]]],
  [
    "arguments twice",
    [
      piece(0, "a", "clock", '{"z":'),
      piece(0, null, null, "1}"),
      piece(0, "a", "clock", '{"z":1}'),
      piece(0, null, null, '{"z":1}'),
    ],
    [["a", "clock", '{"z":1}']],
  ],
  [
    "brackets inside strings",
    [piece(0, "a", "clock", '{"z":"}\\"}'), piece(0, null, null, ']"}')],
    [["a", "clock", '{"z":"}\\"}]"}']],
  ],
  ["no id", [piece(0, null, "clock", "{}")], [["minted", "clock", "{}"]]],
  ["an id that comes late", [piece(0, null, "clock", null), piece(0, "a", null, "{}")], [["a", "clock", "{}"]]],
  ["an id that comes too late", [piece(0, null, "clock", "{"), piece(0, "a", null, "}")], [["minted", "clock", "{}"]]],
  [
    "id and name repeated with each piece",
    [piece(0, "a", "clock", "{"), piece(0, "a", "clock", "}")],
    [["a", "clock", "{}"]],
  ],
  ["an id of the conversation so far", [piece(0, "call_old", "clock", "{}")], [["minted", "clock", "{}"]]],
  [
    "a name in two pieces",
    [piece(0, "a", "weather", null), piece(0, null, "_now", "{}")],
    [["a", "weather_now", "{}"]],
  ],
  [
    "a name that comes after the arguments",
    [piece(0, "a", null, "{}"), piece(0, null, "clock", null)],
    [["a", "clock", "{}"]],
  ],
  [
    "no index, pieces by id",
    [
      piece(null, "a", "clock", "{"),
      piece(null, "b", "weather", "{"),
      piece(null, "a", null, "}"),
      piece(null, "b", null, "}"),
    ],
    [
      ["a", "clock", "{}"],
      ["b", "weather", "{}"],
    ],
  ],
  [
    "no index, the id only once",
    [
      piece(null, "a", "clock", "{"),
      piece(null, null, null, "}"),
      piece(null, "b", "clock", "{"),
      piece(null, null, null, "}"),
    ],
    [
      ["a", "clock", "{}"],
      ["b", "clock", "{}"],
    ],
  ],
  [
    "no index and no id",
    [piece(null, null, "clock", "{"), piece(null, null, null, "}"), piece(null, null, "clock", '{"z":1}')],
    [
      ["minted", "clock", "{}"],
      ["minted", "clock", '{"z":1}'],
    ],
  ],
  [
    "no index, no id, the name repeated",
    [piece(null, null, "clock", "{"), piece(null, null, "clock", "}")],
    [["minted", "clock", "{}"]],
  ],
  [
    "no index, no id, the name in pieces",
    [piece(null, null, "cl", null), piece(null, null, "ock", "{}")],
    [["minted", "clock", "{}"]],
  ],
  [
    "the same index for all, told apart by id",
    [piece(0, "a", "clock", "{}"), piece(0, "b", "clock", "{}")],
    [
      ["a", "clock", "{}"],
      ["b", "clock", "{}"],
    ],
  ],
  [
    "the same index for all, without ids",
    [piece(0, null, "clock", "{}"), piece(0, null, "weather", "{}")],
    [
      ["minted", "clock", "{}"],
      ["minted", "weather", "{}"],
    ],
  ],
  [
    "the same id for all",
    [piece(0, "a", "clock", "{}"), piece(1, "a", "weather", "{}")],
    [
      ["a", "clock", "{}"],
      ["minted", "weather", "{}"],
    ],
  ],
  [
    "several in one chunk",
    [[piece(0, "a", "clock", "{}"), piece(1, "b", "weather", "{}")]],
    [
      ["a", "clock", "{}"],
      ["b", "weather", "{}"],
    ],
  ],
  [
    "several in one chunk, no index",
    [[piece(null, "a", "clock", "{}"), piece(null, "b", "weather", "{}")]],
    [
      ["a", "clock", "{}"],
      ["b", "weather", "{}"],
    ],
  ],
  [
    "interleaved pieces",
    [
      piece(0, "a", "clock", ""),
      piece(1, "b", "weather", ""),
      piece(1, null, null, '{"y":'),
      piece(0, null, null, '{"z":'),
      piece(1, null, null, "2}"),
      piece(0, null, null, "1}"),
    ],
    [
      ["a", "clock", '{"z":1}'],
      ["b", "weather", '{"y":2}'],
    ],
  ],
  [
    "indexes that start elsewhere",
    [piece(7, "a", "clock", "{}"), piece(3, "b", "weather", "{}")],
    [
      ["a", "clock", "{}"],
      ["b", "weather", "{}"],
    ],
  ],
  ["pieces that say nothing", [piece(0, null, null, null), piece(1, "a", "clock", "{}")], [["a", "clock", "{}"]]],
]

describe.each(forms)("%s", (_form, pieces, calls) => {
  const deltas = pieces.map((each) => ({ tool_calls: Array.isArray(each) ? each : [each] }) as JsonObject)
  const chunks = deltas.map((delta) => chunk(delta))

  test("the calls come out whole, one after another", () => {
    const { response } = checkStream(translate([...chunks, chunk({}, "tool_calls")]))
    expect(callsOf(response.output)).toEqual([...calls])
    expect(response.output.every(({ status }) => status === "completed")).toBe(true)
  })

  test("the same where the last piece rides with the finish", () => {
    const last = chunk(deltas.at(-1)!, "stop")
    const { response } = checkStream(translate([...chunks.slice(0, -1), last]))
    expect(callsOf(response.output)).toEqual([...calls])
  })

  test("the openai package reads them", async () => {
    const read = await readWithOpenAi(translate([...chunks, chunk({}, "tool_calls")]))
    expect(callsOf(JSON.parse(JSON.stringify(read.output)))).toEqual([...calls])
  })
})

test("the older function_call is a call as well", () => {
  const text = translate([
    chunk({ function_call: { name: "clock", arguments: "{" } }),
    chunk({ function_call: { arguments: "}" } }, "function_call"),
  ])
  expect(callsOf(checkStream(text).response.output)).toEqual([["minted", "clock", "{}"]])
})

test("a call is announced as soon as nothing about it can change", () => {
  const stream = new ChatToResponsesStream(asked)
  const announced = (delta: JsonObject) =>
    stream.read(null, chunk({ tool_calls: [delta] })).includes("output_item.added")
  // "weather" may still become "weather_now".
  expect(announced(piece(0, "a", "weather", ""))).toBe(false)
  expect(announced(piece(0, null, null, "{}"))).toBe(true)
  expect(announced(piece(1, "b", "clock", ""))).toBe(true)
})
