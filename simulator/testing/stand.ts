import { afterAll, beforeAll, beforeEach, expect } from "bun:test"
import type { Behaviour } from "../behaviour.ts"
import { type Simulator, startSimulator } from "../simulator.ts"
import type { SimulatedVendor } from "../vendor.ts"

/** A simulator for the tests of one file, with one vendor that is healthy before each of them. */
export interface Stand {
  readonly simulator: Simulator
  readonly vendor: SimulatedVendor
  /** `http://HOST:PORT/NAME` */
  readonly home: string
  /** Posts JSON, a form or bytes to a path after the vendor's name; a step given is behaved first. */
  post(path: string, body: unknown, more?: { step?: Behaviour; headers?: Record<string, string> }): Promise<Response>
}

export function standWith(name: string): Stand {
  let simulator: Simulator
  beforeAll(async () => {
    simulator = await startSimulator()
  })
  beforeEach(() => simulator.vendor(name).reset())
  afterAll(async () => {
    await simulator.stop()
    expect(simulator.complaints).toEqual([])
  })
  return {
    get simulator() {
      return simulator
    },
    get vendor() {
      return simulator.vendor(name)
    },
    get home() {
      return `${simulator.url}/${name}`
    },
    post(path, body, { step, headers = {} } = {}) {
      if (step !== undefined) simulator.vendor(name).behave(step)
      const bytes = body instanceof FormData || body instanceof Uint8Array ? body : JSON.stringify(body)
      return fetch(`${simulator.url}/${name}${path}`, { method: "POST", body: bytes, headers, redirect: "manual" })
    },
  }
}

/** The data of every event in a stream that is JSON. */
export function eventsIn(text: string): Record<string, unknown>[] {
  const lines = text.split(/\r\n|\n|\r/).filter((line) => line.startsWith("data: {"))
  return lines.map((line) => JSON.parse(line.slice("data: ".length)))
}

/** What a promise fails with. */
export function failureOf(promise: PromiseLike<unknown>): Promise<unknown> {
  return Promise.resolve(promise).then(
    () => {
      throw new Error("it did not fail")
    },
    (error: unknown) => error,
  )
}
