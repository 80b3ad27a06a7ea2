import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import { applyConfig } from "../catalog/apply.ts"
import { newApiKey } from "../lib/ids.ts"
import { openLog } from "../log.ts"
import type { Settings } from "../settings.ts"
import { type DemoSecrets, demoConfig, demoVideos } from "./demo-config.ts"
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
    const running = await start(settings, house, log)
    endOnSignal(running, log, cleanUp)
    console.log(introduction(running.url, simulator.url, demo))
  } catch (error) {
    await cleanUp()
    throw error
  }
}

/** The vendor's own origin. Its recorded calls stay small, because a demo may run for days. */
function simulatedVendor(simulator: Simulator, name: string): string {
  simulator.vendor(name).keepBodies = false
  return `${simulator.url}/${name}`
}

function introduction(url: string, simulatorUrl: string, { apiKey, email, password, adminToken }: DemoSecrets): string {
  return `
Tollgate demo: the gateway with simulated vendors. Everything is thrown away when it ends (Ctrl-C).

  gateway    listening on ${url}
  vendors    ${simulatorUrl} (simulated)
  API key    ${apiKey}   (account "demo", balance $100)
  sign-in    ${email} / ${password}
  models     gpt-5 (openai, then deepseek), deepseek-chat, claude-sonnet, text-embedding, reranker, gpt-image, flux, tts, whisper
  videos     ${demoVideos.map(({ name }) => name).join(", ")}
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

Have a video made. It takes some seconds: ask after it until it is completed, then fetch it. It is charged once, when it is completed.

job=$(curl -s ${url}/v1/videos -H 'Authorization: Bearer ${apiKey}' -H 'content-type: application/json' \\
  -d '{"model":"kling-video","prompt":"A gate at dawn","duration":5,"size":"1280x720"}' | grep -o '[0-9a-f-]\\{36\\}')

curl ${url}/v1/videos/$job -H 'Authorization: Bearer ${apiKey}'

curl ${url}/v1/videos/$job/content -H 'Authorization: Bearer ${apiKey}' -o gate.mp4
`
}
