import { expect, test } from "bun:test"
import { readBehaviours } from "./behaviour.ts"

test("behaviour survives the way through JSON unchanged", () => {
  const steps = [
    { kind: "chat", text: "hi", usage: null, eol: "crlf", toolCalls: [{ name: "f", arguments: "{}" }] },
    { kind: "gzip", encoding: "br", inner: { kind: "status", status: 429, headers: { "Retry-After": "1" } } },
    { kind: "raw", bytes: "AAE=", encoding: "base64", splitAt: [1], thenClose: "rst" },
  ]
  expect(readBehaviours(JSON.parse(JSON.stringify(steps)))).toEqual(readBehaviours(steps))
  expect<unknown>(readBehaviours(steps)).toEqual(steps)
})

const mistakes: [unknown, RegExp][] = [
  [{ kind: "hang" }, /^behaviour: .*array/],
  [[{ kind: "hang" }, { kind: "dance" }], /^behaviour\[1\]\.kind: /],
  [[{ kind: "status", status: 99 }], /^behaviour\[0\]\.status: /],
  [[{ kind: "chat", txet: "hi" }], /^behaviour\[0\]: .*"txet"/],
  [[{ kind: "chat", gapMs: -1 }], /^behaviour\[0\]\.gapMs: /],
  [[{ kind: "status", status: 200, headers: { a: "b\r\nc: d" } }], /^behaviour\[0\]\.headers\.a: /],
  [[{ kind: "gzip", inner: { kind: "hang" } }], /^behaviour\[0\]\.inner\.kind: /],
]
test.each(mistakes)("a mistake is answered with the field's name: %j", (value, message) => {
  expect(() => readBehaviours(value)).toThrow(message)
})
