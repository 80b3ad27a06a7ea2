import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { startSimulator } from "../../simulator/simulator.ts"
import { applyConfig } from "../catalog/apply.ts"
import type { ConfigDocument } from "../config/document.ts"
import { logEvents } from "../events.ts"
import { newApiKey } from "../lib/ids.ts"
import { openLog } from "../log.ts"
import type { Settings } from "../settings.ts"
import { openHouse } from "./house.ts"
import { endOnSignal, start } from "./serve.ts"

/** `tollgate demo`: a gateway over simulated vendors, with data that is thrown away at the end. */
export async function demo(given: Settings): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), "tollgate-demo-"))
  const settings: Settings = {
    ...given,
    dataDir,
    database: { kind: "sqlite", file: join(dataDir, "tollgate.db") },
    masterKey: null,
  }
  const simulator = await startSimulator()
  const cleanUp = async (): Promise<void> => {
    await simulator.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
  try {
    const log = openLog("warn")
    const house = await openHouse(settings)
    const demo = { apiKey: newApiKey(), email: "admin@example.com", password: newApiKey().slice(-16) }
    const vendors = ["openai", "deepseek"].map((name) => simulator.vendor(name))
    for (const vendor of vendors) vendor.keepBodies = false
    const [openai, deepseek] = vendors.map((vendor) => vendor.baseUrl)
    await applyConfig(house.store, house.vault, demoConfig(openai!, deepseek!, demo), { prune: false })
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
}

function demoConfig(openai: string, deepseek: string, secrets: DemoSecrets): ConfigDocument {
  const upstream = { headers: {}, timeouts: {}, concurrency: 0, settings: {} }
  return {
    upstreams: [
      { ...upstream, name: "openai-simulated", vendor: "openai", baseUrl: openai, apiKeys: ["demo-openai-credential"] },
      {
        ...upstream,
        name: "deepseek-simulated",
        vendor: "deepseek",
        baseUrl: deepseek,
        apiKeys: ["demo-deepseek-credential"],
      },
    ],
    models: [
      {
        name: "gpt-5",
        price: { input: "1.25", cached_input: "0.125", output: "10" },
        endpoints: null,
        routes: [
          { upstream: "openai-simulated", model: "gpt-5-2026-08", priority: 1, weight: 100 },
          { upstream: "deepseek-simulated", model: "deepseek-chat", priority: 2, weight: 100 },
        ],
      },
      {
        name: "deepseek-chat",
        price: { input: "0.28", output: "0.42" },
        endpoints: null,
        routes: [{ upstream: "deepseek-simulated", model: "deepseek-chat", priority: 1, weight: 100 }],
      },
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
  }
}

function introduction(url: string, simulatorUrl: string, { apiKey, email, password }: DemoSecrets): string {
  return `
Tollgate demo: the gateway with simulated vendors. Everything is thrown away when it ends (Ctrl-C).

  gateway    listening on ${url}
  vendors    ${simulatorUrl} (simulated)
  API key    ${apiKey}   (account "demo", balance $100)
  sign-in    ${email} / ${password}
  models     gpt-5 (openai, then deepseek), deepseek-chat

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
