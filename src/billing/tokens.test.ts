import { afterAll, describe, expect, test } from "bun:test"
import { utf8 } from "../lib/bytes.ts"
import { workerTokenCounter } from "./tokens.ts"

const counter = workerTokenCounter()
afterAll(() => counter.close())

const empty = utf8('{"messages":[]}')
const outputOf = async (produced: string) => (await counter.count(empty, produced)).output
const inputOf = async (request: unknown) => (await counter.count(utf8(JSON.stringify(request)), "")).input

describe("what was produced", () => {
  test.each([
    ["", 0],
    ["hello world", 2],
    ["hello", 1],
    ["The quick brown fox jumps over the lazy dog.", 10],
  ])("%p", async (text, tokens) => {
    expect(await outputOf(text)).toBe(tokens)
  })

  test("text that spells a special token is plain text", async () => {
    expect(await outputOf("<|endoftext|>")).toBeGreaterThan(1)
    expect(await outputOf("a<|im_start|>b")).toBeGreaterThan(3)
  })

  test("long prose counts as its parts do", async () => {
    const sentence = " The quick brown fox jumps over the lazy dog."
    expect(await outputOf(sentence.repeat(1000))).toBe(1000 * (await outputOf(sentence)))
  })

  test("emoji and letters outside the basic plane are never cut in two", async () => {
    const smile = "👋"
    expect(await outputOf(smile.repeat(4000))).toBeLessThanOrEqual(4000 * (await outputOf(smile)))
  })
})

describe("what was asked", () => {
  test("three tokens open the answer, three go with each message, and its role and text count", async () => {
    const opening = await inputOf({ messages: [] })
    expect(opening).toBe(3)
    const one = await inputOf({ messages: [{ role: "user", content: "hello world" }] })
    expect(one).toBe(opening + 3 + (await outputOf("user\nhello world")))
    const twice = { role: "user", content: "hello world" }
    expect(await inputOf({ messages: [twice, twice] })).toBe(2 * one - opening)
  })

  test("text parts count as text, images by nothing", async () => {
    const text = [{ type: "text", text: "hello world" }]
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(100_000)}` } }
    const plain = await inputOf({ messages: [{ role: "user", content: "hello world" }] })
    expect(await inputOf({ messages: [{ role: "user", content: text }] })).toBe(plain)
    expect(await inputOf({ messages: [{ role: "user", content: [...text, image] }] })).toBe(plain)
  })

  test("tools and repeated tool calls count", async () => {
    const bare = await inputOf({ messages: [{ role: "assistant" }] })
    const call = { role: "assistant", tool_calls: [{ function: { name: "look", arguments: "{}" } }] }
    expect(await inputOf({ messages: [call] })).toBeGreaterThan(bare)
    const tools = [{ type: "function", function: { name: "look" } }]
    expect(await inputOf({ messages: [], tools })).toBe(3 + (await outputOf(JSON.stringify(tools))))
  })

  test("odd shapes are counted as far as they can be read", async () => {
    for (const odd of [{}, { messages: null }, { messages: "text" }]) expect(await inputOf(odd)).toBe(3)
    expect(await inputOf({ messages: [null, 3, { role: 5, content: 7 }] })).toBe(3 + 3 * 3)
  })
})

test("a body that is no JSON is counted as text, and the next caller gets an exact count", async () => {
  const broken = await counter.count(utf8("hello world"), "hello world")
  expect(broken).toEqual({ input: 2, cachedInput: 0, cacheWrite: 0, output: 2, reasoning: 0 })
  expect(await outputOf("hello world")).toBe(2)
})

test("many at once get each its own count", async () => {
  const texts = Array.from({ length: 50 }, (_, index) => " hello".repeat(index))
  expect(await Promise.all(texts.map(outputOf))).toEqual(texts.map((_, index) => index))
})

test("a long text is counted aside: timers of the main thread go on", async () => {
  let ticks = 0
  const ticking = setInterval(() => ticks++, 5)
  await outputOf("The quick brown fox, jumping. ".repeat(200_000))
  clearInterval(ticking)
  // A count on the main thread would let no timer run at all.
  expect(ticks).toBeGreaterThanOrEqual(3)
})

test("a long run without gaps is counted, not given up", async () => {
  expect(await outputOf("a".repeat(100_000))).toBe(12_500)
})

test("closed while it counts: the caller gets a rough count, and later texts a new worker", async () => {
  const own = workerTokenCounter()
  const counted = own.count(empty, "hello world")
  own.close()
  // Four bytes a token.
  expect(await counted).toMatchObject({ input: 4, output: 3 })
  expect((await own.count(empty, "hello world")).output).toBe(2)
  own.close()
})
