import { afterAll, describe, expect, test } from "bun:test"
import { type Endpoint, endpoints } from "../core/endpoints.ts"
import { type Tokenizer, tokenizers } from "../core/tokenizer.ts"
import { mebibyte, utf8 } from "../lib/bytes.ts"
import { Pieces } from "../lib/pieces.ts"
import { type CountAsk, workerTokenCounter } from "./tokens.ts"

const counter = workerTokenCounter()
afterAll(() => counter.close())

const nothing: CountAsk = { endpoint: "chat", requestBody: utf8("{}"), produced: "", tokenizer: "o200k_base" }
const outputOf = async (produced: string, tokenizer: Tokenizer = "o200k_base") =>
  (await counter.count({ ...nothing, produced, tokenizer })).output
const inputOf = async (request: unknown, endpoint: Endpoint = "chat") =>
  (await counter.count({ ...nothing, endpoint, requestBody: utf8(JSON.stringify(request)) })).input

/** The address of a worker that does what is told here. */
const workerThat = (does: string) => URL.createObjectURL(new Blob([does], { type: "text/javascript" }))

describe("what was produced", () => {
  test.each([
    ["", 0],
    ["hello world", 2],
    ["hello", 1],
    ["The quick brown fox jumps over the lazy dog.", 10],
  ])("%p", async (text, tokens) => {
    expect(await outputOf(text)).toBe(tokens)
  })

  test("each tokenizer counts by its own vocabulary", async () => {
    const text = "お誕生日おめでとう"
    expect([await outputOf(text, "o200k_base"), await outputOf(text, "cl100k_base")]).toEqual([8, 9])
  })

  test.each(tokenizers)("text that spells a special token is plain text (%s)", async (tokenizer) => {
    expect(await outputOf("<|endoftext|>", tokenizer)).toBeGreaterThan(1)
    expect(await outputOf("a<|im_start|>b", tokenizer)).toBeGreaterThan(3)
  })

  test("long prose counts as its parts do, exactly or in proportion", async () => {
    const sentence = " The quick brown fox jumps over the lazy dog."
    const tokens = await outputOf(sentence)
    expect(await outputOf(sentence.repeat(1000))).toBe(1000 * tokens)
    const long = await outputOf(sentence.repeat(100_000))
    expect(long / (100_000 * tokens)).toBeWithin(0.999, 1.001)
  })

  test("emoji and letters outside the basic plane are never cut in two", async () => {
    const smile = "👋"
    expect(await outputOf(smile.repeat(4000))).toBeLessThanOrEqual(4000 * (await outputOf(smile)))
  })

  test("a long run without gaps is counted, not given up", async () => {
    expect(await outputOf("a".repeat(100_000))).toBe(12_500)
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

  test("pictures count nothing", async () => {
    const text = { type: "text", text: "hello world" }
    const picture = { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(100_000)}` } }
    const plain = await inputOf({ messages: [{ role: "user", content: [text] }] })
    expect(await inputOf({ messages: [{ role: "user", content: [text, picture] }] })).toBe(plain)
  })

  test("tools count as the JSON they are", async () => {
    const tools = [{ type: "function", function: { name: "look" } }]
    expect(await inputOf({ messages: [], tools })).toBe(3 + (await outputOf(JSON.stringify(tools))))
  })

  const asked: readonly (readonly [Endpoint, unknown, number])[] = [
    ["responses", { instructions: "hello", input: "world" }, 3 + 3 + 1 + 3 + 3],
    ["messages", { system: "hello", messages: [{ role: "user", content: "world" }] }, 3 + 3 + 1 + 3 + 3],
    ["embeddings", { input: ["hello world", "hello"] }, 3],
    ["embeddings", { input: [[1, 2, 3], [4]] }, 4],
    ["rerank", { query: "hello", documents: ["hello world", { text: "hello" }] }, 4],
    ["image_generations", { prompt: "hello world" }, 2],
    ["image_edits", { prompt: "hello world" }, 2],
    ["speech", { input: "hello world" }, 2],
    ["transcriptions", { prompt: "hello world" }, 2],
  ]
  test.each(asked)("%s: %j", async (endpoint, request, tokens) => {
    expect(await inputOf(request, endpoint)).toBe(tokens)
  })

  test.each(endpoints)("a form's body is not given, and counts nothing: %s", async (endpoint) => {
    expect((await counter.count({ ...nothing, endpoint, requestBody: new Uint8Array() })).input).toBe(0)
  })

  test("the caller's bytes stay the caller's, and only they are counted", async () => {
    const around = utf8(`xxxx${JSON.stringify({ input: "hello world" })}xxxx`)
    const ask: CountAsk = { ...nothing, endpoint: "speech", requestBody: around.subarray(4, -4) }
    expect(await counter.count(ask)).toMatchObject({ input: 2 })
    expect(ask.requestBody).toHaveLength(around.length - 8)
  })
})

test("a body that is no JSON is counted as text, and the next caller gets an exact count", async () => {
  const broken = await counter.count({ ...nothing, requestBody: utf8("hello world"), produced: "hello world" })
  expect(broken).toEqual({
    input: 2,
    cachedInput: 0,
    cacheWrite: 0,
    audioInput: 0,
    output: 2,
    reasoning: 0,
    audioOutput: 0,
  })
  expect(await outputOf("hello world")).toBe(2)
})

test("many at once get each its own count", async () => {
  const texts = Array.from({ length: 50 }, (_, index) => " hello".repeat(index))
  expect(await Promise.all(texts.map((text) => outputOf(text)))).toEqual(texts.map((_, index) => index))
})

test("a long text is counted aside: timers of the main thread go on", async () => {
  let ticks = 0
  const ticking = setInterval(() => ticks++, 5)
  await outputOf("The quick brown fox, jumping. ".repeat(200_000))
  clearInterval(ticking)
  // A count on the main thread would let no timer run at all.
  expect(ticks).toBeGreaterThanOrEqual(3)
})

describe("what is too large to be handed over is counted roughly", () => {
  const hello = "hello world ".repeat(mebibyte)

  test("a prompt, while the answer to it is still counted exactly", async () => {
    const requestBody = utf8(JSON.stringify({ messages: [{ role: "user", content: hello }] }))
    const usage = await counter.count({ ...nothing, requestBody, produced: "hello world" })
    expect(usage).toMatchObject({ input: Math.ceil(requestBody.length / 4), output: 2 })
  })

  test("an answer, while the prompt is still counted exactly", async () => {
    const requestBody = utf8(JSON.stringify({ messages: [] }))
    const usage = await counter.count({ ...nothing, requestBody, produced: hello })
    expect(usage).toMatchObject({ input: 3, output: hello.length / 4 })
  })

  test("pictures in it count nothing", async () => {
    const picture = "A".repeat(9 * mebibyte)
    const requestBody = utf8(JSON.stringify({ messages: [{ role: "user", content: [{ image_url: picture }] }] }))
    expect((await counter.count({ ...nothing, requestBody })).input).toBeLessThan(30)
  })
})

describe("four bytes a token stand in", () => {
  const hello: CountAsk = { ...nothing, requestBody: utf8('{"messages":[]}'), produced: "hello world" }
  const rough = { input: 4, output: 3 }

  test("where it is closed while it counts; later texts get a new worker", async () => {
    const own = workerTokenCounter()
    const counted = [own.count(hello), own.count(hello)]
    own.close()
    for (const usage of await Promise.all(counted)) expect(usage).toMatchObject(rough)
    expect(await own.count(hello)).toMatchObject({ input: 3, output: 2 })
    own.close()
  })

  test.each(endpoints)("where nothing was heard in time: %s", async (endpoint) => {
    const own = workerTokenCounter(workerThat("self.onmessage = () => {}"), 20)
    expect(await own.count({ ...hello, endpoint })).toMatchObject(rough)
    own.close()
  })

  test("where others keep the worker busy: nobody waits for their turn longer than for a count", async () => {
    const own = workerTokenCounter(workerThat("self.onmessage = () => {}"), 200)
    const usages = await Promise.all(Array.from({ length: 30 }, () => own.count(hello)))
    // One after the other, they would take longer than a test may.
    for (const usage of usages) expect(usage).toMatchObject(rough)
    own.close()
  })

  test("where a worker fails, for the text that it had; the others go to a new one", async () => {
    const failing = workerThat(`self.onmessage = ({ data }) => {
      if (data.produced !== "") throw new Error("cannot count")
      self.postMessage({ id: data.id, input: 70, output: 80 })
    }`)
    const own = workerTokenCounter(failing)
    const usages = await Promise.all([own.count(hello), own.count(nothing), own.count(hello), own.count(nothing)])
    const counted = { input: 70, output: 80 }
    expect(usages).toMatchObject([rough, counted, rough, counted])
    own.close()
  })

  test("where a worker is stuck, which is then replaced", async () => {
    const sometimes = workerThat(`self.onmessage = ({ data }) => {
      if (data.produced === "") self.postMessage({ id: data.id, input: 70, output: 80 })
    }`)
    const own = workerTokenCounter(sometimes, 50)
    expect(await own.count(hello)).toMatchObject(rough)
    let usage = await own.count(nothing)
    while (usage.input !== 70) usage = await own.count(nothing)
    expect(usage.output).toBe(80)
    own.close()
  })
})

test("a large body that came in pieces is counted roughly, as the same bytes in one are, and is not joined", async () => {
  const text = utf8(JSON.stringify({ messages: [{ role: "user", content: "word ".repeat(2_000_000) }] }))
  const pieces = new Pieces([text.subarray(0, 4_000_000), text.subarray(4_000_000)])
  pieces.whole = () => {
    throw new Error("it was joined")
  }
  const whole = await counter.count({ ...nothing, requestBody: text })
  const inPieces = await counter.count({ ...nothing, requestBody: pieces })
  expect(Math.abs(inPieces.input - whole.input)).toBeLessThanOrEqual(1)
})
