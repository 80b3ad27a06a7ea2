import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const root = join(import.meta.dir, "..", "..")
/** The command as people start it. */
export const tollgate: readonly string[] = [join(root, "bin", "tollgate")]
/** The same program without the start script around it. */
export const bareTollgate: readonly string[] = [join(root, "node_modules", ".bin", "bun"), join(root, "src", "main.ts")]

const startsWithinMs = 15_000
/** A command that has not ended by then never will; its exit code is null. */
const endsWithinMs = 20_000

export type Variables = Readonly<Record<string, string>>

/** What a command that ended has left behind. */
export interface Outcome {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** A `serve` or `demo` that listens. */
export interface Instance {
  readonly url: string
  readonly port: number
  readonly pid: number
  /** What it has printed so far. */
  output(): string
  signal(name: NodeJS.Signals): void
  /** Resolves with its exit code once it has ended by itself or by a signal. */
  readonly ended: Promise<number>
}

/** Folders, files and processes of one test file; `clear` ends and removes all of them. */
export interface Workbench {
  readonly folder: string
  /** The path of a data folder that does not exist yet. */
  freshData(): string
  /** Writes a file and gives its path. */
  file(name: string, text: string): string
  /** Runs a command to its end. */
  run(args: readonly string[], env?: Variables, command?: readonly string[]): Promise<Outcome>
  /** Starts a command and waits until it listens; an end before that is an error with what it said. */
  start(args: readonly string[], env?: Variables, command?: readonly string[]): Promise<Instance>
  clear(): Promise<void>
}

export function workbench(): Workbench {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-process-"))
  const children = new Set<Bun.Subprocess<"ignore", "pipe", "pipe">>()

  // Neither the settings of the person who runs the tests nor a ./data of the checkout may take part.
  const spawn = (args: readonly string[], env: Variables, command: readonly string[]) => {
    const child = Bun.spawn([...command, ...args], {
      cwd: folder,
      env: { PATH: process.env.PATH ?? "", HOME: folder, TMPDIR: folder, NO_COLOR: "1", ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    })
    children.add(child)
    void child.exited.then(() => children.delete(child))
    return child
  }

  let dataFolders = 0
  return {
    folder,
    freshData: () => join(folder, `data-${++dataFolders}`),
    file(name, text) {
      const path = join(folder, name)
      writeFileSync(path, text)
      return path
    },
    async run(args, env = {}, command = tollgate) {
      const child = spawn(args, env, command)
      let late = false
      const timer = setTimeout(() => {
        late = true
        child.kill("SIGKILL")
      }, endsWithinMs)
      const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
      clearTimeout(timer)
      return { code: late ? null : code, out, err }
    },
    async start(args, env = {}, command = tollgate) {
      const child = spawn(args, env, command)
      let printed = ""
      const collect = async (stream: ReadableStream<Uint8Array>): Promise<void> => {
        const decoder = new TextDecoder()
        for await (const bytes of stream) printed += decoder.decode(bytes, { stream: true })
      }
      const read = Promise.all([collect(child.stdout), collect(child.stderr)])
      const ended = read.then(() => child.exited)
      const url = await until(
        () => /listening on (http:\/\/\S+)/.exec(printed)?.[1] ?? (child.exitCode === null ? null : "ended"),
        startsWithinMs,
      )
      if (url === "ended") throw new Error(`${args.join(" ")} ended with ${await ended}:\n${printed}`)
      return {
        url,
        port: Number(new URL(url).port),
        pid: child.pid,
        output: () => printed,
        signal: (name) => child.kill(name),
        ended,
      }
    },
    async clear() {
      for (const child of [...children]) {
        child.kill("SIGKILL")
        await child.exited
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const lookEveryMs = 10

/** Waits until a check, which may itself ask someone, gives something; fails after `patienceMs`. */
export async function until<T>(
  check: () => T | null | false | undefined | Promise<T | null | false | undefined>,
  patienceMs = 5000,
): Promise<T> {
  const deadline = performance.now() + patienceMs
  for (;;) {
    const value = await check()
    if (value !== undefined && value !== null && value !== false) return value
    if (performance.now() > deadline) throw new Error(`not so within ${patienceMs} ms: ${check}`)
    await Bun.sleep(lookEveryMs)
  }
}
