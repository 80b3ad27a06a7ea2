import { dlopen } from "bun:ffi"
import { readFileSync } from "node:fs"

/** Linux's number for "CPU time that the scheduler gave to all threads of a process" (CPUCLOCK_SCHED). */
const PROCESS_CPU_CLOCK = 2
const NANOS_PER_SECOND = 1_000_000_000

// A process's CPU clock counts nanoseconds and keeps the time of threads that ended. /proc/PID/stat counts in steps of
// 10 ms, and the schedstat files forget an ended thread, which JavaScriptCore's helpers do all the time.
const libc = dlopen("libc.so.6", { clock_gettime: { args: ["i32", "ptr"], returns: "i32" } })
const timespec = new BigInt64Array(2)

function cpuMicrosOfOne(pid: number): number {
  const clock = (~pid << 3) | PROCESS_CPU_CLOCK
  if (libc.symbols.clock_gettime(clock, timespec) !== 0) throw new Error(`process ${pid} is gone: no CPU time to read`)
  const [seconds = 0n, nanos = 0n] = timespec
  return (Number(seconds) * NANOS_PER_SECOND + Number(nanos)) / 1000
}

/** The process and all its descendants: an nginx master has its worker below it. */
export function processTree(pid: number): readonly number[] {
  return [pid, ...childrenOf(pid).flatMap(processTree)]
}

function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number)
  } catch {
    return [] // It ended while we looked, and so has no children any more.
  }
}

/** User and system CPU of a process and its descendants since they started, in microseconds. */
export function cpuMicros(pid: number): number {
  return processTree(pid).reduce((sum, one) => sum + cpuMicrosOfOne(one), 0)
}

/** Fields of /proc/PID/stat after the name in brackets: user and system time of children that ended and were waited for. */
const ENDED_CHILDREN_FIELDS = [13, 14] as const
/** Linux tells these times in hundredths of a second on every machine. */
const MICROS_PER_TICK = 10_000

/**
 * The same with the time of children that have ended since. A server whose processes come and go, as Postgres' do, would
 * otherwise seem to have used less than before whenever one of them goes.
 */
export function cpuMicrosEver(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  const ended = ENDED_CHILDREN_FIELDS.reduce((sum, field) => sum + Number(fields[field]), 0)
  return cpuMicros(pid) + ended * MICROS_PER_TICK
}

/** Resident memory of a process and its descendants (VmRSS), in megabytes of 1024 x 1024. */
export function residentMegabytes(pid: number): number {
  const kilobytes = processTree(pid).map((one) => {
    const line = readFileSync(`/proc/${one}/status`, "utf8").match(/^VmRSS:\s+(\d+) kB/m)
    return Number(line?.[1] ?? 0)
  })
  return kilobytes.reduce((sum, one) => sum + one, 0) / 1024
}
