import { describe, expect, test } from "bun:test"
import { utf8 } from "./bytes.ts"
import { JsonProblem, scanJson } from "./json-bytes.ts"

const accepted = [
  "0",
  " \t\r\n-0 ",
  "-12.50e+07",
  "1E9",
  "0e0",
  "1e400",
  "9".repeat(400),
  '""',
  '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\ude00\\ud800"',
  '"\u007f \u2028 日本 😀"',
  "true",
  "false",
  "null",
  "[]",
  "[ ]",
  "{}",
  "{ }",
  '[1,"a",[],{},null,true,false]',
  '{"a":{"b":[{"c":1}]},"":0,"__proto__":1}',
  '{"a":1,"a":2}',
]

const refused = [
  "",
  " ",
  "01",
  "-01",
  "1.",
  ".5",
  "+1",
  "-",
  "--1",
  "1e",
  "1e+",
  "1e1.5",
  "1.e1",
  "0x10",
  "NaN",
  "Infinity",
  "1 2",
  "1,",
  "tru",
  "True",
  "truee",
  "nul",
  "undefined",
  '"',
  '"a',
  '"\\',
  '"\\x"',
  '"\\u12"',
  '"\\u12g4"',
  '"a\nb"',
  '"a\tb"',
  '"\u0000"',
  '"\u001f"',
  "'a'",
  "[",
  "]",
  "[1",
  "[1,]",
  "[,1]",
  "[1 2]",
  "[1}",
  "{",
  "}",
  "{]",
  '{"a"}',
  '{"a":}',
  '{"a":1,}',
  '{"a":1 "b":2}',
  '{"a" 1}',
  '{"a"::1}',
  "{a:1}",
  "{1:1}",
  '{,"a":1}',
  '{"a":1]',
  '{"a":1}}',
  "[]x",
  "\u00a01",
  "\u000b1",
  "\u000c1",
  "\ufeff{}",
  "/* c */ 1",
]

describe("the grammar", () => {
  test.each(accepted)("%j is accepted, as JSON.parse does", (text) => {
    expect(() => JSON.parse(text)).not.toThrow()
    expect(() => scanJson(utf8(text), [])).not.toThrow()
  })

  test.each(refused)("%j is refused, as JSON.parse does", (text) => {
    expect(() => JSON.parse(text)).toThrow(SyntaxError)
    expect(() => scanJson(utf8(text), [])).toThrow(JsonProblem)
  })
})
