import type { ConfigDocument } from "../../src/config/document.ts"
import { model, upstream } from "../support/gateway.ts"

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
      price: { input: "1.25", cached_input: "0.125", output: "10" },
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
