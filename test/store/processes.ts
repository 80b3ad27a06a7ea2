import { join } from "node:path"
import type { RequestRecord } from "../../src/core/request-record.ts"
import type { DatabaseTarget } from "../../src/store/db.ts"
import { requestRecord } from "./records.ts"

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

/** Starts another process that posts batches of charges, and waits for its end; gives what it posted. */
export async function postElsewhere(
  target: DatabaseTarget,
  accountIds: readonly string[],
  batches: number,
): Promise<readonly RequestRecord[]> {
  const program = join(import.meta.dir, "poster.ts")
  const args = [JSON.stringify(target), JSON.stringify(accountIds), String(batches)]
  const child = Bun.spawn([process.execPath, program, ...args], { stdout: "pipe", stderr: "pipe" })
  const [printed, complaint] = await Promise.all([child.stdout.text(), child.stderr.text()])
  if ((await child.exited) !== 0) throw new Error(complaint)
  const posted: readonly { accountId: string; charge: string }[] = printed
    .trim()
    .split("\n")
    .flatMap((line) => JSON.parse(line))
  return posted.map(({ accountId, charge }) => requestRecord(accountId, { charge: BigInt(charge) }))
}
