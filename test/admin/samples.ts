import type { ConfigDocument } from "../../src/config/document.ts"
import type { RequestRecord } from "../../src/core/request-record.ts"
import { findAccount } from "../../src/store/accounts.ts"
import type { Store } from "../../src/store/db.ts"
import { completeJob } from "../../src/store/job-settlement.ts"
import { postSettlements } from "../../src/store/settlements.ts"
import { completionOf, klingRoute, queuedJob } from "../store/job-samples.ts"
import { model, upstream } from "../support/gateway.ts"
import { sampleRecord } from "../support/request-records.ts"
import { vault } from "./back-office.ts"

/** Texts that no answer may ever contain. */
export const secrets = {
  credential: "credential-canary-1",
  pooledCredential: "credential-canary-2",
  headerValue: "header-canary",
  accountKey: "sk-account-key-canary-0123456789",
  password: "password-canary",
} as const

/** A small house with everything in it that the back office shows or must not show. */
export const sampleHouse: ConfigDocument = {
  upstreams: [
    upstream("openai-main", "https://api.openai.example/v1", {
      apiKeys: [secrets.credential, secrets.pooledCredential],
      headers: { "x-team": secrets.headerValue, "x-region": "eu" },
      timeouts: { firstToken: 1500, total: 3_600_000 },
      concurrency: 7,
    }),
    upstream("local / llm", "http://127.0.0.1:9/v1", {
      vendor: "openai-compatible",
      apiKeys: [],
      settings: { no_stream_options: true },
    }),
    upstream("claude", "https://api.anthropic.example/v1", { vendor: "anthropic" }),
  ],
  models: [
    model("gpt-5", [{ upstream: "openai-main", model: "gpt-5-2026-08", priority: 9, weight: 30 }, "claude"], {
      price: {
        input: "1.25",
        cached_input: "0.125",
        output: "10",
        tiers: [{ aboveInput: 200_000, prices: { input: "2.5" } }],
      },
      tokenizer: "cl100k_base",
      endpoints: ["chat", "messages"],
    }),
    model("meta/llama 3/8b", ["local / llm"]),
    model("100%/free", ["local / llm"], { endpoints: ["embeddings"] }),
  ],
  plans: [{ name: "default", concurrency: 5, models: ["*"], priceMultiplier: "1" }],
  accounts: [
    {
      name: "acme",
      plan: "default",
      concurrency: null,
      balance: "100",
      keys: [{ name: "ci", key: secrets.accountKey }],
    },
  ],
  people: [{ email: "root@example.com", password: secrets.password, role: "admin", account: "acme" }],
}

export const sampleRequestId = "req_0199f0c0ffee7000800000000000cafe"
export const sampleJobId = "0199f0c0-ffee-7000-8000-00000000cafe"

/** Names that exist in the sample house, by the parameter of a path that they can stand for. */
export const examples: Readonly<Record<string, string>> = {
  a: "acme",
  u: "claude",
  m: "gpt-5",
  r: sampleRequestId,
  j: sampleJobId,
}

/** A body for each kind of route that takes one. */
export const exampleBodies: Readonly<Record<string, object>> = {
  "/api/accounts/{a}/topups": { amount: "1.5", note: "a gift" },
  "/api/accounts/{a}/adjustments": { amount: "-0.5", note: "a mistake" },
}

/** Puts requests on record, each of the account named as its account id. */
export async function record(store: Store, ...records: readonly RequestRecord[]): Promise<void> {
  const named = await Promise.all(
    records.map(async (each) => ({ ...each, accountId: (await findAccount(store.db, each.accountId))!.id })),
  )
  await postSettlements(store, named, { mayBeKnown: false })
}

/** Opens the books of the sample house with one request and one video that were charged a moment ago. */
export async function recordSample(store: Store): Promise<void> {
  await record(store, sampleRecord(sampleRequestId, { endedAt: Date.now() }))
  const account = (await findAccount(store.db, "acme"))!
  const credentialDigest = vault.digest(secrets.credential)
  await queuedJob(store, account.id, { id: sampleJobId, route: { ...klingRoute, credentialDigest } })
  await completeJob(store, completionOf(sampleJobId, 1, { needsCredential: true }))
}
