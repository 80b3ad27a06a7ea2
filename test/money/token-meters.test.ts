import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { expectCharged, expectNotCharged, openShop } from "../support/books.ts"
import { stopWithoutComplaint } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

describe("embeddings", () => {
  const price = { input: "0.02" }

  test("cost the tokens that the vendor reports", async () => {
    await using shop = await openShop(simulator, { price })
    shop.vendor("a").behave({ kind: "embeddings", usage: { prompt_tokens: 1234, total_tokens: 1234 } })
    const answer = await shop.ask("/v1/embeddings", { input: ["one", "two"], dimensions: 4 })
    const line = await expectCharged(shop, answer, 24_680n)
    expect(line).toMatchObject({ estimated: false, measured: { endpoint: "embeddings", measured: { images: null } } })
    expect(line.price!.units).toEqual({ input: "0.02" })
  })

  test("cost the total where that is all the vendor tells", async () => {
    await using shop = await openShop(simulator, { price })
    shop.vendor("a").behave({ kind: "embeddings", usage: { total_tokens: 50 } })
    const answer = await shop.ask("/v1/embeddings", { input: "one", dimensions: 4 })
    await expectCharged(shop, answer, 1000n)
  })

  test("are counted, and marked as estimated, where the vendor reports nothing", async () => {
    await using shop = await openShop(simulator, { price })
    shop.vendor("a").behave({ kind: "embeddings", usage: "none" })
    const texts = await shop.ask("/v1/embeddings", { input: ["hello world", "hello"], dimensions: 4 })
    expect(await expectCharged(shop, texts, 3n * 20n)).toMatchObject({ estimated: true, usageInvalid: false })
    const tokens = await shop.ask("/v1/embeddings", { input: [[1, 2, 3, 4]], dimensions: 4 })
    expect(await expectCharged(shop, tokens, 4n * 20n)).toMatchObject({ estimated: true })
  })
})

describe("reranking", () => {
  const asked = { query: "one", documents: ["one", "two"] }

  test("by search units, which are the vendor's requests", async () => {
    await using shop = await openShop(simulator, { price: { request: "0.002" } })
    shop.vendor("a").behave({ kind: "rerank", style: "cohere", searchUnits: 3 })
    const line = await expectCharged(shop, await shop.ask("/v1/rerank", asked), 6_000_000n)
    expect(line).toMatchObject({ estimated: false, measured: { measured: { searchUnits: 3 } } })
  })

  test("by tokens, where the price is by tokens", async () => {
    await using shop = await openShop(simulator, { price: { input: "0.05" } })
    shop.vendor("a").behave({ kind: "rerank", style: "jina", usage: { total_tokens: 40, prompt_tokens: 40 } })
    await expectCharged(shop, await shop.ask("/v1/rerank", asked), 2000n)
    shop.vendor("a").behave({ kind: "rerank", style: "voyage", usage: { total_tokens: 60 } })
    await expectCharged(shop, await shop.ask("/v1/rerank", asked), 3000n)
  })

  test("by the request, where the vendor tells neither", async () => {
    await using shop = await openShop(simulator, { price: { request: "0.002" } })
    shop.vendor("a").behave({ kind: "rerank", style: "jina", usage: "none" })
    const line = await expectCharged(shop, await shop.ask("/v1/rerank", asked), 2_000_000n)
    expect(line).toMatchObject({ estimated: false, measured: { measured: { searchUnits: null, tokens: null } } })
  })

  test("tokens are counted where the price is by tokens and the vendor tells search units", async () => {
    await using shop = await openShop(simulator, { price: { input: "1" } })
    shop.vendor("a").behave({ kind: "rerank", style: "cohere", searchUnits: 1 })
    const answer = await shop.ask("/v1/rerank", asked)
    expect(await expectCharged(shop, answer, 3000n)).toMatchObject({ estimated: true })
  })
})

