import fc from "fast-check"
import { endpoints } from "../../src/core/endpoints.ts"
import { nothingMeasured } from "../../src/core/measured.ts"
import type { RequestRecord } from "../../src/core/request-record.ts"
import { newRequestId } from "../../src/lib/ids.ts"
import type { Store } from "../../src/store/db.ts"

/** An account's id by its name. */
export async function idOf(store: Store, name: string): Promise<string> {
  return (await store.db.selectFrom("accounts").select("id").where("name", "=", name).executeTakeFirstOrThrow()).id
}

/** A request that went well and costs 5, for tests to change what they are about. */
export function requestRecord(accountId: string, changes: Partial<RequestRecord> = {}): RequestRecord {
  return {
    id: newRequestId(),
    accountId,
    keyId: "key-1",
    keyName: "ci",
    endpoint: "chat",
    model: "gpt-5",
    upstream: "openai-main",
    upstreamModel: "gpt-5-2026-08",
    stream: true,
    attempts: [
      {
        upstream: "azure-east",
        upstreamModel: "gpt5-deploy",
        why: "first by priority",
        startedAt: 1.5,
        endedAt: 20.25,
        outcome: "upstream_error",
        status: 500,
        detail: 'said "no"\0',
      },
      {
        upstream: "openai-main",
        upstreamModel: "gpt-5-2026-08",
        why: "next by priority",
        startedAt: 21,
        endedAt: null,
        outcome: "answered",
        status: 200,
        detail: null,
      },
    ],
    status: 200,
    error: null,
    ending: "completed",
    startedAt: 1_790_000_000_000,
    endedAt: 1_790_000_001_000,
    firstTokenMs: 120,
    durationMs: 1000,
    measured: {
      ...nothingMeasured,
      tokens: { input: 10, cachedInput: 2, cacheWrite: 0, audioInput: 0, output: 5, reasoning: 1, audioOutput: 0 },
    },
    estimated: false,
    usageInvalid: false,
    price: { version: 3, multiplier: "1.5", units: { input: "1.25", output: "10" } },
    charge: 5n,
    ...changes,
  }
}

const count = fc.nat({ max: 1_000_000 })
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null })

export const anyMeasured = fc.record({
  tokens: maybe(
    fc.record({
      input: count,
      cachedInput: count,
      cacheWrite: count,
      audioInput: count,
      output: count,
      reasoning: count,
      audioOutput: count,
    }),
  ),
  images: maybe(count),
  microseconds: maybe(fc.nat({ max: 10_000_000_000_000 })),
  characters: maybe(count),
  searchUnits: maybe(count),
  size: maybe(fc.string()),
  quality: maybe(fc.string()),
})

/** Requests of a few accounts, models and upstreams over a few days, so that many fall into one place of a roll-up. */
export function anyRecords(accountIds: readonly string[], minLength: number): fc.Arbitrary<readonly RequestRecord[]> {
  const times = fc.integer({ min: 1_790_000_000_000, max: 1_790_000_000_000 + 3 * 86_400_000 })
  const changes = fc.record({
    model: fc.constantFrom("gpt-5", "m'2", "ü"),
    upstream: maybe(fc.constantFrom("a", "b")),
    endpoint: fc.constantFrom(...endpoints),
    status: fc.constantFrom(200, 400, 502),
    ending: fc.constantFrom("completed", "refused", "failed", "client_gone"),
    endedAt: times,
    firstTokenMs: maybe(fc.nat({ max: 60_000 })),
    durationMs: fc.nat({ max: 1_800_000 }),
    measured: anyMeasured,
    estimated: fc.boolean(),
    charge: fc.oneof(fc.constant(0n), fc.bigInt({ min: 1n, max: 10n ** 12n })),
  })
  const record = fc
    .tuple(fc.constantFrom(...accountIds), changes)
    .map(([account, some]) => requestRecord(account, some))
  return fc.array(record, { minLength, maxLength: minLength * 2 })
}
