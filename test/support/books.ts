import { expect } from "bun:test"
import type { Simulator } from "../../simulator/simulator.ts"
import type { UpstreamConfig } from "../../src/config/document.ts"
import type { Price } from "../../src/core/price.ts"
import type { DatabaseTarget } from "../../src/store/db.ts"
import { type LedgerLine, lineOf } from "../../src/store/ledger.ts"
import { findRequest, type RequestStory } from "../../src/store/requests.ts"
import { model, startGateway, type TestGateway, testKey, upstream } from "./gateway.ts"
import { imageScene, type JobVendorName, jobVendors } from "./image-scene.ts"
import { type Answer, readAnswer, type Scene } from "./scene.ts"

export interface ShopOptions {
  /** Of the model "m". */
  readonly price?: Price
  /** In dollars. */
  readonly balance?: string
  readonly multiplier?: string
  /** Of the account's requests at once; 0: unlimited. */
  readonly concurrency?: number
  readonly database?: DatabaseTarget | undefined
  /** Upstreams by name, in order of priority; one "a" that has every endpoint otherwise. */
  readonly upstreams?: Readonly<Record<string, Partial<UpstreamConfig>>>
}

/** A gateway that sells the model "m", and its books. */
export interface Shop extends Omit<Scene, "ask"> {
  /** POSTs JSON and reads the answer to its end. */
  ask(path: string, body: object): Promise<Answer>
  chat(more?: object): Promise<Answer>
  /** The account's balance as the database has it, in 1e-9 dollar. */
  balance(): Promise<bigint>
  /** All charges, in the order they were posted. */
  charges(): Promise<readonly LedgerLine[]>
  /** What the books say of a request, once they do. */
  entry(requestId: string): Promise<Entry>
  entryOf(answer: Pick<Answer, "story">): Promise<Entry>
}

export interface Entry {
  readonly row: RequestStory
  /** Ledger lines of the request. */
  readonly lines: readonly LedgerLine[]
}

export const tokenPrice = { input: "1", cached_input: "0.1", cache_write: "1.25", output: "10" } as const

let shops = 0

export async function openShop(simulator: Simulator, options: ShopOptions = {}): Promise<Shop> {
  const number = ++shops
  const { price = tokenPrice, upstreams = { a: {} } } = options
  const names = Object.keys(upstreams)
  const vendor = (name: string) => simulator.vendor(`shop-${name}-${number}`)
  const gateway = await startGateway(
    {
      upstreams: names.map((name) =>
        upstream(name, vendor(name).baseUrl, { vendor: "openai-compatible", ...upstreams[name] }),
      ),
      models: [model("m", names, { price })],
      plans: [{ name: "default", concurrency: 0, models: ["*"], priceMultiplier: options.multiplier ?? "1" }],
      accounts: [accountOf(options)],
    },
    options.database,
  )
  return shopOf(gateway, vendor, names)
}

/** A shop whose only upstream makes images as jobs; it is named like its vendor. */
export async function openJobShop(simulator: Simulator, name: JobVendorName, price: Price): Promise<Shop> {
  const models = [model("m", [{ upstream: name, model: jobVendors[name].model }], { price })]
  const { gateway, vendor } = await imageScene(simulator, [name], { models })
  return shopOf(gateway, vendor, [name])
}

export function accountOf({ balance = "100", concurrency = 0 }: Pick<ShopOptions, "balance" | "concurrency">) {
  return { name: "acme", plan: "default", concurrency, balance, keys: [{ name: "test", key: testKey }] }
}

export function shopOf(gateway: TestGateway, vendor: Shop["vendor"], names: readonly string[]): Shop {
  const { store } = gateway
  const ask: Shop["ask"] = async (path, body) =>
    readAnswer(
      gateway,
      await fetch(gateway.url + path, {
        method: "POST",
        headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "m", ...body }),
      }),
    )
  const entry: Shop["entry"] = async (requestId) => ({
    row: await comes(() => findRequest(store.db, requestId)),
    lines: await linesOf(gateway, requestId),
  })
  return {
    gateway,
    vendor,
    ask,
    chat: (more = {}) =>
      ask("/v1/chat/completions", { messages: [{ role: "user", content: "Say hello to the world" }], ...more }),
    calls: () => names.map((name) => vendor(name).calls.length),
    async balance() {
      const lines = await linesOf(gateway)
      // Whatever else is tested, a line's balance is the sum of the lines up to it.
      let sum = 0n
      for (const { amount, balanceAfter } of lines) {
        sum += amount
        expect(balanceAfter).toBe(sum)
      }
      return sum
    },
    charges: async () => (await linesOf(gateway)).filter(({ kind }) => kind === "charge"),
    entry,
    entryOf: ({ story }) => entry(story.requestId),
    [Symbol.asyncDispose]: () => gateway.stop(),
  }
}

async function linesOf({ store }: TestGateway, reference?: string): Promise<readonly LedgerLine[]> {
  let query = store.db.selectFrom("ledger").selectAll().orderBy("id")
  if (reference !== undefined) query = query.where("reference", "=", reference)
  return (await query.execute()).map(lineOf)
}

/** Waits until a look into the database finds something. */
export async function comes<T>(look: () => Promise<T | null | undefined | false>, patienceMs = 5000): Promise<T> {
  const until = performance.now() + patienceMs
  for (;;) {
    const found = await look()
    if (found !== null && found !== undefined && found !== false) return found
    if (performance.now() > until) throw new Error(`not so within ${patienceMs} ms: ${look}`)
    await Bun.sleep(10)
  }
}

/** The request was charged this much, in 1e-9 dollar, by exactly one line that says so. */
export async function expectCharged(shop: Shop, answer: Pick<Answer, "story">, amount: bigint): Promise<LedgerLine> {
  const { row, lines } = await shop.entryOf(answer)
  expect(lines.map(({ kind, amount: posted }) => ({ kind, posted }))).toEqual([{ kind: "charge", posted: -amount }])
  const [line] = lines
  expect(row).toMatchObject({ charge: amount, estimated: line!.estimated, usageInvalid: line!.usageInvalid })
  expect(line!.measured?.measured).toEqual(row.measured)
  expect(line!.price).toEqual(row.price)
  return line!
}

/** The request is on record, and nothing was charged for it. */
export async function expectNotCharged(shop: Shop, answer: Pick<Answer, "story">): Promise<RequestStory> {
  const { row, lines } = await shop.entryOf(answer)
  expect({ lines, charge: row.charge, line: row.line }).toEqual({ lines: [], charge: 0n, line: null })
  return row
}
