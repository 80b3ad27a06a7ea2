import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import type { UpstreamConfig } from "../../src/config/document.ts"
import type { JsonObject, JsonValue } from "../../src/core/json.ts"
import { expectCharged, openShop, type Shop } from "../support/books.ts"
import { form, formType, postTo } from "../support/endpoints.ts"
import { wavFile } from "../support/media-files.ts"
import { type Answer, dataOf, messages, readAnswer, stopWithoutComplaint } from "../support/scene.ts"

setDefaultTimeout(60_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

/** What vendors have been seen to write where a count should stand. */
const oddities: Record<string, JsonValue> = {
  text: "17",
  "a fraction": 17.5,
  "below zero": -17,
  "absurdly large": 1e30,
  null: null,
  true: true,
  "an object": { value: 17 },
  "a list": [17],
}

interface Way {
  readonly upstream?: Partial<UpstreamConfig>
  /** The names of what was read and what was made. */
  readonly input: string
  readonly output: string
  readonly kind: "chat" | "messages" | "responses" | "embeddings" | "transcription"
  ask(shop: Shop): Promise<Answer>
  /** What is counted in its place. */
  readonly counted: { readonly input: number; readonly output: number }
  readonly ignoresStream?: true
}

const said = "Hello to the whole wide world"
const spoken = 6
const chatPath = "/v1/chat/completions"
/** "user", a line end, "Say" and "hello", three for the message and three for the opening. */
const promptTokens = 10
const chatTokens = { input: promptTokens, output: spoken }
const chat = { input: "prompt_tokens", output: "completion_tokens", counted: chatTokens } as const
const other = { input: "input_tokens", output: "output_tokens", counted: chatTokens } as const
const upload = (fields: Readonly<Record<string, string>>) => async (shop: Shop) => {
  const parts = Object.entries({ model: "m", ...fields }).map(([name, value]) => ({ name, value }))
  const bytes = form([...parts, { name: "file", filename: "some.wav", value: wavFile(2) }])
  return readAnswer(shop.gateway, await postTo(shop.gateway, "/v1/audio/transcriptions", { type: formType, bytes }))
}
const heard = { kind: "transcription", ...other, counted: { input: 20, output: spoken } } as const

const ways: Record<string, Way> = {
  chat: { kind: "chat", ...chat, ask: (shop) => shop.ask(chatPath, { messages }) },
  "chat, streamed": { kind: "chat", ...chat, ask: (shop) => shop.ask(chatPath, { messages, stream: true }) },
  messages: {
    kind: "messages",
    upstream: { vendor: "anthropic" },
    ...other,
    ask: (shop) => shop.ask(chatPath, { messages }),
  },
  "messages, streamed": {
    kind: "messages",
    upstream: { vendor: "anthropic" },
    ...other,
    ask: (shop) => shop.ask(chatPath, { messages, stream: true }),
  },
  "responses, streamed": {
    kind: "responses",
    upstream: { vendor: "openai" },
    ...other,
    ask: (shop) => shop.ask("/v1/responses", { input: "Say hello" }),
  },
  "responses, told as one": {
    kind: "responses",
    upstream: { vendor: "openai" },
    ...other,
    ignoresStream: true,
    ask: (shop) => shop.ask("/v1/responses", { input: "Say hello" }),
  },
  "responses over chat": {
    kind: "chat",
    upstream: { vendor: "deepseek" },
    ...chat,
    ask: (shop) => shop.ask("/v1/responses", { input: "Say hello" }),
  },
  embeddings: {
    kind: "embeddings",
    ...chat,
    counted: { input: 2, output: 0 },
    ask: (shop) => shop.ask("/v1/embeddings", { input: "Say hello", dimensions: 4 }),
  },
  "a transcript": { ...heard, ask: upload({}) },
  "a transcript, streamed": { ...heard, ask: upload({ stream: "true" }) },
}

const price = { input: "1", output: "10" }

function stepOf({ kind, ignoresStream }: Way, usage: JsonObject): Behaviour {
  const words = kind === "embeddings" ? {} : { text: said }
  return { kind, usage, ...words, ...(ignoresStream ? { ignoresStream } : {}) } as Behaviour
}

describe.each(Object.entries(ways))("a usage that cannot be charged by: %s", (name, way) => {
  const { input, output, counted, upstream = {} } = way
  const due = BigInt(counted.input * 1000 + counted.output * 10_000)
  const usages: [what: string, usage: JsonObject][] = Object.entries(oddities).flatMap(([what, odd]) => [
    [`${what} for the input`, { [input]: odd, [output]: 5, total_tokens: odd }],
    ...(way.kind === "embeddings" ? [] : [[`${what} for the output`, { [input]: 5, [output]: odd }] as const]),
  ]) as [string, JsonObject][]
  if (way.kind !== "embeddings") usages.push(["a part is missing", { [input]: 5 }], ["both are missing", { other: 1 }])
  usages.push(["it is nested", { usage: { [input]: 5, [output]: 5 } }])

  test("the tokens are counted, and the line says so; the client gets its answer", async () => {
    await using shop = await openShop(simulator, { price, upstreams: { a: upstream } })
    for (const [what, usage] of usages) {
      shop.vendor("a").behave(stepOf(way, usage))
      const answer = await way.ask(shop)
      const { row, lines } = await shop.entryOf(answer)
      expect({ what, status: answer.status, ending: row.ending, amounts: lines.map(({ amount }) => amount) }).toEqual({
        what,
        status: 200,
        ending: "completed",
        amounts: [-due],
      })
      expect({ what, marks: { estimated: row.estimated, usageInvalid: row.usageInvalid } }).toEqual({
        what,
        marks: { estimated: true, usageInvalid: !isNothing(name, what) },
      })
      expect(row.measured.tokens).toMatchObject(counted)
      await expectCharged(shop, answer, due)
      expectUnharmed(name, answer)
    }
    expect(await shop.charges()).toHaveLength(usages.length)
  })
})

/** What says nothing at all is not odd: a usage of sounds that names no tokens, and an event that leaves a count open. */
function isNothing(name: string, what: string): boolean {
  const saysNothing = what === "both are missing" || what === "it is nested"
  if (name === "messages, streamed")
    return saysNothing || what === "null for the output" || what === "a part is missing"
  return saysNothing && name.startsWith("a transcript")
}

/** What the client reads is a whole answer of its dialect. */
function expectUnharmed(name: string, { text }: Answer) {
  if (name === "embeddings") return expect(JSON.parse(text).data).toHaveLength(1)
  if (name === "a transcript") return expect(JSON.parse(text).text).toBe(said)
  if (name.startsWith("responses")) return expect(text).toContain("event: response.completed")
  if (name === "a transcript, streamed") return expect(text).toContain("transcript.text.done")
  if (!name.endsWith("streamed")) return expect(JSON.parse(text).choices[0].message.content).toBe(said)
  const events = dataOf(text)
  expect(events.at(-1)).toBe("[DONE]")
  const told = events.slice(0, -1).map((data) => JSON.parse(data))
  expect(told.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe(said)
  // Exactly one usage is told, and it is the one that was charged.
  const usages = told.flatMap(({ usage }) => (usage ? [usage] : []))
  expect(usages).toEqual([expect.objectContaining({ prompt_tokens: promptTokens, completion_tokens: spoken })])
}

describe("odd parts of a usage that is otherwise whole", () => {
  test.each([
    [{ prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 11 } }],
    [{ prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: "3" } }],
    [{ prompt_tokens: 10, completion_tokens: 5, completion_tokens_details: { reasoning_tokens: -1 } }],
  ])("%j is doubted as a whole", async (usage) => {
    await using shop = await openShop(simulator, { price })
    for (const stream of [false, true]) {
      shop.vendor("a").behave({ kind: "chat", usage, text: said })
      const answer = await shop.ask(chatPath, { messages, stream })
      const line = await expectCharged(shop, answer, 70_000n)
      expect(line).toMatchObject({ estimated: true, usageInvalid: true })
    }
  })
})

test("odd lengths of sound give way to the length of the upload", async () => {
  await using shop = await openShop(simulator, { price: { second: "0.001" } })
  for (const seconds of ["5", -1, 1e30, null, [5]]) {
    shop.vendor("a").behave({ kind: "transcription", usage: { type: "duration", seconds } })
    const line = await expectCharged(shop, await upload({})(shop), 2_000_000n)
    expect(line).toMatchObject({ estimated: true, usageInvalid: true })
  }
})
