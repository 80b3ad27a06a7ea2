import { type Behaviour, healthy } from "./behaviour.ts"
import type { RecordedCall } from "./calls.ts"
import type { OpenCall } from "./exchange.ts"
import { emptyMemory, type VendorMemory } from "./memory.ts"

/** One vendor as a test sees it: what it was asked, and how it answers. */
export interface SimulatedVendor {
  readonly name: string
  /** `http://HOST:PORT/NAME/v1`; any other path after the name works as well. */
  readonly baseUrl: string
  /** Every request received, in order; the oldest of very many are forgotten. */
  readonly calls: readonly RecordedCall[]
  /** Jobs and files it has made, by id. */
  readonly memory: VendorMemory
  /** What `GET /models` lists. */
  models: readonly string[]
  /** False keeps only the length and the SHA-256 of coming bodies. */
  keepBodies: boolean
  /** Calls that are being received or answered now. */
  openCalls(): number
  /** One step for each coming call; the last one sticks. None: healthy again. */
  behave(...steps: readonly Behaviour[]): void
  /** Resets every open and coming call until `up`, as if the machine were gone; steps are kept for later. */
  down(): void
  up(): void
  /** Answers 401 to any other credential; null accepts all, as at first. */
  expectKey(key: string | null): void
  /** Healthy, up, any key; calls, jobs and files forgotten. */
  reset(): void
}

/** The server's side of a vendor. */
export interface VendorState extends SimulatedVendor {
  /** `cut` resets the call's connection. */
  begin(call: OpenCall, cut: () => void): void
  end(call: OpenCall): void
  /** Takes the step for a call that is to be answered. */
  nextStep(): Behaviour
  isDown(): boolean
  /** The only key it accepts, or null. */
  expectedKey(): string | null
  /** True if one of the credentials that came with a call is the expected one, or any will do. */
  accepts(credentials: readonly string[]): boolean
}

export const maxKeptCalls = 20_000
const forgottenAtOnce = maxKeptCalls / 10
const defaultModels = ["sim-large", "sim-small"]

export function createVendor(name: string, origin: string): VendorState {
  const calls: RecordedCall[] = []
  const memory = emptyMemory()
  const open = new Map<OpenCall, () => void>()
  let steps: readonly Behaviour[] = []
  let down = false
  let key: string | null = null
  return {
    name,
    baseUrl: `${origin}/${name}/v1`,
    calls,
    memory,
    models: defaultModels,
    keepBodies: true,
    openCalls: () => open.size,
    behave(...next) {
      steps = next
    },
    down() {
      down = true
      for (const cut of [...open.values()]) cut()
    },
    up() {
      down = false
    },
    expectKey(expected) {
      key = expected
    },
    reset() {
      steps = []
      down = false
      key = null
      calls.length = 0
      for (const things of Object.values(memory)) things.clear()
    },
    begin(call, cut) {
      if (calls.length >= maxKeptCalls) calls.splice(0, forgottenAtOnce)
      calls.push(call)
      open.set(call, cut)
    },
    end(call) {
      open.delete(call)
    },
    nextStep() {
      const step = steps[0] ?? healthy
      if (steps.length > 1) steps = steps.slice(1)
      return step
    },
    isDown: () => down,
    expectedKey: () => key,
    accepts: (credentials) => key === null || credentials.includes(key),
  }
}
