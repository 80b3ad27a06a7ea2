import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Subprocess } from "bun"
import { processTree } from "./cpu.ts"

const START_TIMEOUT_MS = 15_000
const STOP_TIMEOUT_MS = 3_000
const POLL_MS = 50
const ERROR_TAIL = 1_500

export interface Running {
  readonly name: string
  readonly pid: number
  readonly url: string
  /** The end of what it wrote to standard error, for the report when something went wrong. */
  lastWords(): string
}

export interface Command {
  readonly name: string
  readonly argv: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Where it listens; without it, it prints `listening on http://HOST:PORT`. */
  readonly url?: string
}

/** A temporary folder and the processes started in it; `close` takes all of it away again. */
export interface Workshop {
  readonly folder: string
  start(command: Command): Promise<Running>
  close(): Promise<void>
}

export function openWorkshop(): Workshop {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-bench-"))
  const children: Subprocess[] = []
  return {
    folder,
    async start(command) {
      const out = join(folder, `${command.name}.out`)
      const err = join(folder, `${command.name}.err`)
      // Output goes to files: a pipe would make the load generator read every log line of a target.
      const child = Bun.spawn([...command.argv], {
        cwd: folder,
        // Nothing of the caller's environment but this: a DATABASE_URL there must not change what is measured.
        env: { PATH: process.env.PATH ?? "/usr/sbin:/usr/bin:/sbin:/bin", ...command.env },
        stdin: "ignore",
        stdout: Bun.file(out),
        stderr: Bun.file(err),
      })
      children.push(child)
      const url = await untilListening(command, child, out, err)
      return { name: command.name, pid: child.pid, url, lastWords: () => tail(err) }
    },
    async close() {
      await Promise.all(children.map(stop))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function untilListening(command: Command, child: Subprocess, out: string, err: string): Promise<string> {
  const deadline = performance.now() + START_TIMEOUT_MS
  while (performance.now() < deadline) {
    if (child.exitCode !== null || child.signalCode !== null) {
      throw new Error(`${command.name} ended before it listened (exit ${child.exitCode}):\n${tail(err) || tail(out)}`)
    }
    const url = command.url ?? tail(out).match(/listening on (http:\/\/[\w.:[\]-]+)/)?.[1]
    if (url !== undefined && (await accepts(url))) return url
    await Bun.sleep(POLL_MS)
  }
  throw new Error(`${command.name} did not listen within ${START_TIMEOUT_MS / 1000} s:\n${tail(err) || tail(out)}`)
}

function tail(file: string): string {
  return readFileSync(file, "utf8").slice(-ERROR_TAIL)
}

function accepts(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname)
    socket.once("connect", () => {
      socket.destroy()
      resolve(true)
    })
    socket.once("error", () => resolve(false))
  })
}

/** Asks politely first, because an nginx master that is killed leaves its worker behind. */
async function stop(child: Subprocess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const tree = processTree(child.pid)
  child.kill("SIGTERM")
  const ended = await Promise.race([child.exited.then(() => true), Bun.sleep(STOP_TIMEOUT_MS).then(() => false)])
  if (ended) return
  for (const pid of tree) {
    try {
      process.kill(pid, "SIGKILL")
    } catch {
      // It ended in between, which is what was wanted.
    }
  }
}

/** A port that was free a moment ago, for programs that cannot choose one themselves. */
export function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } })
  const { port } = listener
  listener.stop(true)
  return port
}
