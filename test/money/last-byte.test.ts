import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { sql } from "kysely"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import type { Price } from "../../src/core/price.ts"
import { inTransaction } from "../../src/store/db.ts"
import { engines, type FreshDatabase, freshDatabase, slowStart } from "../store/engines.ts"
import { comes, expectCharged, openShop, type Shop, tokenPrice } from "../support/books.ts"
import { form, formType, type Posted, postTo } from "../support/endpoints.ts"
import { eventually } from "../support/gateway.ts"
import { wavFile } from "../support/media-files.ts"
import { messages, stopWithoutComplaint } from "../support/scene.ts"

setDefaultTimeout(60_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

/** Shorter than what counts as a database that is away. */
const heldMs = 600

interface Way {
  readonly path: string
  readonly request: Posted
  readonly price: Price
  readonly step: Behaviour
  /** What a client must not have seen while the charge is not safe. */
  isOver(seen: string): boolean
}

const json = (body: object): Posted => ({
  type: "application/json",
  bytes: Buffer.from(JSON.stringify({ model: "m", ...body })),
})
const isWholeJson = (seen: string): boolean => {
  try {
    JSON.parse(seen)
    return true
  } catch {
    return false
  }
}
const sound = form([
  { name: "model", value: "m" },
  { name: "file", filename: "some.wav", value: wavFile(1) },
])
const ways: Record<string, Way> = {
  "a chat stream": {
    path: "/v1/chat/completions",
    request: json({ messages, stream: true }),
    price: tokenPrice,
    step: { kind: "chat", headDelayMs: 100, gapMs: 1 },
    isOver: (seen) => seen.includes("[DONE]"),
  },
  "a chat answer": {
    path: "/v1/chat/completions",
    request: json({ messages }),
    price: tokenPrice,
    step: { kind: "chat", headDelayMs: 100 },
    isOver: isWholeJson,
  },
  "a stream of responses": {
    path: "/v1/responses",
    request: json({ input: "hi" }),
    price: tokenPrice,
    step: { kind: "responses", headDelayMs: 100, gapMs: 1 },
    isOver: (seen) => seen.includes("response.completed"),
  },
  pictures: {
    path: "/v1/images/generations",
    request: json({ prompt: "a fox" }),
    price: { image: "0.04" },
    step: { kind: "images", headDelayMs: 100 },
    isOver: isWholeJson,
  },
  "pictures as events": {
    path: "/v1/images/generations",
    request: json({ prompt: "a fox", stream: true, partial_images: 1 }),
    price: { image: "0.04" },
    step: { kind: "images", headDelayMs: 100 },
    isOver: (seen) => seen.includes("image_generation.completed"),
  },
  "a transcript": {
    path: "/v1/audio/transcriptions",
    request: { type: formType, bytes: sound },
    price: { second: "0.001" },
    step: { kind: "transcription", headDelayMs: 100 },
    isOver: isWholeJson,
  },
  speech: {
    path: "/v1/audio/speech",
    request: json({ input: "Hello", voice: "alloy" }),
    price: { character: "0.001" },
    step: { kind: "stream", body: "0123456789", headers: { "content-type": "audio/mpeg" }, headDelayMs: 100 },
    isOver: (seen) => seen.endsWith("9"),
  },
}

describe.each([...engines])("on %s", (engine) => {
  let database: FreshDatabase
  beforeAll(async () => {
    database = await freshDatabase(engine)
  }, slowStart)
  afterAll(() => database.remove())

  /** Keeps the ledger from being written to until it is let go. */
  async function holdLedger(shop: Shop): Promise<() => Promise<void>> {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const { promise: isHeld, resolve: held } = Promise.withResolvers<void>()
    const holding = inTransaction(shop.gateway.store, async (trx) => {
      // SQLite has one connection, which this transaction has now.
      if (engine === "postgres") await sql`lock table ledger in exclusive mode`.execute(trx)
      held()
      await released
    })
    await Promise.race([isHeld, holding])
    return async () => {
      release()
      await holding
    }
  }

  /** What a client reads, and how it stands at any moment. */
  async function read(response: Promise<Response>, seen: { text: string; isOver: boolean }): Promise<Response> {
    const answer = await response
    for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>)
      seen.text += Buffer.from(chunk).toString("latin1")
    seen.isOver = true
    return answer
  }

  test.concurrent.each(Object.entries(ways))(
    "the end of %s waits until the charge is in the database",
    async (_, way) => {
      const own = await freshDatabase(engine)
      await using shop = await openShop(simulator, { price: way.price, database: own.target })
      // The first request has everything that is read once read.
      shop.vendor("a").behave(way.step)
      await (await postTo(shop.gateway, way.path, way.request)).bytes()
      const seen = { text: "", isOver: false }
      const reading = read(postTo(shop.gateway, way.path, way.request), seen)
      await eventually(() => shop.calls()[0] === 2)
      const letGo = await holdLedger(shop)
      const call = shop.vendor("a").calls[1]!
      await eventually(() => call.finished)
      await Bun.sleep(heldMs)
      expect({ isOver: seen.isOver, text: way.isOver(seen.text) }).toEqual({ isOver: false, text: false })
      await letGo()
      const answer = await reading
      expect(way.isOver(seen.text)).toBeTrue()
      // Read at once: the line must be there by the time the client has seen the end.
      const reference = answer.headers.get("x-request-id")!
      const rows = await shop.gateway.store.db
        .selectFrom("ledger")
        .selectAll()
        .where("reference", "=", reference)
        .execute()
      expect(rows).toHaveLength(1)
      own.remove()
    },
  )

  test("a database that takes too long does not hold up the answer: the charge waits on the disk and is posted once", async () => {
    await using shop = await openShop(simulator, { database: database.target })
    await shop.chat()
    const usage = { prompt_tokens: 1000, completion_tokens: 0 }
    shop.vendor("a").behave({ kind: "chat", usage, headDelayMs: 100 })
    const asked = shop.chat()
    await eventually(() => shop.calls()[0] === 2)
    const letGo = await holdLedger(shop)
    const answer = await asked
    expect(answer.status).toBe(200)
    expect(shop.gateway.complaints).toEqual([{ active: true, why: expect.stringContaining("did not answer within") }])
    await letGo()
    await comes(async () => (await shop.charges()).length === 2)
    await eventually(() => shop.gateway.complaints.length === 2)
    expect(shop.gateway.complaints[1]).toEqual({ active: false, why: "" })
    await expectCharged(shop, answer, 1_000_000n)
    expect((await shop.chat()).status).toBe(200)
    expect(await shop.charges()).toHaveLength(3)
    await shop.balance()
  })
})
