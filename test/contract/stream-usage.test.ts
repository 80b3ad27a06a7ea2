import { afterAll, afterEach, describe, expect, test } from "bun:test"
import OpenAI from "openai"
import { chunksOf, dataOf, usageChunksOf } from "../support/sse-events.ts"
import {
  delta,
  done,
  event,
  facts,
  finish,
  hello,
  read,
  reported,
  role,
  usageChunk,
  world,
} from "../support/stream-pieces.ts"
import { expectCounted, expectReported, startStreamScene } from "./stream-scene.ts"

const { simulator, vendor, gateway, ask, stream, stop } = await startStreamScene()
afterEach(() => vendor.reset())
afterAll(stop)

/** What a caller gets where the usage chunk had to be made here. */
const made = usageChunk(reported)

describe("exactly one usage chunk, the last thing before [DONE]", () => {
  test("reported as it should be: not a byte changes", async () => {
    const received = await stream(role, hello, world, finish(), usageChunk(reported), done)
    expect(received.text).toBe(role + hello + world + finish() + usageChunk(reported) + done)
    expectReported(received)
  })

  test("none: counted here, marked estimated, told under the stream's own id", async () => {
    expectCounted(await stream(role, hello, world, finish(), done), role + hello + world + finish())
  })

  test("none, and the count grows with what was produced", async () => {
    const long = delta({ content: "word ".repeat(300) })
    const short = await stream(hello, finish(), done)
    vendor.reset()
    const longer = await stream(hello, long, finish(), done)
    expect(longer.story.usage!.output).toBeGreaterThan(short.story.usage!.output + 200)
    expect(longer.story.usage!.input).toBe(short.story.usage!.input)
  })

  test("null is none", async () => {
    const received = await stream(hello, finish({ usage: null }), usageChunk(null), done)
    expect(received.story.estimated).toBe(true)
    expect(usageChunksOf(received.text)).toHaveLength(1)
    expect(received.text.startsWith(hello + finish({ usage: null }))).toBe(true)
  })

  test("in the finish chunk: it stays there, and the usual chunk is added", async () => {
    const last = finish({ usage: reported })
    const received = await stream(hello, last, done)
    expect(received.text).toBe(hello + last + made + done)
    expectReported(received)
  })

  test("in every chunk, growing: the last one counts", async () => {
    const growing = [1, 5].map((completion_tokens) =>
      delta({ content: "x" }, { usage: { ...reported, completion_tokens } }),
    )
    const last = finish({ usage: reported })
    const received = await stream(...growing, last, done)
    expect(received.text).toBe(growing.join("") + last + made + done)
    expectReported(received)
  })

  test("twice: the last one, once", async () => {
    const first = usageChunk({ prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 })
    const received = await stream(hello, finish(), first, usageChunk(reported), done)
    expect(received.text).toBe(hello + finish() + usageChunk(reported) + done)
    expectReported(received)
  })

  test("before the rest of the answer: held back to the end", async () => {
    const received = await stream(hello, usageChunk(reported), world, finish(), done)
    expect(received.text).toBe(hello + world + finish() + usageChunk(reported) + done)
    expectReported(received)
  })

  const misshapen: Record<string, string> = {
    "without an id": event({ ...facts, id: undefined, choices: [], usage: reported }),
    "with an empty id": usageChunk(reported, { id: "" }),
    "with another id": usageChunk(reported, { id: "chatcmpl-2" }),
    "without choices": event({ ...facts, choices: undefined, usage: reported }),
    "with choices null": usageChunk(reported, { choices: null }),
    "with nothing but usage": event({ usage: reported }),
  }
  for (const [name, chunk] of Object.entries(misshapen)) {
    test(`${name}: one in the usual form takes its place`, async () => {
      const received = await stream(hello, finish(), chunk, done)
      expect(received.text).toBe(hello + finish() + made + done)
      expectReported(received)
    })
  }

  test("details of the reported usage survive where the chunk is made anew", async () => {
    const detailed = { ...reported, prompt_tokens_details: { cached_tokens: 4 }, cost: 0.5, x: [1.5] }
    const received = await stream(hello, finish({ usage: detailed }), done)
    expect(usageChunksOf(received.text)).toEqual([{ ...facts, choices: [], usage: detailed }])
    expect(received.story.usage).toEqual({ ...read, cachedInput: 4 })
  })

  test("after [DONE]: ignored, like everything else that comes then", async () => {
    const late = usageChunk({ prompt_tokens: 900, completion_tokens: 900, total_tokens: 1800 })
    const received = await stream(hello, finish(), usageChunk(reported), done, late, hello, done)
    expect(received.text).toBe(hello + finish() + usageChunk(reported) + done)
    expectReported(received)
  })

  test("after [DONE] in the same write: ignored too", async () => {
    const late = usageChunk({ prompt_tokens: 900, completion_tokens: 900, total_tokens: 1800 })
    const received = await stream(hello + finish() + usageChunk(reported) + done + late + done)
    expect(received.text).toBe(hello + finish() + usageChunk(reported) + done)
    expectReported(received)
  })

  test("zero is zero and not a reason to count", async () => {
    const zero = usageChunk({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 })
    const received = await stream(hello, finish(), zero, done)
    expect(received.text).toBe(hello + finish() + zero + done)
    expect(received.story.usage).toEqual({ ...read, input: 0, output: 0 })
    expect(received.story.estimated).toBe(false)
  })

  test("odd numbers never become a negative or a broken count, and the stream goes on", async () => {
    for (const odd of [-5, 1.5, "12", 1e30, null, [3], { a: 1 }]) {
      vendor.reset()
      const chunk = usageChunk({ prompt_tokens: odd, completion_tokens: odd, total_tokens: odd })
      const { text, story } = await stream(hello, finish(), chunk, done)
      expect(dataOf(text).at(-1)).toBe("[DONE]")
      for (const count of Object.values(story.usage!)) {
        expect(Number.isSafeInteger(count)).toBe(true)
        expect(count).toBeGreaterThanOrEqual(0)
      }
    }
  })

  test("comments around it stay where they are", async () => {
    const comment = ": keep-alive\n\n"
    const received = await stream(hello, finish(), comment, usageChunk(reported), comment, comment, done)
    expect(received.text).toBe(hello + finish() + comment + usageChunk(reported) + comment + comment + done)
    expectReported(received)
  })
})

