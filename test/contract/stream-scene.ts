import { expect } from "bun:test"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import type { SimulatedVendor } from "../../simulator/vendor.ts"
import { model, startGateway, type TestGateway, type ToldStory, upstream } from "../support/gateway.ts"
import { done, read, usageChunk } from "../support/stream-pieces.ts"

export interface Received {
  readonly response: Response
  readonly text: string
  readonly story: ToldStory
}

/** One gateway before one vendor, whose streams are written frame by frame. */
export interface StreamScene {
  readonly simulator: Simulator
  readonly vendor: SimulatedVendor
  readonly gateway: TestGateway
  /** Asks for a stream and reads it to its end. */
  ask(): Promise<Received>
  /** The same after the vendor was given these frames; it must have been asked once. */
  stream(...frames: readonly string[]): Promise<Received>
  stop(): Promise<void>
}

export async function startStreamScene(): Promise<StreamScene> {
  const simulator = await startSimulator()
  const vendor = simulator.vendor("a")
  const gateway = await startGateway({ upstreams: [upstream("a", vendor.baseUrl)], models: [model("m", ["a"])] })

  async function ask(): Promise<Received> {
    const messages = [{ role: "user", content: "Say hello" }]
    const response = await gateway.chat({ model: "m", stream: true, messages })
    // Not `text()`, which would drop a byte order mark.
    const text = Buffer.from(await response.arrayBuffer()).toString()
    return { response, text, story: await gateway.story(response) }
  }

  return {
    simulator,
    vendor,
    gateway,
    ask,
    async stream(...frames) {
      vendor.behave({ kind: "stream", frames, gapMs: 1 })
      const received = await ask()
      expect(received.response.status).toBe(200)
      expect(vendor.calls).toHaveLength(1)
      return received
    },
    async stop() {
      await gateway.stop()
      await simulator.stop()
    },
  }
}

export function expectReported({ story }: Received): void {
  expect([story.usage, story.estimated, story.ending, story.error]).toEqual([read, false, "completed", null])
}

/** Everything of the upstream, then one chunk with the count made here, then the end. */
export function expectCounted({ text, story }: Received, passed: string): void {
  expect(story.estimated).toBe(true)
  expect(story.ending).toBe("completed")
  expect(story.usage!.input).toBeGreaterThan(0)
  expect(story.usage!.output).toBeGreaterThan(0)
  const { input, output } = story.usage!
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
  expect(text).toBe(passed + usageChunk(usage) + done)
}
