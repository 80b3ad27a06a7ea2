import { describe, expect, test } from "bun:test"
import type { Endpoint } from "../../core/endpoints.ts"
import type { Reading } from "../../core/measured.ts"
import { utf8 } from "../../lib/bytes.ts"
import { meterFor } from "./choose.ts"

/** What the meter reads of an answer, in one piece and in single bytes. */
function read(endpoint: Endpoint, answer: unknown, type = "application/json"): Reading | null {
  const bytes = utf8(typeof answer === "string" ? answer : JSON.stringify(answer))
  const [whole, single] = [meterFor(endpoint, type), meterFor(endpoint, type)]
  if (whole === null || single === null) return null
  whole.push(bytes)
  for (const byte of bytes) single.push(Uint8Array.of(byte))
  const reading = whole.end()
  expect(single.end()).toEqual(reading)
  return reading
}

const tokens = (input: number, output: number, audioInput = 0) => ({
  input,
  cachedInput: 0,
  cacheWrite: 0,
  audioInput,
  output,
  reasoning: 0,
  audioOutput: 0,
})

describe.each(["image_generations", "image_edits", "image_variations"] as const)("%s", (endpoint) => {
  test("pictures are counted, whatever they hold, with what is said of them", () => {
    const answer = {
      created: 1,
      data: [{ b64_json: 'a\\"],[{}' }, { url: "https://x/1.png" }],
      quality: "high",
      size: "1536x1024",
      usage: { input_tokens: 5, input_tokens_details: { text_tokens: 5 }, output_tokens: 2112, total_tokens: 2117 },
    }
    expect(read(endpoint, answer)).toEqual({
      measured: { images: 2, size: "1536x1024", quality: "high", tokens: tokens(5, 2112) },
      invalid: false,
    })
  })

  test("those that failed are no pictures", () => {
    const answer = { data: [{ url: "u" }, { error: { code: "c" } }], usage: { generated_images: 1 } }
    expect(read(endpoint, answer)).toEqual({ measured: { images: 1 }, invalid: false })
  })

  test("no pictures are none, and not unknown", () => {
    expect(read(endpoint, { data: [] })).toEqual({ measured: { images: 0 }, invalid: false })
  })

  test.each([
    {},
    { data: null },
    { data: { url: "u" } },
    { data: 3 },
    '[{"url":"u"}]',
    '{"data":[{}]',
    "<html>",
    "",
    { images: [1] },
  ])("an answer without pictures is none: %j", (answer) => {
    expect(read(endpoint, answer)).toEqual({ measured: {}, invalid: true })
  })

  test("a usage that is none leaves the pictures counted", () => {
    const answer = { data: [{}], usage: { input_tokens: -1, output_tokens: 5 } }
    expect(read(endpoint, answer)).toEqual({ measured: { images: 1 }, invalid: true })
  })

  test("what stands there twice, or is too long to be read, is doubted", () => {
    expect(read(endpoint, '{"data":[1],"data":[1,2]}')).toEqual({ measured: { images: 1 }, invalid: true })
    const answer = { data: [1], usage: { input_tokens: 1, output_tokens: 1, more: "x".repeat(70_000) } }
    expect(read(endpoint, answer)).toEqual({ measured: { images: 1 }, invalid: true })
  })

  test("an answer that is a picture is one", () => {
    expect(read(endpoint, "\x89PNG", "image/png")).toEqual({ measured: { images: 1 }, invalid: false })
  })
})