describe("a stream that is complete but not well ended", () => {
  test("no [DONE] and no usage: both are added", async () => {
    expectCounted(await stream(hello, finish()), hello + finish())
  })

  test("no [DONE] after the usage chunk: it is added", async () => {
    const received = await stream(hello, finish(), usageChunk(reported))
    expect(received.text).toBe(hello + finish() + usageChunk(reported) + done)
    expectReported(received)
  })

  test("the usage chunk has no blank line after it", async () => {
    for (const tail of ["", "\n", "\r\n"]) {
      vendor.reset()
      const received = await stream(hello, finish(), usageChunk(reported).trimEnd() + tail)
      expect(chunksOf(received.text)).toEqual(chunksOf(hello + finish() + usageChunk(reported)))
      expect(dataOf(received.text).at(-1)).toBe("[DONE]")
      expectReported(received)
    }
  })

  test("[DONE] has no line end at all", async () => {
    for (const framing of ["chunked", "close", "content-length"] as const) {
      vendor.reset()
      vendor.behave({ kind: "stream", frames: [hello, finish(), usageChunk(reported), "data: [DONE]"], framing })
      const received = await ask()
      expect(received.text).toBe(hello + finish() + usageChunk(reported) + done)
      expectReported(received)
    }
  })

  test("the finish has no blank line after it", async () => {
    expectCounted(await stream(hello, finish().trimEnd()), hello + finish())
  })

  test("an upstream that keeps the connection open after [DONE] does not keep the caller waiting", async () => {
    vendor.behave({ kind: "stream", frames: [hello, finish(), usageChunk(reported), done], end: "stall" })
    const received = await ask()
    expect(received.text).toBe(hello + finish() + usageChunk(reported) + done)
    expectReported(received)
  })

  test("an upstream that resets after [DONE] or after the finish has still answered", async () => {
    for (const frames of [
      [hello, finish(), usageChunk(reported), done],
      [hello, finish(), usageChunk(reported)],
    ]) {
      vendor.reset()
      // A reset may take the bytes directly before it with it, so those are bytes of no matter.
      const comment = ": bye\n\n"
      vendor.behave({ kind: "stream", frames: [...frames, comment], gapMs: 30, end: "rst" })
      const received = await ask()
      expect(received.text.replace(comment, "")).toBe(hello + finish() + usageChunk(reported) + done)
      expectReported(received)
    }
  })
})

test("an official client reads the usage and the text of a stream that had to be completed", async () => {
  vendor.behave({ kind: "stream", frames: [role, hello, world, finish()] })
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })
  let text = ""
  const usages: (number | undefined)[] = []
  const answer = await client.chat.completions.create({
    model: "m",
    stream: true,
    messages: [{ role: "user", content: "Say hello" }],
  })
  for await (const chunk of answer) {
    text += chunk.choices[0]?.delta.content ?? ""
    if (chunk.usage) usages.push(chunk.usage.completion_tokens)
  }
  expect(text).toBe("Hello world")
  expect(usages).toHaveLength(1)
  expect(usages[0]).toBeGreaterThan(0)
})

test("nothing in this file was an internal error", () => {
  expect(gateway.complaints).toEqual([])
  expect(simulator.complaints).toEqual([])
})
