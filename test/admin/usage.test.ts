import { afterAll, beforeAll, describe, expect, setSystemTime, test } from "bun:test"
import { nothingMeasured } from "../../src/core/measured.ts"
import type { RequestRecord } from "../../src/core/request-record.ts"
import { engines, type FreshStore, freshStore, slowStart } from "../store/engines.ts"
import { sampleRecord } from "../support/request-records.ts"
import { type BackOffice, openBackOffice, refusalOf } from "./back-office.ts"
import { record } from "./samples.ts"

interface Row {
  readonly time: string | null
  readonly requests: number
  readonly [field: string]: unknown
}

interface UsagePage {
  readonly data: readonly Row[]
  readonly next: string | null
}

const account = { plan: "default", concurrency: null, balance: null, keys: [] }
const at = (time: string): number => Date.parse(`2026-${time}Z`)
const year = "from=2026-01-01&to=2027-01-01"

describe.each([...engines])("usage on %s", (engine) => {
  let fresh: FreshStore
  let office: BackOffice
  beforeAll(async () => {
    fresh = await freshStore(engine)
    office = await openBackOffice(fresh.store, {
      plans: [{ name: "default", concurrency: 0, models: ["*"], priceMultiplier: "1" }],
      accounts: [
        { ...account, name: "acme" },
        { ...account, name: "other" },
      ],
    })
    let n = 0
    const made = (accountId: string, time: string, changes: Partial<RequestRecord> = {}): RequestRecord =>
      sampleRecord(`req_${++n}`, { accountId, endedAt: at(time), ...changes })
    await record(
      fresh.store,
      made("acme", "10-31T23:59:59.999"),
      made("acme", "11-14T09:00:00"),
      made("acme", "11-14T09:59:59.999", { estimated: true, firstTokenMs: 80, durationMs: 100 }),
      made("other", "11-14T10:00:00", { model: "m", upstream: null, status: 402, ending: "refused", charge: 0n }),
      made("acme", "11-15T00:00:00", {
        model: "tts",
        upstream: "speaker",
        firstTokenMs: null,
        measured: { ...nothingMeasured, microseconds: 1_250_001, characters: 30, images: 4 },
        charge: 9_007_199_254_740_993n,
      }),
    )
  }, slowStart)
  afterAll(async () => {
    await office.stop()
    await fresh.close()
  })

  const rows = async (query: string): Promise<readonly Row[]> =>
    (await office.read<UsagePage>(`/api/usage?${query}`)).data

  test("by hour, each row has every sum; hours without requests have no row", async () => {
    const found = await rows("from=2026-11-14T09:00:00Z&to=2026-11-14T11:00:00Z")
    expect(found).toEqual([
      {
        time: "2026-11-14T09:00:00.000Z",
        requests: 2,
        failures: 0,
        estimated: 1,
        input_tokens: 34,
        cached_input_tokens: 0,
        cache_write_tokens: 0,
        audio_input_tokens: 0,
        output_tokens: 18,
        reasoning_tokens: 0,
        audio_output_tokens: 0,
        images: 0,
        seconds: "0",
        characters: 0,
        charge: "0.0002225",
        duration_ms: 1000,
        first_token_ms: 200,
        first_tokens: 2,
      },
      expect.objectContaining({ time: "2026-11-14T10:00:00.000Z", requests: 1, failures: 1, charge: "0" }),
    ])
    expect(await rows("from=2026-11-14T11:00:00Z&to=2026-11-15")).toEqual([])
  })

  test("charges beyond what numbers hold exactly and fractions of seconds keep every digit", async () => {
    expect(await rows("from=2026-11-15&to=2026-11-16")).toMatchObject([
      {
        charge: "9007199.254740993",
        seconds: "1.250001",
        characters: 30,
        images: 4,
        first_token_ms: 0,
        first_tokens: 0,
      },
    ])
  })

  test("by day, month and in total", async () => {
    const times = async (by: string) => (await rows(`${year}&by=${by}`)).map(({ time, requests }) => [time, requests])
    expect(await times("day")).toEqual([
      ["2026-10-31T00:00:00.000Z", 1],
      ["2026-11-14T00:00:00.000Z", 3],
      ["2026-11-15T00:00:00.000Z", 1],
    ])
    expect(await times("month")).toEqual([
      ["2026-10-01T00:00:00.000Z", 1],
      ["2026-11-01T00:00:00.000Z", 4],
    ])
    expect(await times("total")).toEqual([[null, 5]])
    expect(await rows("from=0001-01-01&to=9999-12-31&by=total")).toMatchObject([{ time: null, requests: 5 }])
  })

  test("groups name what they are of; no upstream is null; what is not grouped by is absent", async () => {
    const all = await rows(`${year}&by=total&group=upstream,account,model`)
    expect(all.map(({ account: who, model, upstream, requests }) => [who, model, upstream, requests])).toEqual([
      ["acme", "gpt-5", "openai-main", 3],
      ["acme", "tts", "speaker", 1],
      ["other", "m", null, 1],
    ])
    const [first] = await rows(`${year}&by=total&group=account`)
    expect(first).toMatchObject({ account: "acme", requests: 4 })
    expect(Object.keys(first!)).not.toContain("model")
    expect(Object.keys(first!)).not.toContain("upstream")
  })

  test("filters by account, model and upstream hold together", async () => {
    const { id } = await office.read<{ id: string }>("/api/accounts/other")
    const requests = async (query: string) => (await rows(`${year}&by=total&${query}`)).map((row) => row.requests)
    expect(await requests("account=acme")).toEqual([4])
    expect(await requests(`account=${id}`)).toEqual([1])
    expect(await requests("model=gpt-5&upstream=openai-main")).toEqual([3])
    expect(await requests("upstream=")).toEqual([1])
    expect(await requests("account=acme&model=m")).toEqual([])
  })

  test("the span is made of whole hours: the one with `from` in it, and the one that `to` ends or is in", async () => {
    const count = async (from: string, to: string) =>
      (await rows(`from=2026-11-14T${from}Z&to=2026-11-14T${to}Z`)).map(({ requests }) => requests)
    expect(await count("09:59:59", "10:00:00")).toEqual([2])
    expect(await count("09:59:59", "10:00:00.001")).toEqual([2, 1])
    expect(await count("10:00:00", "10:30:00")).toEqual([1])
  })

  test("without a span it is the last 24 hours, this one included, and the same ones on every page", async () => {
    const times = async (query = "") => {
      const { data, next } = await office.read<UsagePage>(`/api/usage?limit=1&group=account${query}`)
      return { times: data.map(({ time }) => time), next }
    }
    try {
      setSystemTime(new Date("2026-11-15T08:59:00Z"))
      const first = await times()
      expect(first.times).toEqual(["2026-11-14T09:00:00.000Z"])
      setSystemTime(new Date("2026-11-15T10:01:00Z"))
      expect((await times(`&cursor=${first.next}`)).times).toEqual(["2026-11-14T10:00:00.000Z"])
      expect((await times()).times).toEqual(["2026-11-15T00:00:00.000Z"])
      expect((await times("&to=2026-11-14T11:00:00Z")).times).toEqual(["2026-11-14T09:00:00.000Z"])
    } finally {
      setSystemTime()
    }
  })

  test.each(["hour", "day", "month", "total"])("pages by %s show each row once and in order", async (by) => {
    const query = `${year}&by=${by}&group=model,upstream,account`
    const whole = await rows(query)
    const seen: Row[] = []
    let cursor: string | null = ""
    while (cursor !== null) {
      const more: string = cursor === "" ? "" : `&cursor=${cursor}`
      const page: UsagePage = await office.read<UsagePage>(`/api/usage?${query}&limit=1${more}`)
      expect(page.data).toHaveLength(1)
      seen.push(...page.data)
      cursor = page.next
    }
    expect(seen).toEqual([...whole])
    expect(seen.length).toBeGreaterThan(2)
  })

  test("a cursor fits only the span, step and groups that it came from", async () => {
    const { next } = await office.read<UsagePage>(`/api/usage?${year}&by=day&group=model&limit=1`)
    expect((await office.ask(`/api/usage?by=day&group=model&cursor=${next}`)).status).toBe(200)
    for (const query of [
      `${year}&by=hour&group=model`,
      `${year}&by=day`,
      `${year}&by=day&group=model,account`,
      "from=2026-01-02&to=2027-01-01&by=day&group=model",
    ]) {
      const { status, message } = await refusalOf(await office.ask(`/api/usage?${query}&cursor=${next}`))
      expect([query, status, message]).toEqual([
        query,
        400,
        "cursor must be the `next` of an earlier page of this list",
      ])
    }
  })

  test.each([
    ["from=2026-11-15&to=2026-11-15", "from must be before to"],
    ["from=2026-11-16&to=2026-11-15", "from must be before to"],
    ["from=now", "from must be a time such as"],
    ["by=week", "by must be one of hour, day, month, total"],
    ["group=", "group must be some of account, model, upstream"],
    ["group=account,account", "group must be some of account, model, upstream"],
    ["group=account,key", "group must be some of account, model, upstream"],
    ["account=nobody", 'there is no account "nobody"'],
  ])("refused: %s", async (query, message) => {
    expect((await refusalOf(await office.ask(`/api/usage?${query}`))).message).toStartWith(message)
  })
})
