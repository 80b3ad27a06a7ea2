import { describe, expect, test } from "bun:test"
import { joinBytes, textOf, utf8 } from "../../lib/bytes.ts"
import { EventsTap } from "./events.ts"

const event = (data: object, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`
const typed = (type: string, more: object = {}): string => event({ type, ...more }, type)
const partial = typed("image_generation.partial_image", { b64_json: "AAAA", partial_image_index: 0 })
const completed = (usage?: unknown, more: object = {}): string =>
  typed("image_generation.completed", { b64_json: "BBBB", usage, ...more })
const ping = typed("keepalive")
const comment = ": still here\n\n"
const done = "data: [DONE]\n\n"

const tokens = (input: number, output: number) => ({
  input,
  cachedInput: 0,
  cacheWrite: 0,
  audioInput: 0,
  output,
  reasoning: 0,
  audioOutput: 0,
})
const used = { input_tokens: 5, output_tokens: 1056, total_tokens: 1061 }

/** Passes a text through a tap in pieces of this many bytes. */
function run(text: string, size = 1 << 20): { tap: EventsTap; before: string; closing: string } {
  const tap = new EventsTap()
  const bytes = utf8(text)
  const passed: Uint8Array[] = []
  for (let at = 0; at < bytes.length; at += size) passed.push(tap.push(bytes.slice(at, at + size)) ?? new Uint8Array())
  passed.push(tap.end() ?? new Uint8Array())
  return { tap, before: textOf(joinBytes(passed)), closing: textOf(tap.closing()) }
}

describe("pictures", () => {
  test("each completed one counts, and their tokens add up", () => {
    const { tap } = run(partial + completed(used, { size: "1024x1024", quality: "low" }) + partial + completed(used))
    expect(tap.measured).toEqual({ images: 2, size: "1024x1024", quality: "low", tokens: tokens(10, 2112) })
    expect(tap.usage).toEqual(tokens(10, 2112))
    expect(tap.usageInvalid).toBeFalse()
  })

  test("sketches do not count, whatever they say", () => {
    const { tap } = run(typed("image_generation.partial_image", { b64_json: "AAAA", usage: used, size: "1x1" }))
    expect(tap.measured).toEqual({})
  })

  test("edits count alike, and so do events typed only in their data, wherever the type stands", () => {
    expect(run(typed("image_edit.completed", { b64_json: "B" })).tap.measured).toEqual({ images: 1 })
    const late = event({ b64_json: "B".repeat(300_000), usage: used, type: "image_generation.completed" })
    const { tap, closing } = run(partial + late)
    expect(tap.measured).toEqual({ images: 1, tokens: tokens(5, 1056) })
    expect(closing === late).toBeTrue()
    expect(run(event({ type: "image_edit.completed", b64_json: "B" }, "message")).tap.measured).toEqual({ images: 1 })
  })

  test("a vendor that sends pictures one by one and completes without one", () => {
    const { tap } = run(
      typed("image_generation.partial_succeeded", { url: "https://x/1", size: "2048x2048" }) +
        typed("image_generation.partial_failed", { error: { code: "sensitive" } }) +
        typed("image_generation.partial_succeeded", { b64_json: "B" }) +
        typed("image_generation.completed", { usage: { generated_images: 2, output_tokens: 8, total_tokens: 8 } }) +
        done,
    )
    expect(tap.measured).toEqual({ images: 2, size: "2048x2048", tokens: tokens(0, 8) })
    expect([tap.error, tap.state, tap.usageInvalid]).toEqual([null, "complete", false])
  })

  test("untyped events count by the pictures they carry; the last usage is the one", () => {
    const { tap } = run(
      event({ b64_json: "A", usage: { input_tokens: 1, output_tokens: 1 } }) +
        event({ url: "https://x/2" }) +
        event({ data: [{ url: "a" }, { url: "b" }] }) +
        event({ progress: 0.5 }) +
        event({ usage: used }),
    )
    expect(tap.measured).toEqual({ images: 4, tokens: tokens(5, 1056) })
    expect(tap.state).toBe("complete")
  })

  test("thirty megabytes in one event are passed and measured", () => {
    const large = completed(used, { b64_json: "iVBORw0KGgo/+9Az".repeat(2 * 2 ** 20), size: "4096x4096" })
    const { tap, before, closing } = run(partial + large, 1 << 18)
    expect(tap.measured).toEqual({ images: 1, size: "4096x4096", tokens: tokens(5, 1056) })
    expect(before).toBe(partial)
    expect(closing === large).toBeTrue()
    expect(tap.usageInvalid).toBeFalse()
  })

  test("an event too long to be read is passed in its place, and the measure is doubted", () => {
    const tap = new EventsTap(2000)
    const long = completed(undefined, { b64_json: "A".repeat(5000) })
    const first = completed(used)
    const passed = [first, long.slice(0, 3000), long.slice(3000), partial].map((text) => tap.push(utf8(text)))
    expect(textOf(joinBytes(passed.map((bytes) => bytes ?? new Uint8Array())))).toBe(first + long + partial)
    expect(tap.usageInvalid).toBeTrue()
  })
})

describe("sound", () => {
  test("speech ends with its tokens", () => {
    const { tap, before, closing } = run(
      event({ type: "speech.audio.delta", audio: "AAAA" }) + event({ type: "speech.audio.done", usage: used }),
    )
    expect(tap.measured).toEqual({ tokens: tokens(5, 1056) })
    expect([before, closing].map((text) => text.includes("speech.audio.done"))).toEqual([false, true])
  })

  test("a transcript ends with its tokens or its seconds", () => {
    const delta = event({ type: "transcript.text.delta", delta: "a" })
    const end = (usage: unknown) => run(delta + event({ type: "transcript.text.done", text: "a", usage })).tap
    expect(end({ type: "tokens", ...used }).measured).toEqual({ tokens: tokens(5, 1056) })
    expect(end({ type: "duration", seconds: 2.5 }).measured).toEqual({ microseconds: 2_500_000 })
    expect(end(undefined).measured).toEqual({})
    expect(end(undefined).usageInvalid).toBeFalse()
  })
})

describe("odd values are not charged by", () => {
  test.each([
    "much",
    { input_tokens: -5, output_tokens: 1 },
    { input_tokens: 1.5, output_tokens: 1 },
    { input_tokens: "5", output_tokens: 1 },
    { input_tokens: 5e9, output_tokens: 1 },
    { output_tokens: 1 },
  ])("%j", (usage) => {
    const { tap } = run(completed(usage))
    expect([tap.measured, tap.usage, tap.usageInvalid]).toEqual([{ images: 1 }, null, true])
  })

  test("tokens that add up to more than an answer can have", () => {
    const half = completed({ input_tokens: 600_000_000, output_tokens: 1 })
    const { tap } = run(half + half)
    expect(tap.measured.tokens).toEqual(tokens(600_000_000, 1))
    expect(tap.usageInvalid).toBeTrue()
  })

  test("more pictures than an answer can have", () => {
    const { tap } = run(event({ data: Array.from({ length: 10_001 }, () => 1) }))
    expect([tap.measured, tap.usageInvalid]).toEqual([{}, true])
  })

  test("a usage given twice", () => {
    const twice = 'data: {"type":"image_generation.completed","usage":{},"usage":{"input_tokens":1}}\n\n'
    expect(run(twice).tap.usageInvalid).toBeTrue()
  })
})

describe("the last event waits for the end", () => {
  const both = completed(used)
  const streams: Record<string, [text: string, closing: string]> = {
    "one picture": [partial + both, both],
    "with [DONE] behind it": [partial + both + done, both + done],
    "several pictures": [both + partial + completed(), completed()],
    "several pictures in a row": [both + completed(), completed()],
    "pings and comments behind it": [both + comment + ping + comment, both + comment + ping + comment],
    "pings, comments and [DONE] behind it": [both + ping + comment + done, both + ping + comment + done],
    "pings between two": [both + ping + comment + completed() + ping, completed() + ping],
    "empty lines behind it": [`${both}\n\n${comment}\n`, `${both}\n\n${comment}\n`],
    "an error behind it": [both + typed("error", { error: {} }), ""],
    "something unknown behind it": [both + typed("image_generation.note"), ""],
  }
  for (const [about, [text, last]] of Object.entries(streams)) {
    for (const eol of ["\n", "\r\n", "\r"]) {
      test(`${about} (${JSON.stringify(eol)}), in pieces of any size, byte for byte`, () => {
        const [whole, end] = [text, last].map((part) => part.replaceAll("\n", eol))
        for (let size = 1; size <= 60; size++) {
          const { before, closing } = run(whole!, size)
          expect(before + closing).toBe(whole!)
          // The second half of a line end that was cut belongs to what comes next.
          expect(closing.replace(/^\n/, "")).toBe(end!)
        }
      })
    }
  }

  test("sketches and untyped events do not wait", () => {
    const tap = new EventsTap()
    for (const text of [partial, event({ b64_json: "A" }), event({ type: "transcript.text.delta", delta: "a" })])
      expect(textOf(tap.push(utf8(text))!)).toBe(text)
  })

  test("a last event without its blank line is completed and counts", () => {
    const { tap, before, closing } = run(partial + both.trimEnd())
    expect([before, closing]).toEqual([partial, both])
    expect(tap.measured.images).toBe(1)
    expect(run(partial + both.slice(0, -20)).tap.state).toBe("open")
  })
})

describe("how the stream stands", () => {
  test("a picture that was begun after another must be completed too", () => {
    expect(run(partial + completed()).tap.state).toBe("complete")
    expect(run(partial + completed() + ping).tap.state).toBe("complete")
    expect(run(partial + completed() + partial).tap.state).toBe("open")
    expect(run(partial + completed() + partial + completed()).tap.state).toBe("complete")
  })

  test("an error is one wherever it stands, but for those of single pictures", () => {
    for (const error of [
      event({ error: { message: "no" } }),
      event({ type: "error", message: "no" }),
      typed("image_generation.partial_image", { error: { message: "no" } }),
      typed("image_generation.completed", { error: { message: "no" } }),
    ]) {
      const { tap } = run(error)
      expect([tap.begun, tap.state, tap.measured]).toEqual([false, "error_sent", {}])
    }
    expect(run(typed("image_generation.completed", { error: null })).tap.state).toBe("complete")
  })
})
