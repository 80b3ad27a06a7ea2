import { compile } from "../catalog/compile.ts"
import { describe } from "../catalog/problem.ts"
import type { Upstream } from "../core/catalog.ts"
import type { Settings } from "../settings.ts"
import { readCatalog } from "../store/catalog.ts"
import { StoreLockedError } from "../store/errors.ts"
import { probe } from "../upstream/client.ts"
import { upstreamHeaders } from "../upstream/headers.ts"
import { type House, openHouse } from "./house.ts"

/** How long a single check may take. */
const patienceMs = 5000

/** `tollgate doctor`: checks everything a gateway needs; exit code 1 where something is wrong. */
export async function doctor(settings: Settings): Promise<void> {
  const ward = new Ward()
  ward.note(true, "settings", `data in ${settings.dataDir}`)
  await checkRedis(settings, ward)
  const house = await checkDatabase(settings, ward)
  if (house !== null) {
    try {
      await checkCatalog(house, ward)
    } finally {
      await house.store.close()
    }
  }
  if (!ward.healthy) process.exitCode = 1
}

class Ward {
  healthy = true

  note(ok: boolean, what: string, finding: string): void {
    if (!ok) this.healthy = false
    console.log(`${ok ? "ok  " : "FAIL"}  ${what}: ${finding}`)
  }
}

async function checkDatabase(settings: Settings, ward: Ward): Promise<House | null> {
  const { kind } = settings.database
  try {
    const house = await openHouse(settings)
    await house.store.ping()
    ward.note(true, "database", `${kind}, tables up to date`)
    return house
  } catch (error) {
    const running = error instanceof StoreLockedError
    ward.note(running, "database", running ? `${error.message}; upstreams were not checked` : messageOf(error))
    return null
  }
}

async function checkRedis({ redisUrl }: Settings, ward: Ward): Promise<void> {
  if (redisUrl === null) return ward.note(true, "redis", "not configured; limits are held in process")
  const client = new Bun.RedisClient(redisUrl, { autoReconnect: false, connectionTimeout: patienceMs })
  try {
    await client.connect()
    await client.send("PING", [])
    ward.note(true, "redis", "answers")
  } catch (error) {
    ward.note(false, "redis", messageOf(error))
  } finally {
    client.close()
  }
}

async function checkCatalog(house: House, ward: Ward): Promise<void> {
  const compiled = compile(await readCatalog(house.store.db), house.vault)
  if (!compiled.usable) {
    for (const problem of compiled.problems) ward.note(false, "catalog", describe(problem))
    return
  }
  const { models, upstreams } = compiled.snapshot
  ward.note(true, "catalog", `${models.size} models, ${upstreams.size} upstreams`)
  await Promise.all([...upstreams.values()].map((upstream) => checkUpstream(upstream, ward)))
}

/** Any answer shows that the address is right; 401 and 403 show that a credential is not. */
async function checkUpstream(upstream: Upstream, ward: Ward): Promise<void> {
  const secrets = upstream.credentials.length === 0 ? [null] : upstream.credentials
  for (const [position, secret] of secrets.entries()) {
    const what = `upstream ${upstream.name}${secrets.length > 1 ? ` (key ${position + 1})` : ""}`
    try {
      const headers = upstreamHeaders(new Headers(), upstream, null, secret)
      const status = await probe(`${upstream.baseUrl}/models`, headers, AbortSignal.timeout(patienceMs))
      const refused = status === 401 || status === 403
      ward.note(
        !refused,
        what,
        refused ? `answers ${status}: the vendor refuses the credential` : `answers (${status})`,
      )
    } catch (error) {
      ward.note(false, what, `${upstream.baseUrl} does not answer: ${messageOf(error)}`)
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
