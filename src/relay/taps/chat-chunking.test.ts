import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { delta, done, finish, read, role, usageFrame } from "../../../test/support/chat-frames.ts"
import { joinBytes, textOf, utf8 } from "../../lib/bytes.ts"
import { ChatTap } from "./chat.ts"

const noBytes = new Uint8Array(0)

const sample = [
  ": open\n\n",
  role,
  delta({ reasoning_content: "思考" }),
  delta({ content: "Grüße 👋" }),
  ": ping\n\n",
  delta({ content: "\u2028 two" }, 1),
  finish("length", 1),
  finish(),
  `event: usage\nid: 7\n${usageFrame}`,
  ": cost\n\n",
  done,
]

describe.each([
  ["LF", ["\n"]],
  ["CRLF", ["\r\n"]],
  ["CR", ["\r"]],
  ["each kind of line end", ["\n", "\r\n", "\r"]],
])("any chunking of a stream with %s", (_, lineEnds) => {
  const stream = utf8(sample.map((event, index) => event.replaceAll("\n", lineEnds[index % lineEnds.length]!)).join(""))
  const whole = read([stream])

  test("the sample is what it should be", () => {
    expect(whole.tap.produced).toBe("思考Grüße 👋\u2028 two")
    expect(whole.tap.usage).toEqual({
      input: 9,
      cachedInput: 0,
      cacheWrite: 0,
      audioInput: 0,
      output: 4,
      reasoning: 0,
      audioOutput: 0,
    })
    expect(whole.passed + textOf(whole.tap.closing(null))).toBe(textOf(stream))
  })

  test("forwards the same bytes in all and reads the same", () => {
    const cuts = fc.array(fc.nat(stream.length), { maxLength: 40 })
    fc.assert(
      fc.property(cuts, (places) => {
        const bounds = [0, ...places.toSorted((x, y) => x - y), stream.length]
        const pieces = bounds.slice(1).map((bound, index) => stream.slice(bounds[index], bound))
        const { tap, passed } = read(pieces)
        expect(passed + textOf(tap.closing(null))).toBe(textOf(stream))
        expect(tap.usage).toEqual(whole.tap.usage)
        expect(tap.produced).toBe(whole.tap.produced)
        expect(tap.progress).toBe(whole.tap.progress)
        expect({ begun: tap.begun, ended: tap.ended, state: tap.state }).toEqual({
          begun: true,
          ended: true,
          state: "complete",
        })
      }),
      { numRuns: 300 },
    )
  })

  test("byte by byte, in one buffer that the sender uses again and again", () => {
    const tap = new ChatTap()
    const buffer = new Uint8Array(1)
    const passed: Uint8Array[] = [noBytes]
    for (const byte of stream) {
      buffer[0] = byte
      const part = tap.push(buffer)
      if (part !== null) passed.push(part.slice())
    }
    expect(textOf(joinBytes([...passed, tap.closing(null)]))).toBe(textOf(stream))
  })

  test("a stream cut anywhere passes only what it was sent, event by event", () => {
    fc.assert(
      fc.property(fc.nat(stream.length), (length) => {
        const { passed } = read([stream.slice(0, length)], "ended")
        const complete = textOf(stream).replaceAll(/\r\n|\r/g, "\n")
        expect(complete.startsWith(passed.replaceAll(/\r\n|\r/g, "\n").trimEnd())).toBe(true)
        for (const block of passed.split(/\r\n\r\n|\n\n|\r\r/)) {
          const data = /(?:^|[\r\n])data: ([^\r\n]*)/.exec(block)?.[1]
          if (data !== undefined) expect(() => JSON.parse(data)).not.toThrow()
        }
      }),
      { numRuns: 200 },
    )
  })
})
