/**
 * Everything that must be right before a change lands: types, style, then all tests.
 * Ends with one line, `N passed, N failed`, and a non-zero exit code if anything failed.
 */
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { ensureInstalled } from "../test/support/debian.ts"
import { postgresProgram } from "../test/support/postgres.ts"
import { redisProgram } from "../test/support/redis.ts"

const root = join(import.meta.dir, "..")
const bin = (name: string): string => join(root, "node_modules", ".bin", name)

/** Tests that load the machine run alone at the end, so that they disturb no other's time-outs. */
const heavy = ["test/heavy"]

/** Tests that mostly wait, for real minutes or for processes to come back, begin first and leave the processors to others. */
const patient = [
  "test/crash",
  "test/fault/recovery",
  "test/endpoints/model-list-window",
  "test/fault/circuit",
  "test/video",
]

interface Outcome {
  readonly passed: number
  readonly failed: number
}

const checks: readonly { name: string; command: readonly string[] }[] = [
  { name: "types", command: [bin("tsc"), "--noEmit"] },
  { name: "style", command: [bin("biome"), "check", "--error-on-warnings", "."] },
]

async function run(command: readonly string[]): Promise<{ code: number; output: string }> {
  const child = Bun.spawn([...command], {
    cwd: root,
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, NO_COLOR: "1", BUN_CONFIG_MAX_HTTP_REQUESTS: "65336" },
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, output: out + err }
}

async function check({ name, command }: (typeof checks)[number]): Promise<Outcome> {
  const { code, output } = await run(command)
  console.log(code === 0 ? `ok    ${name}` : `FAIL  ${name}\n${output}`)
  return { passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1 }
}

/** Runs one test file in a process of its own, so that no file depends on what another one left behind. */
async function runFile(file: string): Promise<Outcome> {
  const began = performance.now()
  const { code, output } = await run([bin("bun"), "test", `./${file}`, "--timeout", "120000"])
  const count = (word: string): number => Number(new RegExp(`^ *(\\d+) ${word}$`, "m").exec(output)?.[1] ?? 0)
  const passed = count("pass")
  // A file that died or ran nothing is a failure, whatever it counted.
  const failed = Math.max(count("fail"), code !== 0 || passed === 0 ? 1 : 0)
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  console.log(failed === 0 ? `ok    ${file}: ${passed} passed (${seconds} s)` : `FAIL  ${file}\n${output}`)
  return { passed, failed }
}

function testFiles(filters: readonly string[]): readonly string[] {
  const files = [...new Bun.Glob("{src,simulator,test}/**/*.test.ts").scanSync(root)].sort()
  return filters.length === 0 ? files : files.filter((file) => filters.some((filter) => file.includes(filter)))
}

async function inParallel<T>(
  jobs: readonly T[],
  width: number,
  work: (job: T) => Promise<Outcome>,
): Promise<Outcome[]> {
  const waiting = [...jobs]
  const outcomes: Outcome[] = []
  const worker = async (): Promise<void> => {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) outcomes.push(await work(job))
  }
  await Promise.all(Array.from({ length: width }, worker))
  return outcomes
}

// Once and before anything runs side by side, because two installations at a time would fail each other.
for (const program of [postgresProgram, redisProgram]) await ensureInstalled(program)

const filters = process.argv.slice(2)
const files = testFiles(filters)
const isIn = (places: readonly string[]) => (file: string) => places.some((place) => file.startsWith(place))
const isHeavy = isIn(heavy)
const isPatient = isIn(patient)
const quick = files.filter((file) => !isHeavy(file) && !isPatient(file))
const outcomes = [
  ...(filters.length === 0 ? await inParallel(checks, 2, check) : []),
  ...(
    await Promise.all([
      inParallel(files.filter(isPatient), 3, runFile),
      inParallel(quick, Math.max(2, availableParallelism()), runFile),
    ])
  ).flat(),
  ...(await inParallel(files.filter(isHeavy), 1, runFile)),
]
const passed = outcomes.reduce((sum, outcome) => sum + outcome.passed, 0)
const failed = outcomes.reduce((sum, outcome) => sum + outcome.failed, 0)
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 && passed > 0 ? 0 : 1)
