import OpenAI from "openai"
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import type { SimulatedVendor } from "../../simulator/vendor.ts"
import { model, startGateway, testKey, upstream } from "../support/gateway.ts"
import { type Compared, compare } from "./sides.ts"

export const emptyKey = "sk-test-empty-0123456789"
export const tightKey = "sk-test-tight-0123456789"

type Options = ConstructorParameters<typeof OpenAI>[0]

/** One vendor, once on its own and once behind a gateway, for the SDK to talk to. */
export interface Sides {
  readonly vendor: SimulatedVendor
  /** The SDK as people use it: only the address and the key are changed. */
  gatewayClient(options?: Options): OpenAI
  /** Runs the same scenario against the vendor itself and through the gateway; both begin with the same behaviour. */
  both<T>(scenario: (client: OpenAI) => Promise<T>, ...steps: Behaviour[]): Promise<Compared<T>>
  close(): Promise<void>
}

export async function openSides(): Promise<Sides> {
  const simulator = await startSimulator()
  const vendor = simulator.vendor("openai")
  const gateway = await startGateway({
    upstreams: [upstream("openai", vendor.baseUrl)],
    models: [model("sim-large", [{ upstream: "openai", model: "sim-large" }])],
    plans: [{ name: "default", concurrency: 0, models: ["*"], priceMultiplier: "1" }],
    accounts: [
      account("acme", testKey),
      account("empty", emptyKey, { balance: null }),
      account("tight", tightKey, { concurrency: 1 }),
    ],
  })
  const through = { baseURL: `${gateway.url}/v1`, apiKey: testKey }
  const gatewayClient = (options: Options = {}) => new OpenAI({ ...through, maxRetries: 0, ...options })
  return {
    vendor,
    gatewayClient,
    both: (scenario, ...steps) =>
      compare(vendor, through, (address) => scenario(new OpenAI({ ...address, maxRetries: 0 })), steps),
    async close() {
      await gateway.stop()
      await simulator.stop()
    },
  }
}

function account(name: string, key: string, more: { concurrency?: number; balance?: string | null } = {}) {
  return { name, plan: "default", concurrency: null, balance: "100", keys: [{ name: "k", key }], ...more }
}

/** What a program can find out about an error. */
export interface Thrown {
  readonly kind: string
  readonly message: string
  readonly status?: unknown
  readonly code?: unknown
  readonly param?: unknown
  readonly type?: unknown
}

export async function thrownBy(work: () => Promise<unknown>): Promise<Thrown> {
  try {
    const value = await work()
    throw new TypeError(`nothing was thrown, but this came: ${JSON.stringify(value)}`)
  } catch (error) {
    if (!(error instanceof Error)) throw error
    const kind = error.constructor.name
    if (!(error instanceof OpenAI.APIError)) return { kind, message: error.message }
    const { message, status, code, param, type } = error
    return { kind, message, status, code, param, type }
  }
}

const messages: ChatCompletionMessageParam[] = [{ role: "user", content: "Say hello" }]
/** A request to begin with. */
export const ask = { model: "sim-large", messages }
