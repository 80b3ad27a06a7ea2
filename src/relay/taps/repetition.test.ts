import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { delta, done, finish, role, usageFrame } from "../../../test/support/chat-frames.ts"
import { textOf, utf8 } from "../../lib/bytes.ts"
import { ChatTap } from "./chat.ts"
import { Repetition } from "./repetition.ts"

const chunkOf = (text: string): Uint8Array => utf8(`data: {"content":${text},"end":1}\n\n`)

function taught(text = "hello"): Repetition {
  const repetition = new Repetition()
  repetition.learn(chunkOf(`"${text}"`), '"content":"', text)
  return repetition
}

describe("a repetition", () => {
  test.each(["x", "hello", " 你好 🙂", "{}", "a,b:c", "'"])("is seen, whatever plain text it carries: %s", (text) => {
    expect(taught().textOf(chunkOf(`"${text}"`))).toBe(text)
  })

  test.each(['""', '"a\\nb"', '"a\\"', '"a","b":"c"', "null", '"a"}'])("is not %s", (json) => {
    expect(taught().textOf(chunkOf(json))).toBeNull()
  })

  test("is not a chunk that differs before or behind, is cut, or has more behind it", () => {
    const repetition = taught()
    const chunk = textOf(chunkOf('"abc"'))
    for (const other of [
      chunk.replace("content", "kontent"),
      chunk.replace('"end":1', '"end":2'),
      chunk.slice(0, -1),
      chunk + chunk,
      ` ${chunk}`,
    ]) {
      expect(repetition.textOf(utf8(other))).toBeNull()
    }
  })

  test("is not learned from text that is written with escapes, or that is not there", () => {
    const repetition = new Repetition()
    repetition.learn(utf8('data: {"content":"a\\u0062"}\n\n'), '"content":"', "ab")
    expect(repetition.textOf(utf8('data: {"content":"a\\u0062"}\n\n'))).toBeNull()
  })

  test("is no longer looked for where a vendor never repeats itself", () => {
    const repetition = new Repetition()
    for (let turn = 0; turn < 100; turn++) {
      const chunk = utf8(`data: {"content":"x","noise":"${turn}"}\n\n`)
      expect(repetition.textOf(chunk)).toBeNull()
      repetition.learn(chunk, '"content":"', "x")
    }
    const late = utf8('data: {"content":"x","noise":"steady"}\n\n')
    repetition.learn(late, '"content":"', "x")
    expect(repetition.textOf(late)).toBeNull()
  })
})

/** What a tap has learned from a stream. */
function outcome(tap: ChatTap) {
  const { begun, ended, state, error, progress, usage, produced } = tap
  return { begun, ended, state, error, progress, usage, produced, closing: textOf(tap.closing(null)) }
}

test("a stream is read the same whether its chunks come one by one, where they repeat, or byte by byte, where none does", () => {
  const piece = fc.oneof(
    fc.string({ minLength: 1, maxLength: 8 }).map((content) => delta({ content })),
    fc.constant(delta({ content: "x" })),
    fc.constant(delta({ content: "" })),
    fc.constant(delta({ content: "x", reasoning_content: "y" })),
    fc.constant(delta({ role: "assistant", content: "x" })),
    fc.constant(": comment\n\n"),
    fc.constant(finish("stop", 1)),
    fc.constant(usageFrame),
    fc.constant('data: {"error":{"message":"x"}}\n\n'),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      const frames = [role, ...pieces, finish("stop"), usageFrame, done]
      const byChunk = new ChatTap()
      const byByte = new ChatTap()
      const passed = frames.map((frame) => textOf(byChunk.push(utf8(frame)) ?? new Uint8Array())).join("")
      const single: Uint8Array[] = []
      for (const byte of utf8(frames.join(""))) single.push(byByte.push(Uint8Array.of(byte)) ?? new Uint8Array())
      expect(passed).toBe(Buffer.concat(single).toString())
      expect(outcome(byChunk)).toEqual(outcome(byByte))
    }),
  )
})
