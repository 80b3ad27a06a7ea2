import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { SQL } from "bun"
import { type DebianProgram, ensureInstalled } from "./debian.ts"

export const postgresProgram: DebianProgram = {
  package: "postgresql",
  isThere: () => installedBinaries() !== undefined,
}
const binariesRoot = "/usr/lib/postgresql"
const serviceUser = "postgres"
const databaseUser = "tollgate"
const readyWithinMs = 20_000
const startAttempts = 3

export interface PostgresServer {
  /** The maintenance database; tests take one of their own from `freshDatabase`. */
  readonly url: string
  freshDatabase(): Promise<string>
  /** Of the first of the server's processes, which all others descend from. */
  pid(): number
  /** Ends the server at once, as a crash does; the data stays. */
  kill(): Promise<void>
  /** Starts a killed server again, on the same port and data. */
  start(): Promise<void>
  restart(): Promise<void>
  /** Holds the server and all its processes: connections stay open and nothing answers, as when a machine hangs. */
  pause(): void
  resume(): void
  /** Ends the server for good and removes its folder. */
  stop(): Promise<void>
}

export interface PostgresOptions {
  /** Flush every commit to the disk, for tests about durability; off otherwise because it is slow. */
  readonly durable?: boolean
}

let shared: Promise<PostgresServer> | undefined

/** The one throwaway server of this test process, started by whoever asks first and ended with the process. */
export function startPostgres(): Promise<PostgresServer> {
  shared ??= launchPostgres().then((server) => ({
    ...server,
    async stop() {
      shared = undefined
      await server.stop()
    },
  }))
  return shared
}

/** A server for one test alone, such as one that stops and starts it while other tests need theirs. */
export async function launchPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const binaries = await findBinaries()
  const folder = mkdtempSync(join(tmpdir(), "tollgate-postgres-"))
  const data = join(folder, "data")
  if (asRoot()) chownSync(folder, await idOf("-u"), await idOf("-g"))
  const guard = cleanUpAfter(join(binaries, "pg_ctl"), folder, data)
  await run([join(binaries, "initdb"), "-D", data, "-U", databaseUser, "-A", "trust", "-E", "UTF8", "--no-sync"])

  const begin = (port: number) => startServer(join(binaries, "postgres"), data, port, options.durable ?? false)
  let server = await startOnFreePort(begin)
  const { port } = server
  const urlOf = (database: string) => `postgres://${databaseUser}@127.0.0.1:${port}/${database}`
  const kill = async () => {
    server.child.kill("SIGQUIT")
    await server.child.exited
  }
  const start = async () => {
    server = await begin(port)
  }
  let databases = 0
  return {
    url: urlOf("postgres"),
    pid: () => server.child.pid,
    kill,
    start,
    async freshDatabase() {
      const name = `test_${++databases}`
      await administer(urlOf("postgres"), (sql) => sql.unsafe(`create database ${name}`))
      return urlOf(name)
    },
    async restart() {
      await kill()
      await start()
    },
    pause: () => signalAll(server.child.pid, "SIGSTOP"),
    resume: () => signalAll(server.child.pid, "SIGCONT"),
    stop: guard,
  }
}

/** The first process starts no other one while it is held, so it is held first, and goes on last. */
function signalAll(pid: number, signal: "SIGSTOP" | "SIGCONT"): void {
  const children = () =>
    readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number)
  if (signal === "SIGSTOP") process.kill(pid, signal)
  for (const child of children()) process.kill(child, signal)
  if (signal === "SIGCONT") process.kill(pid, signal)
}

/**
 * A shell that waits for its input to end, which happens when this process ends in whatever way (`bun test` runs no
 * exit handlers, and a crash runs none either), and then stops the server and removes its folder.
 */
function cleanUpAfter(pgCtl: string, folder: string, data: string): () => Promise<void> {
  const script = `trap "" INT TERM HUP; cat >/dev/null; "$1" stop -D "$2" -m immediate -w; rm -rf "$3"`
  const shell = Bun.spawn(unprivileged(["/bin/sh", "-c", script, "sh", pgCtl, data, folder]), {
    cwd: "/",
    stdin: "pipe",
    stdout: "ignore",
    stderr: "ignore",
  })
  shell.unref()
  return async () => {
    await shell.stdin.end()
    await shell.exited
  }
}

/** One statement on a connection that is closed again. */
export async function administer<T>(url: string, work: (sql: SQL) => Promise<T>): Promise<T> {
  const sql = new SQL(url, { max: 1, connectionTimeout: 5 })
  try {
    return await work(sql)
  } finally {
    await sql.close()
  }
}

interface RunningServer {
  readonly port: number
  readonly child: Bun.Subprocess
}

async function startServer(binary: string, data: string, port: number, durable: boolean): Promise<RunningServer> {
  const settings = {
    listen_addresses: "127.0.0.1",
    port: String(port),
    unix_socket_directories: "",
    fsync: durable ? "on" : "off",
    shared_buffers: "32MB",
    max_connections: "120",
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])
  const child = Bun.spawn(unprivileged([binary, "-D", data, ...flags]), {
    cwd: "/",
    stdout: "ignore",
    stderr: Bun.file(`${data}.log`),
  })
  const deadline = Date.now() + readyWithinMs
  while (Date.now() < deadline && child.exitCode === null) {
    if (await accepts(port)) return { port, child }
    await Bun.sleep(30)
  }
  child.kill("SIGQUIT")
  await child.exited
  throw new Error(`Postgres did not start on port ${port}:\n${await Bun.file(`${data}.log`).text()}`)
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

async function accepts(port: number): Promise<boolean> {
  try {
    await administer(`postgres://${databaseUser}@127.0.0.1:${port}/postgres`, (sql) => sql.unsafe("select 1"))
    return true
  } catch {
    return false
  }
}

function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } })
  const { port } = listener
  listener.stop(true)
  return port
}

async function findBinaries(): Promise<string> {
  await ensureInstalled(postgresProgram)
  return installedBinaries()!
}

/** The newest version that has a server: the folder is there for the client alone too. */
function installedBinaries(): string | undefined {
  if (!existsSync(binariesRoot)) return undefined
  const versions = readdirSync(binariesRoot).sort((a, b) => Number(b) - Number(a))
  return versions
    .map((version) => join(binariesRoot, version, "bin"))
    .find((folder) => existsSync(join(folder, "initdb")))
}

function asRoot(): boolean {
  return process.getuid?.() === 0
}

async function idOf(flag: "-u" | "-g"): Promise<number> {
  return Number(await run(["/usr/bin/id", flag, serviceUser], { privileged: true }))
}

/** Postgres refuses to run as root. */
function unprivileged(command: readonly string[]): string[] {
  if (!asRoot()) return [...command]
  return ["setpriv", "--reuid", serviceUser, "--regid", serviceUser, "--clear-groups", "--", ...command]
}

interface RunOptions {
  readonly privileged?: boolean
  readonly env?: Readonly<Record<string, string>>
}

async function run(command: readonly string[], options: RunOptions = {}): Promise<string> {
  const child = Bun.spawn(options.privileged ? [...command] : unprivileged(command), {
    cwd: "/",
    env: { ...process.env, ...options.env },
    stdout: "pipe",
    stderr: "pipe",
  })
  const [output, complaint, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}:\n${complaint}`)
  return output
}
