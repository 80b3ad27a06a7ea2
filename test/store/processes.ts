import { join } from "node:path"
import type { DatabaseTarget } from "../../src/store/db.ts"

export interface Opener {
  readonly pid: number
  /** Its first line: "open" or "stuck"; or what it complained about. */
  readonly said: string
  kill(): Promise<void>
}

/** Starts another process on a database and waits until it has it, or has given up. */
export async function openElsewhere(target: DatabaseTarget, mode: "normal" | "slow" = "normal"): Promise<Opener> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "opener.ts"), JSON.stringify(target), mode], {
    stdout: "pipe",
    stderr: "pipe",
  })
  const { value } = await child.stdout.pipeThrough(new TextDecoderStream()).getReader().read()
  const said = value ?? (await child.stderr.text())
  return {
    pid: child.pid,
    said: said.trim(),
    async kill() {
      child.kill("SIGKILL")
      await child.exited
    },
  }
}
