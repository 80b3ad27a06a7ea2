import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { nothingMeasured } from "../../src/core/measured.ts"
import type { RequestRecord } from "../../src/core/request-record.ts"
import { engines, type FreshStore, freshStore, slowStart } from "../store/engines.ts"
import { sampleRecord } from "../support/request-records.ts"
import { type BackOffice, openBackOffice, refusalOf } from "./back-office.ts"
import { record } from "./samples.ts"

interface RequestPage {
  readonly data: readonly { readonly id: string }[]
  readonly next: string | null
}

const account = { plan: "default", concurrency: null, keys: [] }
const noon = Date.parse("2026-11-15T12:00:00Z")

/** Two routes were too slow or unwell before the third one answered. */
const troubled: Partial<RequestRecord> = {
  accountId: "acme",
  upstream: "spare",
  upstreamModel: "m-3",
  attempts: [
    {
      upstream: "slow",
      upstreamModel: "m-1",
      why: "first",
      startedAt: 0.25,
      endedAt: 60_000.5,
      outcome: "timeout",
      status: null,
      detail: "cut off: timeout",
    },
    {
      upstream: "ill",
      upstreamModel: "m-2",
      why: "next_route",
      startedAt: 60_001,
      endedAt: 60_020,
      outcome: "status",
      status: 500,
      detail: '500 {"error":"ill"}',
    },
    {
      upstream: "spare",
      upstreamModel: "m-3",
      why: "next_route",
      startedAt: 60_021,
      endedAt: 60_900,
      outcome: "answered",
      status: 200,
      detail: null,
    },
  ],
  startedAt: noon - 61_000,
  endedAt: noon,
  durationMs: 61_000,
  firstTokenMs: 60_100,
  measured: {
    ...nothingMeasured,
    tokens: { input: 100, cachedInput: 40, cacheWrite: 5, audioInput: 1, output: 9, reasoning: 3, audioOutput: 2 },
  },
  estimated: true,
  price: { version: 12, multiplier: "1.5", units: { input: "1.25", cached_input: "0.125", output: "10" } },
  charge: 123_456_789n,
}

