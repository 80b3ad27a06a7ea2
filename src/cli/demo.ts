import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import { applyConfig } from "../catalog/apply.ts"
import type { ConfigDocument, ModelConfig, UpstreamConfig } from "../config/document.ts"
import type { Price } from "../core/price.ts"
import { logEvents } from "../events.ts"
import { newApiKey } from "../lib/ids.ts"
import { openLog } from "../log.ts"
import type { Settings } from "../settings.ts"
import { openHouse } from "./house.ts"
import { endOnSignal, start } from "./serve.ts"

/** `tollgate demo`: a gateway over simulated vendors, with data that is thrown away at the end. */
export async function demo(given: Settings): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), "tollgate-demo-"))
  const adminToken = newApiKey().slice(-24)
  const settings: Settings = {
    ...given,
    adminToken,
    dataDir,
    database: { kind: "sqlite", file: join(dataDir, "tollgate.db") },
    masterKey: null,
    redisUrl: null,
    results: null,
  }
  const simulator = await startSimulator()
  const cleanUp = async (): Promise<void> => {
    await simulator.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
  try {
    const log = openLog("warn")
    const house = await openHouse(settings)
    const demo = { apiKey: newApiKey(), email: "admin@example.com", password: newApiKey().slice(-16), adminToken }
    await applyConfig(
      house.store,
      house.vault,
      demoConfig((name) => simulatedVendor(simulator, name), demo),
      { prune: false },
    )
    const running = await start(settings, house, logEvents(log))
    endOnSignal(running, log, cleanUp)
    console.log(introduction(running.url, simulator.url, demo))
  } catch (error) {
    await cleanUp()
    throw error
  }
}

interface DemoSecrets {
  readonly apiKey: string
  readonly email: string
  readonly password: string
  readonly adminToken: string
}

/** Its recorded calls stay small, because a demo may run for days. */
function simulatedVendor(simulator: Simulator, name: string): string {
  const vendor = simulator.vendor(name)
  vendor.keepBodies = false
  return vendor.baseUrl
}

function demoConfig(baseUrl: (name: string) => string, secrets: DemoSecrets): ConfigDocument {
  const upstream = (vendor: string): UpstreamConfig => ({
    name: `${vendor}-simulated`,
    vendor,
    baseUrl: baseUrl(vendor),
    apiKeys: [`demo-credential-of-${vendor}`],
    headers: {},
    timeouts: {},
    concurrency: 0,
    settings: {},
  })
  const model = (
    name: string,
    price: Price,
    ...routes: readonly (readonly [vendor: string, model: string])[]
  ): ModelConfig => ({
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
  })
  return {
    upstreams: ["openai", "deepseek", "anthropic", "jina", "bfl"].map(upstream),
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
    // The simulated vendors' pictures are on this machine.
    allowPrivateAddresses: true,
  }
}

function introduction(url: string, simulatorUrl: string, { apiKey, email, password, adminToken }: DemoSecrets): string {
  return `
Tollgate demo: the gateway with simulated vendors. Everything is thrown away when it ends (Ctrl-C).

  gateway    listening on ${url}
  vendors    ${simulatorUrl} (simulated)
  API key    ${apiKey}   (account "demo", balance $100)
  sign-in    ${email} / ${password}
  models     gpt-5 (openai, then deepseek), deepseek-chat, claude-sonnet, text-embedding, reranker, gpt-image, flux, tts, whisper
  admin API  ${url}/api/openapi.json with the bearer ${adminToken}

For the examples of the README:

export TOLLGATE_URL=${url} TOLLGATE_KEY=${apiKey} TOLLGATE_ADMIN_TOKEN=${adminToken}

Ask for a completion:

curl ${url}/v1/chat/completions -H 'Authorization: Bearer ${apiKey}' -H 'content-type: application/json' \\
  -d '{"model":"gpt-5","messages":[{"role":"user","content":"Say hello to the gateway"}]}'

Stream one:

curl -N ${url}/v1/chat/completions -H 'Authorization: Bearer ${apiKey}' -H 'content-type: application/json' \\
  -d '{"model":"gpt-5","stream":true,"messages":[{"role":"user","content":"Count to ten"}]}'

Take the first vendor down and ask again: the second one answers.

curl ${simulatorUrl}/_sim/vendors/openai/behaviour -d '[{"kind":"status","status":500}]'
`
}
