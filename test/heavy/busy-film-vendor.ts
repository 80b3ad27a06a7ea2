/**
 * A vendor of very many films in a process of its own. Prints where it listens; when standard input closes it prints, as
 * JSON, what it saw of each film: when it was submitted and asked after, in milliseconds.
 */
import type { RecordedCall } from "../../simulator/calls.ts"
import { startSimulator } from "../../simulator/simulator.ts"

const simulator = await startSimulator()
const vendor = simulator.vendor("kling")
vendor.keepBodies = false

/** Films take from twenty to forty seconds. */
const vary = setInterval(() => {
  vendor.behave({ kind: "video_job", queuedMs: 2000, runningMs: 18_000 + Math.random() * 20_000, seconds: 6.5 })
}, 20)

const asked = new Map<string, number[]>()
let last: RecordedCall | undefined

/** The simulator forgets the oldest of very many calls. */
function note(): void {
  const { calls } = vendor
  for (const call of calls.slice(last === undefined ? 0 : calls.lastIndexOf(last) + 1)) {
    last = call
    const [, id] = call.method === "GET" ? (/\/videos\/text2video\/([\w-]+)$/.exec(call.path) ?? []) : []
    if (id === undefined) continue
    const times = asked.get(id) ?? []
    asked.set(id, times)
    times.push(Math.round(performance.timeOrigin + call.at))
  }
}
const noting = setInterval(note, 200)

console.log(`simulator listening on ${simulator.url}`)
await Bun.stdin.text()
clearInterval(vary)
clearInterval(noting)
note()
const films = [...vendor.memory.videos.values()].map(({ id, createdAt, plan }) => ({
  submitted: createdAt,
  ready: createdAt + (plan.queuedMs ?? 0) + (plan.runningMs ?? 0),
  asked: asked.get(id) ?? [],
}))
const submits = [...vendor.memory.submits.values()]
console.log(JSON.stringify({ films, submits, complaints: simulator.complaints }))
await simulator.stop()
process.exit(0)
