import type { ConfigDocument, ModelConfig, UpstreamConfig } from "../config/document.ts"
import type { Price } from "../core/price.ts"

export interface DemoSecrets {
  readonly apiKey: string
  readonly email: string
  readonly password: string
  readonly adminToken: string
}

interface DemoVideo {
  readonly name: string
  readonly vendor: string
  readonly served: string
  /** Dollars. */
  readonly second: string
}

/** A model of every vendor of videos. */
// biome-ignore format: a table
export const demoVideos: readonly DemoVideo[] = [
  { name: "kling-video", vendor: "kling", served: "kling-v3", second: "0.07" },
  { name: "seedance", vendor: "volcengine-ark", served: "doubao-seedance-2-0-260128", second: "0.06" },
  { name: "wan-video", vendor: "dashscope", served: "wan2.6-t2v", second: "0.1" },
  { name: "veo", vendor: "gemini", served: "veo-3.1-generate-preview", second: "0.4" },
  { name: "runway", vendor: "runway", served: "gen4.5", second: "0.12" },
  { name: "hailuo", vendor: "minimax", served: "MiniMax-Hailuo-2.3", second: "0.05" },
  { name: "grok-video", vendor: "xai", served: "grok-imagine-video", second: "0.05" },
  { name: "vidu", vendor: "vidu", served: "viduq3-pro", second: "0.08" },
  { name: "fal-video", vendor: "fal", served: "fal-ai/veo3.1/fast", second: "0.15" },
  { name: "replicate-video", vendor: "replicate", served: "bytedance/seedance-1-pro", second: "0.06" },
  { name: "cogvideox", vendor: "zhipu", served: "cogvideox-3", second: "0.03" },
  { name: "openai-video", vendor: "openai-compatible", served: "sora-2", second: "0.1" },
]

/** Vendors whose base URL is the version below their origin. */
const versioned = ["openai", "deepseek", "anthropic", "jina", "bfl"]

/** What the demo serves. `origin` gives the address of a simulated vendor. */
export function demoConfig(origin: (vendor: string) => string, secrets: DemoSecrets): ConfigDocument {
  return {
    upstreams: [
      ...versioned.map((vendor) => upstream(vendor, `${origin(vendor)}/v1`)),
      ...demoVideos.map(({ vendor }) => upstream(vendor, origin(vendor))),
    ],
    models: [
      model(
        "gpt-5",
        { input: "1.25", cached_input: "0.125", output: "10" },
        ["openai", "gpt-5-2026-08"],
        ["deepseek", "deepseek-chat"],
      ),
      model("deepseek-chat", { input: "0.28", output: "0.42" }, ["deepseek", "deepseek-chat"]),
      model("claude-sonnet", { input: "3", output: "15" }, ["anthropic", "claude-sonnet-5"]),
      model("text-embedding", { input: "0.02" }, ["openai", "text-embedding-3-small"]),
      model("reranker", { input: "0.02" }, ["jina", "jina-reranker-v3"]),
      model("gpt-image", { image: "0.04" }, ["openai", "gpt-image-2"]),
      model("flux", { image: "0.05" }, ["bfl", "flux-2-pro"]),
      model("tts", { character: "0.000015" }, ["openai", "gpt-4o-mini-tts"]),
      model("whisper", { second: "0.0001" }, ["openai", "whisper-1"]),
      ...demoVideos.map(({ name, vendor, served, second }) => model(name, { second }, [vendor, served])),
    ],
    plans: [{ name: "default", concurrency: 50, models: ["*"], priceMultiplier: "1" }],
    accounts: [
      {
        name: "demo",
        plan: "default",
        concurrency: null,
        balance: "100",
        keys: [{ name: "demo", key: secrets.apiKey }],
      },
    ],
    people: [{ email: secrets.email, password: secrets.password, role: "admin", account: "demo" }],
    // The simulated vendors' pictures and videos are on this machine.
    allowPrivateAddresses: true,
  }
}

function upstream(vendor: string, baseUrl: string): UpstreamConfig {
  return {
    name: `${vendor}-simulated`,
    vendor,
    baseUrl,
    apiKeys: [`demo-credential-of-${vendor}`],
    headers: {},
    timeouts: {},
    concurrency: 0,
    settings: {},
  }
}

function model(
  name: string,
  price: Price,
  ...routes: readonly (readonly [vendor: string, model: string])[]
): ModelConfig {
  return {
    name,
    price,
    tokenizer: null,
    endpoints: null,
    routes: routes.map(([vendor, served], position) => ({
      upstream: `${vendor}-simulated`,
      model: served,
      priority: position + 1,
      weight: 100,
    })),
  }
}
