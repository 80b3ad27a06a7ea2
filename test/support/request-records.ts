import { nothingMeasured } from "../../src/core/measured.ts"
import type { RequestRecord } from "../../src/core/request-record.ts"

/** A request that was answered and charged. */
export function sampleRecord(id: string, changes: Partial<RequestRecord> = {}): RequestRecord {
  return {
    id,
    accountId: "acme",
    keyId: "key-1",
    keyName: "ci",
    endpoint: "chat",
    model: "gpt-5",
    upstream: "openai-main",
    upstreamModel: "gpt-5-2026-08",
    stream: true,
    attempts: [
      {
        upstream: "openai-main",
        upstreamModel: "gpt-5-2026-08",
        why: "first by priority",
        startedAt: 1,
        endedAt: 900,
        outcome: "answered",
        status: 200,
        detail: null,
      },
    ],
    status: 200,
    error: null,
    ending: "completed",
    startedAt: 1_794_700_000_000,
    endedAt: 1_794_700_000_900,
    firstTokenMs: 120,
    durationMs: 900,
    measured: {
      ...nothingMeasured,
      tokens: { input: 17, cachedInput: 0, cacheWrite: 0, audioInput: 0, output: 9, reasoning: 0, audioOutput: 0 },
    },
    estimated: false,
    usageInvalid: false,
    price: { version: 3, multiplier: "1", units: { input: "1.25", output: "10" } },
    charge: 111_250n,
    ...changes,
  }
}

/** The ids `r0`, `r1`, … as records. */
export function sampleRecords(from: number, to: number, changes: Partial<RequestRecord> = {}): RequestRecord[] {
  return Array.from({ length: to - from }, (_, index) => sampleRecord(`r${from + index}`, changes))
}
