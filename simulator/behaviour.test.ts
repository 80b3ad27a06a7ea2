import { expect, test } from "bun:test"
import { readBehaviours } from "./behaviour.ts"

test("behaviour survives the way through JSON unchanged", () => {
  const steps = [
    { kind: "chat", text: "hi", usage: null, eol: "crlf", toolCalls: [{ name: "f", arguments: "{}" }] },
    { kind: "gzip", encoding: "br", inner: { kind: "status", status: 429, headers: { "Retry-After": "1" } } },
    { kind: "responses", ending: "failed", endAfterEvents: 3, cut: { afterEvents: 9, how: "clean" } },
    { kind: "gzip", inner: { kind: "messages", usage: { input_tokens: 1 }, pingEveryMs: 5 } },
    { kind: "image_job", waitMs: 5, polls: [{ kind: "reset" }], file: { fault: { kind: "hang" } } },
    { kind: "video_job", queuedMs: 0, submit: { status: 429, json: { code: 1303 } }, file: { redirects: 1 } },
    { kind: "video_job", outcome: "odd_status", submit: "lost", words: ["a"], moov: "end", resultLivesMs: 5 },
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
  [[{ kind: "image_job", polls: [{ kind: "chat" }] }], /^behaviour\[0\]\.polls\[0\]\.kind: /],
  [[{ kind: "video_job", outcome: "done" }], /^behaviour\[0\]\.outcome: /],
  [[{ kind: "video_job", file: { megabytes: 1 } }], /^behaviour\[0\]\.file: .*"megabytes"/],
  [[{ kind: "images", file: { redirectTo: "a\r\nb" } }], /^behaviour\[0\]\.file\.redirectTo: /],
]
test.each(mistakes)("a mistake is answered with the field's name: %j", (value, message) => {
  expect(() => readBehaviours(value)).toThrow(message)
})
