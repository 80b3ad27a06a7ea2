import type { AccountConfig, PlanConfig } from "../../src/config/document.ts"
import { type TestGateway, testAdminToken, testKey } from "./gateway.ts"

/** The plan "default" with a limit of requests in flight; 0 is none. */
export function plan(concurrency: number): PlanConfig {
  return { name: "default", concurrency, models: ["*"], priceMultiplier: "1" }
}

/** The account "acme" with a limit of its own; null leaves it to the plan. */
export function acme(concurrency: number | null): AccountConfig {
  return { name: "acme", plan: "default", concurrency, balance: "100", keys: [{ name: "test", key: testKey }] }
}

/** The slots that the account "acme" holds, as the back office tells. */
export async function slotsHeld({ url }: TestGateway): Promise<number> {
  const response = await fetch(`${url}/api/accounts/acme`, { headers: { authorization: `Bearer ${testAdminToken}` } })
  const { in_flight } = (await response.json()) as { in_flight: number }
  return in_flight
}

const patienceMs = 5000

/** Waits until the account holds so many slots; tells how long that took. */
export async function untilHeld(gateway: TestGateway, count: number): Promise<number> {
  const began = performance.now()
  while ((await slotsHeld(gateway)) !== count) {
    if (performance.now() - began > patienceMs)
      throw new Error(`the account holds ${await slotsHeld(gateway)} slots, not ${count}, after ${patienceMs} ms`)
    await Bun.sleep(5)
  }
  return performance.now() - began
}

/** An upstream whose calls wait until they are let go, so that requests in flight are in flight for certain. */
export interface GatedUpstream extends Disposable {
  readonly baseUrl: string
  /** Calls that wait now. */
  readonly waiting: number
  /** Calls in all. */
  readonly calls: number
  /** Lets the oldest of the waiting calls go on, or so many. */
  release(count?: number): void
}

const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
const message = { role: "assistant", content: "hello" }

function chunk(choices: readonly object[], more: object = {}): string {
  return `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "up", choices, ...more })}\n\n`
}

/** Streams send their first token at once and the rest when they are let go. */
export function gatedUpstream(): GatedUpstream {
  const waiting: (() => void)[] = []
  let calls = 0
  const gate = (): Promise<void> => new Promise((resolve) => waiting.push(resolve))
  async function* streamed(): AsyncGenerator<string> {
    yield chunk([{ index: 0, delta: message, finish_reason: null }])
    await gate()
    yield `${chunk([{ index: 0, delta: {}, finish_reason: "stop" }])}${chunk([], { usage })}data: [DONE]\n\n`
  }
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { stream } = (await request.json()) as { stream?: boolean }
      calls++
      if (stream) return new Response(streamed(), { headers: { "content-type": "text/event-stream" } })
      await gate()
      return Response.json({
        id: "c",
        object: "chat.completion",
        choices: [{ index: 0, message, finish_reason: "stop" }],
        usage,
      })
    },
  })
  return {
    baseUrl: `${server.url.origin}/v1`,
    get waiting() {
      return waiting.length
    },
    get calls() {
      return calls
    },
    release(count = waiting.length) {
      for (const go of waiting.splice(0, count)) go()
    },
    [Symbol.dispose]: () => void server.stop(true),
  }
}