describe.each(["transcriptions", "translations"] as const)("%s", (endpoint) => {
  test("tokens", () => {
    const usage = {
      type: "tokens",
      input_tokens: 14,
      input_token_details: { text_tokens: 0, audio_tokens: 14 },
      output_tokens: 101,
      total_tokens: 115,
    }
    expect(read(endpoint, { text: "hi", usage })).toEqual({ measured: { tokens: tokens(14, 101, 14) }, invalid: false })
  })

  test("seconds as billed, before those of the sound", () => {
    const seconds = (answer: object) => read(endpoint, answer)
    const usage = { type: "duration", seconds: 9 }
    expect(seconds({ text: "hi", usage })).toEqual({ measured: { microseconds: 9_000_000 }, invalid: false })
    expect(seconds({ duration: 8.47, usage })).toEqual({ measured: { microseconds: 9_000_000 }, invalid: false })
    expect(seconds({ duration: 8.47 })).toEqual({ measured: { microseconds: 8_470_000 }, invalid: false })
    expect(seconds({ duration: "8.47" })).toEqual({ measured: { microseconds: 8_470_000 }, invalid: false })
  })

  test("tokens and the length of the sound", () => {
    expect(read(endpoint, { duration: 2, usage: { input_tokens: 1, output_tokens: 2 } })).toEqual({
      measured: { tokens: tokens(1, 2), microseconds: 2_000_000 },
      invalid: false,
    })
  })

  test("nothing said is nothing measured", () => {
    for (const answer of [{ text: "hi" }, { usage: null, duration: null }, '"just words"'])
      expect(read(endpoint, answer)).toEqual({ measured: {}, invalid: false })
  })

  test.each([
    { usage: { type: "duration", seconds: "9" } },
    { usage: { type: "duration" } },
    { usage: { type: "tokens", input_tokens: 1.5, output_tokens: 1 } },
    { usage: "much" },
    { duration: -1 },
    { duration: "8 s" },
    { duration: 1e99 },
    '{"usage":{"type":"duration","seconds":1e999}}',
    '{"duration":',
  ])("odd values are not charged by: %j", (answer) => {
    expect(read(endpoint, answer)).toEqual({ measured: {}, invalid: true })
  })

  test("text and subtitles tell nothing but their words", () => {
    for (const type of ["text/plain; charset=utf-8", "text/vtt", "application/x-subrip", ""])
      expect(read(endpoint, '{"duration":5}', type)).toEqual({ measured: {}, invalid: false })
  })

  test.each([
    ["application/json", '{"usage":null,"text":"hello\\nworld"}', "hello\nworld"],
    ["application/json", '{"text":["hello"]}', ""],
    ["application/json", "hello", ""],
    ["text/plain", "hello\nworld\n", "hello\nworld"],
    [
      "text/plain",
      "1\n00:00:00,000 --> 00:00:01,000\nhello\nworld\n\n2\n00:00:01,000 --> 00:00:02,000\nagain\n\n",
      "hello\nworld\nagain",
    ],
    ["text/vtt", "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nhello\n\n", "hello"],
    ["text/plain", "", ""],
  ])("what was said is told for counting: %s %j", (type, answer, words) => {
    const meter = meterFor(endpoint, type)
    for (const byte of utf8(answer)) meter?.push(Uint8Array.of(byte))
    meter?.end()
    expect(meter?.produced?.()).toBe(words)
  })

  test("a transcript longer than anyone speaks is counted no further", () => {
    for (const type of ["text/plain", "application/json"]) {
      const meter = meterFor(endpoint, type)
      const long = "a".repeat(3 * 1024 * 1024)
      meter?.push(utf8(type === "text/plain" ? long : JSON.stringify({ text: long, duration: 3 })))
      expect(meter?.end().invalid).toBeFalse()
      expect(meter?.produced?.()?.length).toBeLessThanOrEqual(1024 * 1024)
    }
    expect(read(endpoint, { duration: 5 }, "Application/JSON; charset=utf-8")?.measured).toEqual({
      microseconds: 5_000_000,
    })
  })
})

test("speech and what is read whole elsewhere have no meter", () => {
  for (const endpoint of ["speech", "embeddings", "rerank", "chat"] as const)
    expect(meterFor(endpoint, "application/json")).toBeNull()
  expect(meterFor("speech", "audio/mpeg")).toBeNull()
})