describe("a plan's multiplier", () => {
  test("scales the whole line and is rounded once, half up", async () => {
    await using shop = await openShop(simulator, { price: { input: "0.0003", output: "0.0007" }, multiplier: "1.25" })
    // 3 x 0.3 + 1 x 0.7 = 1.6 nano-dollars, times 1.25 = 2.
    shop.vendor("a").behave({ kind: "chat", usage: { prompt_tokens: 3, completion_tokens: 1 } })
    const line = await expectCharged(shop, await shop.chat(), 2n)
    expect(line.price).toMatchObject({ multiplier: "1.25", units: { input: "0.0003", output: "0.0007" } })
    // 0.4 x 1.25 = 0.5 rounds up, where two roundings would have made nothing of it.
    shop.vendor("a").behave({ kind: "chat", usage: { prompt_tokens: 0, completion_tokens: 1 } })
    await expectCharged(shop, await shop.chat({ stream: true }), 1n)
  })

  test("of zero makes everything free, and the request is on record with what it took", async () => {
    await using shop = await openShop(simulator, { multiplier: "0" })
    shop.vendor("a").behave({ kind: "chat", usage: { prompt_tokens: 3, completion_tokens: 1 } })
    const row = await expectNotCharged(shop, await shop.chat())
    expect(row.measured.tokens).toMatchObject({ input: 3, output: 1 })
  })
})

describe("prices by the length of the context", () => {
  const price = { input: "1", output: "2", tiers: [{ aboveInput: 1000, prices: { input: "3" } }] }
  for (const [input, due, unit] of [
    [999, 999_000n, "1"],
    [1000, 1_000_000n, "1"],
    [1001, 3_003_000n, "3"],
  ] as const) {
    test.each([false, true])(`${input} tokens, streamed: %p`, async (stream) => {
      await using shop = await openShop(simulator, { price })
      shop.vendor("a").behave({ kind: "chat", usage: { prompt_tokens: input, completion_tokens: 10 } })
      const line = await expectCharged(shop, await shop.chat({ stream }), due + 20_000n)
      expect(line.price!.units).toEqual({ input: unit, output: "2" })
    })
  }
})

describe("units beside plain tokens", () => {
  const usage = {
    prompt_tokens: 100,
    completion_tokens: 50,
    prompt_tokens_details: { audio_tokens: 60, cached_tokens: 10 },
    completion_tokens_details: { audio_tokens: 40 },
  }

  test.each([false, true])("audio tokens have their own prices (streamed: %p)", async (stream) => {
    const price = { input: "1", cached_input: "0.5", audio_input: "20", output: "2", audio_output: "80" }
    await using shop = await openShop(simulator, { price })
    shop.vendor("a").behave({ kind: "chat", usage })
    const due = 30n * 1000n + 10n * 500n + 60n * 20_000n + 10n * 2000n + 40n * 80_000n
    const line = await expectCharged(shop, await shop.chat({ stream }), due)
    expect(line.price!.units).toEqual(price)
  })

  test("audio and cached tokens without a price of their own cost as much as all others", async () => {
    await using shop = await openShop(simulator, { price: { input: "1", output: "2" } })
    shop.vendor("a").behave({ kind: "chat", usage })
    await expectCharged(shop, await shop.chat(), 200_000n)
  })

  test("a price by the request comes once, on top of the tokens, however many attempts it took", async () => {
    await using shop = await openShop(simulator, { price: { input: "1", output: "1", request: "0.01" } })
    const told = { prompt_tokens: 5, completion_tokens: 5 }
    shop.vendor("a").behave({ kind: "status", status: 500 }, { kind: "chat", usage: told })
    await expectCharged(shop, await shop.chat(), 10_010_000n)
    expect(shop.calls()).toEqual([2])
  })

  test("a free model costs nothing and is on record with what it took", async () => {
    await using shop = await openShop(simulator, { price: "free" })
    shop.vendor("a").behave({ kind: "chat", usage: { prompt_tokens: 5, completion_tokens: 5 } })
    const row = await expectNotCharged(shop, await shop.chat())
    expect(row.measured.tokens).toMatchObject({ input: 5, output: 5 })
  })
})
