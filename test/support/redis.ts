import { existsSync, mkdtempSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type DebianProgram, ensureInstalled } from "./debian.ts"

const binary = "/usr/bin/redis-server"
export const redisProgram: DebianProgram = { package: "redis-server", isThere: () => existsSync(binary) }
const readyWithinMs = 10_000
const startAttempts = 3

export interface RedisServer {
  readonly port: number
  readonly url: string
  /** Sends one command on a connection of its own. */
  command(name: string, ...args: string[]): Promise<unknown>
  /** Ends the server at once, as a crash does; it keeps no data. */
  kill(): Promise<void>
  /** Starts a killed server again, empty, on the same port. */
  start(): Promise<void>
  /** Stops the process where it stands: connections stay open, nothing is answered. */
  freeze(): void
  thaw(): void
  /** Ends the server for good and removes its folder. */
  stop(): Promise<void>
}

export interface RedisOptions {
  readonly password?: string
}

/** A throwaway server without persistence; it is gone when this process ends, in whatever way. */
export async function launchRedis({ password }: RedisOptions = {}): Promise<RedisServer> {
  await ensureInstalled(redisProgram)
  const folder = mkdtempSync(join(tmpdir(), "tollgate-redis-"))
  const begin = (port: number) => startServer(folder, port, password)
  let server = await startOnFreePort(begin)
  const { port } = server
  const url = urlOf(port, password)
  const end = async (): Promise<void> => {
    await server.guard.stdin.end()
    await server.guard.exited
  }
  return {
    port,
    url,
    command: (name, ...args) => command(url, name, args),
    kill: end,
    async start() {
      server = await begin(port)
    },
    freeze: () => void process.kill(server.pid, "SIGSTOP"),
    thaw: () => void process.kill(server.pid, "SIGCONT"),
    async stop() {
      await end()
      await Bun.$`rm -rf ${folder}`
    },
  }
}

interface RunningServer {
  readonly port: number
  readonly pid: number
  readonly guard: Bun.Subprocess<"pipe", "pipe", "ignore">
}

/**
 * The server is the child of a shell that waits for its input to end, which happens when this process ends in whatever
 * way (`bun test` runs no exit handlers, and a crash runs none either), and then kills the server.
 */
async function startServer(folder: string, port: number, password: string | undefined): Promise<RunningServer> {
  const log = join(folder, "redis.log")
  const settings = ["--bind", "127.0.0.1", "--port", String(port), "--save", "", "--appendonly", "no", "--dir", folder]
  const secret = password === undefined ? [] : ["--requirepass", password]
  const script = `trap "" INT TERM HUP; log="$1"; shift; "$@" >"$log" 2>&1 </dev/null & echo $!; cat >/dev/null; kill -KILL $!; wait`
  const guard = Bun.spawn(["/bin/sh", "-c", script, "sh", log, binary, ...settings, ...secret], {
    cwd: "/",
    stdin: "pipe",
    stdout: "pipe",
    stderr: "ignore",
  })
  guard.unref()
  const pid = await firstNumber(guard.stdout)
  const deadline = performance.now() + readyWithinMs
  while (performance.now() < deadline && isAlive(pid)) {
    if (await answers(urlOf(port, password))) return { port, pid, guard }
    await Bun.sleep(10)
  }
  await guard.stdin.end()
  throw new Error(`Redis did not start on port ${port}:\n${await Bun.file(log).text()}`)
}

async function firstNumber(output: ReadableStream<Uint8Array>): Promise<number> {
  const reader = output.getReader()
  const { value } = await reader.read()
  reader.releaseLock()
  return Number(new TextDecoder().decode(value).trim())
}

/** A server that could not have its port has ended; its process stays a zombie until the shell has waited for it. */
function isAlive(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, "latin1").includes(") Z ")
  } catch {
    return false
  }
}

async function startOnFreePort(begin: (port: number) => Promise<RunningServer>): Promise<RunningServer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await begin(freePort())
    } catch (error) {
      // Someone else may have taken the port between finding it free and using it.
      if (attempt === startAttempts) throw error
    }
  }
}

function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } })
  const { port } = listener
  listener.stop(true)
  return port
}

function urlOf(port: number, password: string | undefined): string {
  return `redis://${password === undefined ? "" : `:${password}@`}127.0.0.1:${port}`
}

async function command(url: string, name: string, args: readonly string[]): Promise<unknown> {
  const client = new Bun.RedisClient(url, { autoReconnect: false, connectionTimeout: 2000 })
  try {
    await client.connect()
    const answer: unknown = await client.send(name, [...args])
    return answer
  } finally {
    client.close()
  }
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await command(url, "PING", [])) === "PONG"
  } catch {
    return false
  }
}
