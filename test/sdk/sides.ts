import type { Behaviour } from "../../simulator/behaviour.ts"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import type { SimulatedVendor } from "../../simulator/vendor.ts"
import { model, startGateway, type TestGateway, testKey, upstream } from "../support/gateway.ts"

/** All that a client is told: it is set up alike for a vendor and for the gateway. */
export interface Address {
  readonly baseURL: string
  readonly apiKey: string
}

export interface Compared<T> {
  readonly direct: T
  readonly through: T
  /** How often the vendor was called. */
  readonly directCalls: number
  readonly throughCalls: number
}

/** One vendor, once on its own and once behind a gateway, for any client to talk to. */
export interface VendorSides {
  readonly simulator: Simulator
  readonly vendor: SimulatedVendor
  /** Speaks chat alone, so that other endpoints reach it over a bridge: the model "over-chat". */
  readonly chatVendor: SimulatedVendor
  /** Speaks messages alone: the model "over-messages". */
  readonly messagesVendor: SimulatedVendor
  readonly gateway: TestGateway
  readonly through: Address
  /** Runs the same scenario against the vendor itself and through the gateway; both begin with the same behaviour. */
  both<T>(scenario: (address: Address) => Promise<T>, ...steps: Behaviour[]): Promise<Compared<T>>
  reset(): void
  close(): Promise<void>
}

/** Names that mean the same at the vendor and at the gateway; the simulator treats models of some names in their own way. */
const shared = ["sim-large", "sim-embed", "sim-image", "dall-e-2", "gpt-4o-transcribe", "whisper-1", "tts-1"]

export async function openVendorSides(): Promise<VendorSides> {
  const simulator = await startSimulator()
  const [vendor, chatVendor, messagesVendor] = ["openai", "deepseek", "anthropic"].map(simulator.vendor) as [
    SimulatedVendor,
    SimulatedVendor,
    SimulatedVendor,
  ]
  const gateway = await startGateway({
    upstreams: [
      upstream("openai", vendor.baseUrl),
      upstream("deepseek", chatVendor.baseUrl, { vendor: "deepseek" }),
      upstream("anthropic", messagesVendor.baseUrl, { vendor: "anthropic" }),
    ],
    models: [
      ...shared.map((name) => model(name, [{ upstream: "openai", model: name }])),
      model("over-chat", ["deepseek"]),
      model("over-messages", ["anthropic"]),
    ],
  })
  const through = { baseURL: `${gateway.url}/v1`, apiKey: testKey }
  return {
    simulator,
    vendor,
    chatVendor,
    messagesVendor,
    gateway,
    through,
    both: (scenario, ...steps) => compare(vendor, through, scenario, steps),
    reset() {
      for (const each of [vendor, chatVendor, messagesVendor]) each.reset()
    },
    async close() {
      await gateway.stop()
      await simulator.stop()
    },
  }
}

/** Runs a scenario against a vendor itself, then by another way to it, both beginning with the same behaviour. */
export async function compare<T>(
  vendor: SimulatedVendor,
  detour: Address,
  scenario: (address: Address) => Promise<T>,
  steps: readonly Behaviour[],
): Promise<Compared<T>> {
  vendor.behave(...steps)
  const direct = await scenario({ baseURL: vendor.baseUrl, apiKey: "sk-vendor" })
  const directCalls = vendor.calls.length
  vendor.reset()
  vendor.behave(...steps)
  const through = await scenario(detour)
  return { direct, through, directCalls, throughCalls: vendor.calls.length }
}

const moments: ReadonlySet<string> = new Set(["created", "created_at", "completed_at", "timestamp"])
const mintedId = /^(resp|msg|rs|fc|call|chatcmpl|run|req)[_-][\w-]+$/
const fileAddress = /\/files\/[\w.-]+$/

/** A copy as plain data, without what differs between two calls of the same kind: moments, minted ids, addresses of files. */
export function settled<T>(value: T): T {
  return JSON.parse(JSON.stringify(value), (key, field: unknown) => {
    if (moments.has(key)) return 0
    if (typeof field !== "string") return field
    return field.replace(mintedId, "$1_…").replace(fileAddress, "/files/…")
  })
}
