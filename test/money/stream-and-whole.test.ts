import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import type { UpstreamConfig } from "../../src/config/document.ts"
import { expectCharged, openShop } from "../support/books.ts"
import { stopWithoutComplaint } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

/** One conversation: 45 tokens read, 30 of them from the cache and 5 written to it, 8 made, 3 of them to think. */
const price = { input: "3", cached_input: "0.3", cache_write: "3.75", output: "15" }
const due = 10n * 3000n + 30n * 300n + 5n * 3750n + 8n * 15_000n
const tokens = { input: 45, cachedInput: 30, cacheWrite: 5, audioInput: 0, output: 8, reasoning: 3, audioOutput: 0 }

const chatUsage = {
  prompt_tokens: 45,
  completion_tokens: 8,
  total_tokens: 53,
  prompt_tokens_details: { cached_tokens: 30, cache_write_tokens: 5 },
  completion_tokens_details: { reasoning_tokens: 3 },
}
const responsesUsage = {
  input_tokens: 45,
  input_tokens_details: { cached_tokens: 30, cache_write_tokens: 5 },
  output_tokens: 8,
  output_tokens_details: { reasoning_tokens: 3 },
  total_tokens: 53,
}
/** Cached tokens stand beside the input here, not inside. */
const messagesUsage = {
  input_tokens: 10,
  cache_read_input_tokens: 30,
  cache_creation_input_tokens: 5,
  output_tokens: 8,
  output_tokens_details: { thinking_tokens: 3 },
}

interface Way {
  readonly upstream: Partial<UpstreamConfig>
  readonly path: string
  readonly asked: object
  readonly step: Behaviour
  /** How the same step is answered in one piece where the endpoint always streams. */
  readonly whole?: Behaviour
}

const chat = { path: "/v1/chat/completions", asked: { messages: [{ role: "user", content: "Say hello" }] } }
const responses = { path: "/v1/responses", asked: { input: "Say hello" } }
const ways: Record<string, Way> = {
  "chat, native": { upstream: {}, ...chat, step: { kind: "chat", usage: chatUsage } },
  "chat over messages": {
    upstream: { vendor: "anthropic" },
    ...chat,
    step: { kind: "messages", usage: messagesUsage },
  },
  "responses, native": {
    upstream: { vendor: "openai" },
    ...responses,
    step: { kind: "responses", usage: responsesUsage },
    whole: { kind: "responses", usage: responsesUsage, ignoresStream: true },
  },
  "responses over chat": {
    upstream: { vendor: "deepseek" },
    ...responses,
    step: { kind: "chat", usage: chatUsage },
    whole: { kind: "chat", usage: chatUsage, ignoresStream: true },
  },
}

describe("a conversation costs the same streamed and not streamed", () => {
  for (const [name, { upstream, path, asked, step, whole }] of Object.entries(ways)) {
    test(name, async () => {
      await using shop = await openShop(simulator, { price, upstreams: { a: upstream } })
      shop.vendor("a").behave(step)
      const streamed = await shop.ask(path, { ...asked, stream: true })
      shop.vendor("a").behave(whole ?? step)
      const answered = await shop.ask(path, { ...asked, stream: false })
      for (const answer of [streamed, answered]) {
        expect(answer.status).toBe(200)
        const line = await expectCharged(shop, answer, due)
        expect(line).toMatchObject({ estimated: false, usageInvalid: false })
        expect(line.measured).toMatchObject({ model: "m", upstream: "a", measured: { tokens } })
        expect(line.price).toEqual({ version: expect.any(Number), multiplier: "1", units: price })
      }
      expect(await shop.charges()).toHaveLength(2)
    })
  }

  test("in usage told with the last word, twice, and on the finishing chunk", async () => {
    await using shop = await openShop(simulator, { price })
    for (const usage of ["in_finish", "twice", undefined] as const) {
      const step = usage === undefined ? {} : { usage }
      shop.vendor("a").behave({ kind: "chat", cachedTokens: 4, text: "Hello there", ...step })
      const streamed = await shop.chat({ stream: true })
      shop.vendor("a").behave({ kind: "chat", cachedTokens: 4, text: "Hello there" })
      const answered = await shop.chat()
      expect(streamed.story.charge).toBeGreaterThan(0n)
      expect(streamed.story.charge).toBe(answered.story.charge)
      expect(streamed.story.usage).toEqual(answered.story.usage)
      expect(streamed.story.usage).toMatchObject({ cachedInput: 4 })
    }
  })

  test("where the vendor says nothing and the tokens are counted", async () => {
    for (const [name, { upstream, path, asked, step, whole }] of Object.entries(ways)) {
      await using shop = await openShop(simulator, { price, upstreams: { a: upstream } })
      const said = { usage: "none", text: "Hello to the whole wide world" } as const
      shop.vendor("a").behave({ ...step, ...said } as Behaviour)
      const streamed = await shop.ask(path, { ...asked, stream: true })
      shop.vendor("a").behave({ ...(whole ?? step), ...said } as Behaviour)
      const answered = await shop.ask(path, { ...asked, stream: false })
      expect({ name, charge: streamed.story.charge }).toEqual({ name, charge: answered.story.charge })
      expect(streamed.story.charge).toBe(BigInt(streamed.story.usage!.input * 3000 + 6 * 15_000))
      for (const answer of [streamed, answered]) {
        const line = await expectCharged(shop, answer, streamed.story.charge)
        expect(line).toMatchObject({ estimated: true, usageInvalid: false })
      }
    }
  })
})