describe.each([...engines])("requests on %s", (engine) => {
  let fresh: FreshStore
  let office: BackOffice
  beforeAll(async () => {
    fresh = await freshStore(engine)
    office = await openBackOffice(fresh.store, {
      plans: [{ name: "default", concurrency: 0, models: ["*"], priceMultiplier: "1" }],
      accounts: [
        { ...account, name: "acme", balance: "10" },
        { ...account, name: "other", balance: null },
        { ...account, name: "many", balance: null },
      ],
    })
    await record(
      fresh.store,
      sampleRecord("req_troubled", troubled),
      sampleRecord("req_refused", {
        accountId: "other",
        keyId: "key-2",
        keyName: "laptop",
        endpoint: "embeddings",
        model: "m",
        upstream: null,
        upstreamModel: null,
        stream: false,
        attempts: [],
        status: 402,
        error: "insufficient_balance",
        ending: "refused",
        endedAt: noon + 1,
        firstTokenMs: null,
        measured: nothingMeasured,
        price: null,
        charge: 0n,
      }),
    )
  }, slowStart)
  afterAll(async () => {
    await office.stop()
    await fresh.close()
  })

  const ids = async (query: string): Promise<readonly string[]> =>
    (await office.read<RequestPage>(`/api/requests?${query}`)).data.map(({ id }) => id)

  test("one request tells its whole story", async () => {
    const { id: accountId } = await office.read<{ id: string }>("/api/accounts/acme")
    expect(await office.read("/api/requests/req_troubled")).toEqual({
      id: "req_troubled",
      account: "acme",
      account_id: accountId,
      key: "ci",
      key_id: "key-1",
      endpoint: "chat",
      model: "gpt-5",
      upstream: "spare",
      upstream_model: "m-3",
      stream: true,
      attempt_count: 3,
      attempts: [
        {
          upstream: "slow",
          upstream_model: "m-1",
          why: "first",
          started_ms: 0.25,
          ended_ms: 60_000.5,
          outcome: "timeout",
          status: null,
          detail: "cut off: timeout",
        },
        {
          upstream: "ill",
          upstream_model: "m-2",
          why: "next_route",
          started_ms: 60_001,
          ended_ms: 60_020,
          outcome: "status",
          status: 500,
          detail: '500 {"error":"ill"}',
        },
        {
          upstream: "spare",
          upstream_model: "m-3",
          why: "next_route",
          started_ms: 60_021,
          ended_ms: 60_900,
          outcome: "answered",
          status: 200,
          detail: null,
        },
      ],
      status: 200,
      error: null,
      ending: "completed",
      started_at: "2026-11-15T11:58:59.000Z",
      ended_at: "2026-11-15T12:00:00.000Z",
      first_token_ms: 60_100,
      duration_ms: 61_000,
      usage: {
        input_tokens: 100,
        cached_input_tokens: 40,
        cache_write_tokens: 5,
        audio_input_tokens: 1,
        output_tokens: 9,
        reasoning_tokens: 3,
        audio_output_tokens: 2,
      },
      estimated: true,
      usage_invalid: false,
      price: { version: 12, multiplier: "1.5", units: { input: "1.25", cached_input: "0.125", output: "10" } },
      charge: "0.123456789",
      balance_after: "9.876543211",
    })
  })

  test("a request that was refused has no attempts, no usage, no price and no charge", async () => {
    expect(await office.read("/api/requests/req_refused")).toMatchObject({
      key: "laptop",
      upstream: null,
      upstream_model: null,
      attempt_count: 0,
      attempts: [],
      status: 402,
      error: "insufficient_balance",
      ending: "refused",
      first_token_ms: null,
      usage: {},
      price: null,
      charge: "0",
      balance_after: null,
    })
  })

  test("a list has the story without its attempts, usage and price, newest first", async () => {
    const { data } = await office.read<RequestPage>("/api/requests")
    expect(data.map(({ id }) => id)).toEqual(["req_refused", "req_troubled"])
    const whole = await office.read("/api/requests/req_troubled")
    for (const field of ["attempts", "usage", "price", "balance_after"]) delete whole[field]
    expect(data[1] as object).toEqual(whole)
  })

  test("a request of an account that was deleted since names no account but its id", async () => {
    await office.apply({ accounts: [{ ...account, name: "brief", balance: null }] })
    await record(fresh.store, sampleRecord("req_left", { accountId: "brief", charge: 0n, endedAt: noon - 5 }))
    await fresh.store.db.deleteFrom("accounts").where("name", "=", "brief").execute()
    expect(await office.read("/api/requests/req_left")).toMatchObject({ account: null, account_id: expect.any(String) })
  })

  test("an id that nothing has is 404", async () => {
    expect(await refusalOf(await office.ask("/api/requests/req_nothing"))).toEqual({
      status: 404,
      code: "not_found",
      message: 'there is no request "req_nothing"',
    })
  })

  test.each([
    ["account=acme", ["req_troubled"]],
    ["key=laptop", ["req_refused"]],
    ["key=key-2", ["req_refused"]],
    ["model=m", ["req_refused"]],
    ["upstream=spare", ["req_troubled"]],
    ["upstream=slow", []],
    ["endpoint=embeddings", ["req_refused"]],
    ["status=402", ["req_refused"]],
    ["status=200&account=other", []],
    ["error=insufficient_balance", ["req_refused"]],
    ["ending=refused", ["req_refused"]],
    ["ending=failed", []],
    ["since=2026-11-15T12:00:00.001Z", ["req_refused"]],
    ["since=2026-11-15T12:00:00Z&until=2026-11-15T12:00:00.001Z", ["req_troubled"]],
  ])("filter %s", async (query, expected) => {
    expect(await ids(query)).toEqual(expected)
  })

  test("a filter that nothing could fit is refused and says what could", async () => {
    const message = async (query: string) => (await refusalOf(await office.ask(`/api/requests?${query}`))).message
    expect(await message("status=99")).toBe("status must be a whole number from 100 to 599")
    expect(await message("ending=happy")).toBe("ending must be one of completed, refused, failed, client_gone")
    expect(await message("endpoint=chats")).toStartWith("endpoint must be one of chat, responses, ")
    expect(await message("account=nobody")).toBe('there is no account "nobody"')
    expect(await message("modle=m")).toBe("modle is not a parameter of this address (did you mean model?)")
  })

  test("pages show each request once and in order where many ended in the same millisecond", async () => {
    const times = [3, 2, 2, 2, 2, 2, 1].map((second) => noon + second * 1000)
    await record(
      fresh.store,
      ...times.map((endedAt, n) => sampleRecord(`req_many_${n}`, { accountId: "many", endedAt, charge: 0n })),
    )
    const seen: string[] = []
    let cursor: string | null = ""
    while (cursor !== null) {
      const more: string = cursor === "" ? "" : `&cursor=${cursor}`
      const page: RequestPage = await office.read<RequestPage>(`/api/requests?account=many&limit=2${more}`)
      seen.push(...page.data.map(({ id }) => id))
      cursor = page.next
    }
    expect(seen).toEqual([0, 5, 4, 3, 2, 1, 6].map((n) => `req_many_${n}`))
  })
})
