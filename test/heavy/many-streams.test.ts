import { afterAll, beforeAll, expect, test } from "bun:test"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import { askChat } from "../support/chat-client.ts"
import { type Caller, call, callMany } from "../support/crowd.ts"
import { chatRequest } from "../support/keep-alive-client.ts"
import { bareTollgate, type Instance, tollgate, until, workbench } from "../support/workbench.ts"

const bench = workbench()
let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator()
  for (const name of ["first", "second", "steady", "mute"]) simulator.vendor(name).keepBodies = false
})
afterAll(async () => {
  await bench.clear()
  await simulator.stop()
})

const key = "sk-heavy-0123456789"
const patienceMs = 30_000

async function startInstance(name: string, vendors: readonly string[], command = tollgate): Promise<Instance> {
  const config = {
    upstreams: vendors.map((vendor) => ({
      name: vendor,
      vendor: "openai",
      base_url: simulator.vendor(vendor).baseUrl,
      api_key: "k",
    })),
    models: vendors.map((vendor) => ({ name: vendor, price: "free", routes: [{ upstream: vendor }] })),
    accounts: [{ name: "acme", balance: 5, keys: [{ name: "k", key }] }],
  }
  const file = bench.file(`${name}.json`, JSON.stringify(config))
  const args = ["serve", "--port", "0", "--config", file, "--data", join(bench.folder, name)]
  return bench.start(args, { TOLLGATE_LOG: "error" }, command)
}

const streamOf = (model: string): string => chatRequest(key, { model, stream: true })

function chunk(delta: object, finish: string | null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }]
  return `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices })}\n\n`
}

const crowd = 1000
/** Far longer than it takes to open them all, so that the last begins while the first still waits. */
const holdMs = 9000

const starts = [
  ["first", "the start script", tollgate],
  ["second", "the bare program, which sees to the runtime's limit itself,", bareTollgate],
] as const

test.concurrent.each([...starts])(
  "%s: through %s a thousand streams are open at one moment, and all of them finish",
  async (vendorName, _, command) => {
    const vendor = simulator.vendor(vendorName)
    const usage = { id: "c", choices: [], usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } }
    const end = `${chunk({ content: "over" }, "stop")}data: ${JSON.stringify(usage)}\n\ndata: [DONE]\n\n`
    vendor.behave({ kind: "stream", frames: [chunk({ content: "open" }, null), end], gapMs: holdMs })
    const instance = await startInstance(vendorName, [vendorName], command)

    const callers = await callMany(crowd, instance.port, streamOf(vendorName))
    await until(() => vendor.openCalls() === crowd, holdMs)
    await until(() => callers.every((caller) => caller.text().includes('"content":"open"')), holdMs)
    expect([vendor.openCalls(), vendor.calls.length]).toEqual([crowd, crowd])

    const isComplete = (caller: Caller): boolean => caller.text().endsWith("0\r\n\r\n")
    await until(() => callers.every((caller) => isComplete(caller) || caller.closed), patienceMs)
    const right = callers.filter((caller) => {
      const text = caller.text()
      return text.startsWith("HTTP/1.1 200") && text.includes('"content":"over"') && text.includes("data: [DONE]\n\n")
    })
    expect(right).toHaveLength(crowd)
    expect(vendor.openCalls()).toBe(0)
    for (const caller of callers) caller.leave()
    instance.signal("SIGTERM")
    expect(await instance.ended).toBe(0)
  },
  60_000,
)

/** What must be as before once everybody has left. */
interface Footprint {
  readonly files: number
  readonly megabytes: number
}

function footprint(pid: number): Footprint {
  const resident = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]
  return { files: readdirSync(`/proc/${pid}/fd`).length, megabytes: Number(resident) / 1024 }
}

const batch = 100
const warmUpBatches = 5
const aborts = 10_000

test("ten thousand callers that leave early leave nothing behind: no sockets, no upstream calls, no memory", async () => {
  const steady = simulator.vendor("steady")
  const mute = simulator.vendor("mute")
  steady.behave({ kind: "chat", chunks: 2000, gapMs: 50 })
  mute.behave({ kind: "hang" })
  const instance = await startInstance("aborts", ["steady", "mute"])
  const nobodyIsServed = () => until(() => steady.openCalls() + mute.openCalls() === 0, patienceMs)

  /** Half leave in mid-stream, half before the first token. */
  const leaveAll = async (): Promise<void> => {
    const half = batch / 2
    const [begun, waiting] = await Promise.all([
      Promise.all(Array.from({ length: half }, () => call(instance.port, streamOf("steady")))),
      Promise.all(Array.from({ length: half }, () => call(instance.port, streamOf("mute")))),
    ])
    await until(() => begun.every((caller) => caller.text().includes('"content":"')), patienceMs)
    await until(() => mute.openCalls() === half, patienceMs)
    expect(waiting.filter((caller) => caller.text() !== "")).toEqual([])
    for (const caller of [...begun, ...waiting]) caller.leave()
    await nobodyIsServed()
  }
  /** Looks once the last sockets are gone, which takes the gateway a moment. */
  const settled = async (least: Footprint | null): Promise<Footprint> => {
    if (least !== null) await until(() => footprint(instance.pid).files <= least.files + 10, patienceMs)
    return footprint(instance.pid)
  }

  for (let done = 0; done < warmUpBatches; done++) await leaveAll()
  await Bun.sleep(500)
  const before = await settled(null)
  for (let left = 0; left < aborts / 2; left += batch) await leaveAll()
  const halfway = await settled(before)
  for (let left = 0; left < aborts / 2; left += batch) await leaveAll()
  const after = await settled(before)

  expect(after.files).toBeLessThanOrEqual(before.files + 10)
  expect(after.megabytes).toBeLessThan(before.megabytes + 60)
  expect(after.megabytes).toBeLessThan(halfway.megabytes + 20)

  steady.behave({ kind: "chat", text: "fresh" })
  expect(await askChat(instance.url, key, "steady")).toMatchObject({ status: 200 })
  instance.signal("SIGTERM")
  expect(await instance.ended).toBe(0)
}, 120_000)
