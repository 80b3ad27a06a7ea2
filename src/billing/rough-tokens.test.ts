import { expect, test } from "bun:test"
import fc from "fast-check"
import { mebibyte, utf8 } from "../lib/bytes.ts"
import { roughPromptTokens, roughTokens } from "./rough-tokens.ts"

const prose = "It was a bright cold day in April, and the clocks were striking thirteen. "
const base64 = (bytes: number) => Buffer.alloc(bytes, "Winston Smith, his chin").toString("base64")
const promptTokens = (request: unknown) => roughPromptTokens(utf8(JSON.stringify(request)))

test("four bytes are a token, not four letters", () => {
  expect(roughTokens("")).toBe(0)
  expect(roughTokens("hello")).toBe(2)
  expect(roughTokens("你好你好")).toBe(3)
  expect(roughPromptTokens(utf8('{"a":1}'))).toBe(2)
  expect(roughPromptTokens(new Uint8Array())).toBe(0)
})

test.each([
  ["prose", prose.repeat(2000)],
  ["text without gaps", "你好世界".repeat(5000)],
  ["code", "const x = values.map((value) => value + 1)\n".repeat(2000)],
  ["a run of letters in prose", `${prose}${"a".repeat(100_000)} ${prose}`],
  ["short pieces of base64", `${base64(30)} `.repeat(500)],
])("text is text: %s", (_, text) => {
  const body = utf8(JSON.stringify({ messages: [{ role: "user", content: text }] }))
  expect(roughPromptTokens(body)).toBe(Math.ceil(body.length / 4))
})

test("media count nothing, wherever they stand and however long they are", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 800, max: 20_000 }), fc.integer({ min: 0, max: 40 })), { maxLength: 6 }),
      (parts) => {
        const content = (long: boolean) =>
          parts.map(([bytes, times]) => [`data:image/png;base64,${long ? base64(bytes) : ""}`, prose.repeat(times)])
        expect(promptTokens(content(true))).toBe(promptTokens(content(false)))
      },
    ),
  )
})

test("slashes may be written with a backslash", () => {
  const escaped = `{"url":"data:image/png;base64,${"abc\\/".repeat(1000)}"}`
  expect(roughPromptTokens(utf8(escaped))).toBe(Math.ceil('{"url":"data:image/png;base64,"}'.length / 4))
})

test("a body of ninety megabytes", () => {
  const picture = `"${base64(22 * mebibyte)}"`
  expect(roughPromptTokens(Buffer.from(`[${picture},${picture},${picture}]`))).toBe(3)
})

test("only the body counts, not what lies around it in memory", () => {
  const around = utf8(`"${base64(3000)}"${prose.repeat(60)}`)
  expect(roughPromptTokens(around.subarray(4002))).toBe(Math.ceil((prose.length * 60) / 4))
})
