import { expect } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import type { SimulatedVendor } from "../../simulator/vendor.ts"
import { eventually, model, startGateway, type TestGateway, testKey, upstream } from "../support/gateway.ts"
import { type RawResponse, rawExchange, rawRequest } from "../support/raw-http.ts"

export const chatPath = "/v1/chat/completions"
export const credential = `Authorization: Bearer ${testKey}`
export const typical = '{"model":"m","messages":[]}'

/** A gateway that is sent bodies as raw bytes, and the one vendor behind it. */
export interface BodyScene {
  readonly vendor: SimulatedVendor
  readonly gateway: TestGateway
  ask(body: string | Uint8Array, headers?: readonly string[]): Promise<RawResponse>
  /** The answer is our error to the byte, and the vendor was not asked. */
  expectRefused(response: RawResponse, status: number, code: string, message?: string): void
  /** After each test: the slot is free, the next request passes and nothing broke inside; then the vendor starts anew. */
  expectUnharmed(): Promise<void>
  stop(): Promise<void>
}

export async function startBodyScene(): Promise<BodyScene> {
  const simulator = await startSimulator()
  const vendor = simulator.vendor("a")
  // One slot: whatever kept it would make the next request fail.
  const gateway = await startGateway({
    upstreams: [upstream("a", vendor.baseUrl)],
    models: [model("m", ["a"])],
    plans: [{ name: "default", concurrency: 1, models: ["*"], priceMultiplier: "1" }],
  })
  const ask: BodyScene["ask"] = (body, headers = []) =>
    rawExchange(gateway.url, rawRequest(chatPath, [credential, ...headers], body))
  return {
    vendor,
    gateway,
    ask,
    expectRefused(response, status, code, message) {
      const id = response.header("x-request-id")
      const told = message ?? (JSON.parse(response.text) as { error: { message: string } }).error.message
      const error = { type: "invalid_request_error", code, message: told, request_id: id }
      expect(response.text).toBe(JSON.stringify({ error, request_id: id }))
      expect(response.status).toBe(status)
      expect(vendor.calls).toHaveLength(0)
    },
    async expectUnharmed() {
      await eventually(() => gateway.inFlight === 0)
      expect((await ask(typical)).status).toBe(200)
      expect(gateway.complaints).toEqual([])
      vendor.reset()
      vendor.keepBodies = true
    },
    async stop() {
      await gateway.stop()
      await simulator.stop()
    },
  }
}
