import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { nothingMeasured } from "../../src/core/measured.ts"
import { engines, type FreshStore, freshStore, slowStart } from "../store/engines.ts"
import { sampleRecord } from "../support/request-records.ts"
import { type BackOffice, openBackOffice, refusalOf } from "./back-office.ts"
import { record } from "./samples.ts"

interface Line {
  readonly id: string
  readonly reference: string
  readonly amount: string
  readonly balance_after: string
  readonly [field: string]: unknown
}

interface LinePage {
  readonly data: readonly Line[]
  readonly next: string | null
}

const account = { plan: "default", concurrency: null, keys: [] }
const noon = Date.parse("2026-11-15T12:00:00Z")

describe.each([...engines])("the ledger on %s", (engine) => {
  let fresh: FreshStore
  let office: BackOffice
  beforeAll(async () => {
    fresh = await freshStore(engine)
    office = await openBackOffice(fresh.store, {
      plans: [{ name: "default", concurrency: 0, models: ["*"], priceMultiplier: "1" }],
      accounts: [
        { ...account, name: "acme", balance: "100" },
        { ...account, name: "other", balance: "5" },
        { ...account, name: "many", balance: null },
      ],
    })
    await record(
      fresh.store,
      sampleRecord("req_1", { accountId: "acme", endedAt: noon, estimated: true }),
      sampleRecord("req_free", { accountId: "acme", endedAt: noon, charge: 0n, price: null }),
      sampleRecord("req_2", { accountId: "other", endedAt: noon + 1, upstream: null, usageInvalid: true }),
      sampleRecord("req_3", {
        accountId: "acme",
        endedAt: noon + 3_600_000,
        endpoint: "image_generations",
        measured: { ...nothingMeasured, images: 2, microseconds: 1_500_000, size: "1024x1024", quality: "high" },
        price: { version: 9, multiplier: "1.5", units: { image: "0.04" } },
        charge: 120_000_000n,
      }),
    )
  }, slowStart)
  afterAll(async () => {
    await office.stop()
    await fresh.close()
  })

  const references = async (query: string): Promise<readonly string[]> =>
    (await office.read<LinePage>(`/api/ledger?${query}`)).data.map(({ reference }) => reference)

  test("lines come newest first, each with what was measured and at which price", async () => {
    const { data, next } = await office.read<LinePage>("/api/ledger?account=acme")
    expect(next).toBeNull()
    expect(data).toEqual([
      {
        id: expect.stringMatching(/^\d+$/),
        account: "acme",
        kind: "charge",
        amount: "-0.12",
        balance_after: "99.87988875",
        reference: "req_3",
        note: null,
        measured: {
          model: "gpt-5",
          upstream: "openai-main",
          endpoint: "image_generations",
          images: 2,
          seconds: "1.5",
          size: "1024x1024",
          quality: "high",
        },
        price: { version: 9, multiplier: "1.5", units: { image: "0.04" } },
        estimated: false,
        usage_invalid: false,
        created_at: "2026-11-15T13:00:00.000Z",
      },
      {
        id: expect.any(String),
        account: "acme",
        kind: "charge",
        amount: "-0.00011125",
        balance_after: "99.99988875",
        reference: "req_1",
        note: null,
        measured: {
          model: "gpt-5",
          upstream: "openai-main",
          endpoint: "chat",
          input_tokens: 17,
          cached_input_tokens: 0,
          cache_write_tokens: 0,
          audio_input_tokens: 0,
          output_tokens: 9,
          reasoning_tokens: 0,
          audio_output_tokens: 0,
        },
        price: { version: 3, multiplier: "1", units: { input: "1.25", output: "10" } },
        estimated: true,
        usage_invalid: false,
        created_at: "2026-11-15T12:00:00.000Z",
      },
      {
        id: expect.any(String),
        account: "acme",
        kind: "topup",
        amount: "100",
        balance_after: "100",
        reference: "opening:acme",
        note: "opening balance",
        measured: null,
        price: null,
        estimated: false,
        usage_invalid: false,
        created_at: expect.any(String),
      },
    ])
  })

  test("what is charged without an upstream or by a bad report says so", async () => {
    const { data } = await office.read<LinePage>("/api/ledger?reference=req_2")
    expect(data).toMatchObject([{ account: "other", usage_invalid: true, measured: { upstream: null } }])
  })

  test("filters hold together; an account is found by id and by name", async () => {
    const { id } = await office.read<{ id: string }>("/api/accounts/other")
    expect(await references(`account=${id}`)).toEqual(["req_2", "opening:other"])
    expect(await references("kind=charge")).toEqual(["req_3", "req_2", "req_1"])
    expect(await references("kind=topup&account=acme")).toEqual(["opening:acme"])
    expect(await references("kind=adjustment")).toEqual([])
    expect(await references("kind=topup&reference=req_1")).toEqual([])
    expect(await references("account=acme&reference=req_2")).toEqual([])
  })

  test("since takes what is at its time, until does not; offsets and bare dates are understood", async () => {
    expect(await references("kind=charge&since=2026-11-15T12:00:00.001Z")).toEqual(["req_3", "req_2"])
    expect(await references("kind=charge&until=2026-11-15T12:00:00.001Z")).toEqual(["req_1"])
    expect(await references("kind=charge&since=2026-11-15T14:00:00%2B01:00")).toEqual(["req_3"])
    expect(await references("kind=charge&since=2026-11-15&until=2026-11-16")).toEqual(["req_3", "req_2", "req_1"])
    expect(await references("kind=charge&since=2026-11-16")).toEqual([])
  })

  test("an unknown account is 404; a kind or time that is none is 400", async () => {
    expect(await refusalOf(await office.ask("/api/ledger?account=nobody"))).toEqual({
      status: 404,
      code: "not_found",
      message: 'there is no account "nobody"',
    })
    expect((await refusalOf(await office.ask("/api/ledger?kind=gift"))).message).toBe(
      "kind must be one of topup, charge, adjustment",
    )
    for (const time of [
      "yesterday",
      "1794744000000",
      "2026-02-30",
      "2026-11-15T12:00:00",
      "2026-11-15T14:00:00+01:00",
    ]) {
      const { status, message } = await refusalOf(await office.ask(`/api/ledger?since=${time}`))
      expect([time, status, message.startsWith("since must be a time such as")]).toEqual([time, 400, true])
    }
  })

  test("pages show each line once and in order, while new ones come in", async () => {
    const post = (n: number) => office.send("/api/accounts/many/topups", { amount: "1", reference: `many-${n}` })
    for (let n = 1; n <= 7; n++) await post(n)
    const seen: string[] = []
    const sizes: number[] = []
    let cursor: string | null = ""
    while (cursor !== null) {
      const more: string = cursor === "" ? "" : `&cursor=${cursor}`
      const page: LinePage = await office.read<LinePage>(`/api/ledger?account=many&limit=3${more}`)
      seen.push(...page.data.map(({ reference }) => reference))
      sizes.push(page.data.length)
      await post(100 + sizes.length)
      cursor = page.next
    }
    expect(sizes).toEqual([3, 3, 1])
    expect(seen).toEqual([7, 6, 5, 4, 3, 2, 1].map((n) => `many-${n}`))
  })

  test("a page that holds exactly the rest is the last one", async () => {
    expect((await office.read<LinePage>("/api/ledger?account=acme&limit=3")).next).toBeNull()
    expect((await office.read<LinePage>("/api/ledger?account=acme&limit=2")).next).toBeString()
  })

  test("the amounts of an account add up to its balance", async () => {
    const { data } = await office.read<LinePage>("/api/ledger?account=acme&limit=500")
    const nanos = data.map(({ amount }) => Math.round(Number(amount) * 1e9))
    const { balance } = await office.read<{ balance: string }>("/api/accounts/acme")
    expect(nanos.reduce((sum, each) => sum + each, 0)).toBe(Math.round(Number(balance) * 1e9))
    expect(data[0]!.balance_after).toBe(balance)
  })
})
