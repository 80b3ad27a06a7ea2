/**
 * `npm run bench`: what Tollgate costs in CPU and memory, as ratios to nginx measured in the same run. Clock times on a
 * shared machine say little, so only the CPU time of the measured process counts.
 */
import { parseArgs } from "node:util"
import { BRIDGE, benchBridge } from "./bridge.ts"
import { benchCharges, CHARGES } from "./charges.ts"
import { residentMegabytes } from "./cpu.ts"
import { type Dose, type Effort, FULL, measureRound, QUICK, type Round } from "./measure.ts"
import { CHUNK_GAP_MS, findNginx, startUpstream } from "./nginx.ts"
import { openWorkshop, type Running, type Workshop } from "./processes.ts"
import { judge, median, type Result, renderTable, type Verdict } from "./table.ts"
import { FLOOR, PRODUCT, type Scene, type Target, targets } from "./targets.ts"
import { CHUNKS_PER_STREAM } from "./traffic.ts"

/** Memory counts as idle this long after the start, when the start's own garbage had its chance to go. */
const SETTLE_MS = 1_000
const EXIT = { ok: 0, failed: 1, usage: 2, interrupted: 130 } as const

const USAGE = `usage: npm run bench -- [--quick] [--strict] [--only NAME]...
  --quick   two shorter rounds (about one minute instead of about three and a half)
  --strict  exit 1 when a budget is missed
  --only    measure only this (${names().join(", ")}); may be repeated`

function names(): readonly string[] {
  return [...targets.map((target) => target.name), CHARGES, BRIDGE]
}

interface Options {
  readonly effort: Effort
  readonly strict: boolean
  readonly chosen: readonly Target[]
  readonly charges: boolean
  readonly bridge: boolean
}

interface Entrant {
  readonly target: Target
  readonly running: Running
  readonly idleMegabytes: number
  readonly rounds: Round[]
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      strict: { type: "boolean", default: false },
      only: { type: "string", multiple: true, default: [] },
    },
  })
  for (const name of values.only) {
    if (!names().includes(name)) throw new Error(`--only ${name}: there is no such target`)
  }
  const isChosen = (name: string) => values.only.length === 0 || values.only.includes(name)
  return {
    effort: values.quick ? QUICK : FULL,
    strict: values.strict,
    chosen: targets.filter((target) => isChosen(target.name)),
    charges: isChosen(CHARGES),
    bridge: isChosen(BRIDGE),
  }
}

async function bench(options: Options, workshop: Workshop): Promise<number> {
  const nginx = findNginx()
  const upstream = await startUpstream(nginx, workshop)
  const verdicts = [
    ...(options.chosen.length > 0 ? await benchTargets(options, { nginx, upstream, workshop }) : []),
    ...(options.charges ? await benchCharges(options.effort, { upstream, workshop }) : []),
    ...(options.bridge ? await benchBridge(options.effort, { upstream, workshop }) : []),
  ]
  return options.strict && verdicts.some((verdict) => verdict.over) ? EXIT.failed : EXIT.ok
}

async function benchTargets(options: Options, { nginx, upstream, workshop }: Scene): Promise<readonly Verdict[]> {
  console.log(`floor: nginx ${nginx.version}, plain proxy, 1 worker; upstream: nginx with its echo module`)
  console.log(
    `streams: ${CHUNKS_PER_STREAM} chunks, ${CHUNK_GAP_MS} ms apart; a chunk's cost includes its share of the request`,
  )
  const started: (readonly [Target, Running])[] = []
  for (const target of options.chosen) started.push([target, await target.start({ nginx, upstream, workshop })])
  await Bun.sleep(SETTLE_MS)
  const entrants = started.map(([target, running]): Entrant => {
    return { target, running, idleMegabytes: residentMegabytes(running.pid), rounds: [] }
  })
  for (const entrant of entrants) await busy(entrant, options.effort.warmUp)
  for (let number = 1; number <= options.effort.rounds; number++) {
    for (const entrant of entrants) {
      const round = await busy(entrant, options.effort.round)
      entrant.rounds.push(round)
      console.log(describeRound(number, entrant.target.name, round))
    }
  }
  return report(entrants.map(resultOf))
}

async function busy({ target, running }: Entrant, dose: Dose): Promise<Round> {
  try {
    return await measureRound(target, running, dose)
  } catch (error) {
    const cause = error instanceof Error ? error.message : error
    throw new Error(`${target.name}: ${cause}\n${running.lastWords()}`)
  }
}

function describeRound(number: number, name: string, round: Round): string {
  const requests = `${round.requests} requests at ${round.microsPerRequest.toFixed(1)} µs`
  const chunks = `${round.chunks} chunks at ${round.microsPerChunk.toFixed(1)} µs`
  return `round ${number} ${name}: ${requests}; ${chunks} (${round.readsPerChunk.toFixed(2)} reads per chunk)`
}

function resultOf({ target, idleMegabytes, rounds }: Entrant): Result {
  return {
    name: target.name,
    microsPerRequest: median(rounds.map((round) => round.microsPerRequest)),
    microsPerChunk: median(rounds.map((round) => round.microsPerChunk)),
    idleMegabytes,
    loadedMegabytes: Math.max(...rounds.map((round) => round.loadedMegabytes)),
  }
}

function report(results: readonly Result[]): readonly Verdict[] {
  const floor = results.find((result) => result.name === FLOOR)
  const product = results.find((result) => result.name === PRODUCT)
  console.log(`\n${renderTable(results, floor)}`)
  if (product === undefined) return []
  const verdicts = judge(product, floor)
  console.log(`\n${verdicts.map((verdict) => verdict.line).join("\n")}`)
  return verdicts
}

async function main(): Promise<number> {
  let options: Options
  try {
    options = readOptions(process.argv.slice(2))
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n${USAGE}`)
    return EXIT.usage
  }
  const workshop = openWorkshop()
  let interrupted = false
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      interrupted = true
      void workshop.close().finally(() => process.exit(EXIT.interrupted))
    })
  }
  try {
    return await bench(options, workshop)
  } catch (error) {
    if (interrupted) return EXIT.interrupted // What failed, failed because its processes are being ended.
    console.error(error instanceof Error ? error.message : error)
    return EXIT.failed
  } finally {
    await workshop.close()
  }
}

process.exit(await main())
