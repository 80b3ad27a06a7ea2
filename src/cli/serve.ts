import { openGateway } from "../app.ts"
import { CatalogError } from "../catalog/problem.ts"
import { tellEvents } from "../events.ts"
import { type Listening, listen } from "../http/server.ts"
import { type Log, openLog } from "../log.ts"
import { openMetrics } from "../metrics.ts"
import type { Environment, Settings } from "../settings.ts"
import { applyFile, readConfigFile } from "./config-file.ts"
import { controlSocket, serveControl } from "./control.ts"
import { type House, openHouse } from "./house.ts"
import { UsageError } from "./usage-error.ts"

/** A gateway that listens. */
export interface Running {
  readonly url: string
  /** Drains, flushes and closes everything. */
  stop(): Promise<void>
}

/** `tollgate serve`: runs until a signal ends it. */
export async function serve(settings: Settings, env: Environment): Promise<void> {
  const source = settings.configFile === null ? null : readConfigFile(settings.configFile, env)
  const log = openLog(settings.logLevel)
  const house = await openHouse(settings)
  let running: Running
  try {
    if (source !== null) {
      // A start that cannot succeed must not have changed anything.
      await requireFreePort(settings)
      await applyFile(source, house, false)
    }
    running = await start(settings, house, log)
  } catch (error) {
    await house.store.close()
    // A database that this instance cannot serve, for want of the right master key for instance.
    throw error instanceof CatalogError ? new UsageError(error.message) : error
  }
  // First, because whoever reads the line may send a signal at once.
  endOnSignal(running, log)
  console.log(`tollgate is listening on ${running.url}`)
}

export async function start(settings: Settings, house: House, log: Log): Promise<Running> {
  const metrics = openMetrics()
  const gateway = await openGateway({
    ...house,
    events: tellEvents(log, metrics),
    metrics: metrics.text,
    dataDir: settings.dataDir,
    billing: settings.billing,
    redisUrl: settings.redisUrl,
    adminToken: settings.adminToken,
    results: settings.results,
    publicUrl: settings.publicUrl,
    allowPrivateAddresses: settings.allowPrivateAddresses,
  })
  let listening: Listening
  try {
    listening = listen(settings.host, settings.port, gateway.handle)
  } catch (error) {
    await gateway.close()
    throw cannotListen(settings, error)
  }
  const socket = settings.database.kind === "sqlite" ? controlSocket(settings.dataDir) : null
  const control = socket === null ? null : serveControl(socket, house, gateway.refresh)
  return {
    url: listening.url,
    async stop() {
      await gateway.drain()
      // What the drain time-out could not end, such as a body that never arrives, must not hold the process.
      await listening.stop(gateway.inFlight > 0)
      await control?.stop()
      await gateway.close()
      await house.store.close()
    },
  }
}

/** The first signal drains, a second one ends at once. */
export function endOnSignal(running: Running, log: Log, afterwards: () => Promise<void> = async () => {}): void {
  let ending = false
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (ending) process.exit(1)
    ending = true
    log.info({ signal }, "draining")
    try {
      await running.stop()
      await afterwards()
      process.exit(0)
    } catch (error) {
      log.error({ error: String(error) }, "did not end cleanly")
      process.exit(1)
    }
  }
  process.on("SIGTERM", end)
  process.on("SIGINT", end)
}

async function requireFreePort(settings: Settings): Promise<void> {
  try {
    await listen(settings.host, settings.port, () => new Response(null, { status: 503 })).stop(true)
  } catch (error) {
    throw cannotListen(settings, error)
  }
}

function cannotListen(settings: Settings, error: unknown): UsageError {
  const reason = error instanceof Error ? error.message : String(error)
  return new UsageError(`cannot listen on ${settings.host}:${settings.port}: ${reason}`)
}
