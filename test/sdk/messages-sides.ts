import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import type { SimulatedVendor } from "../../simulator/vendor.ts"
import { model, startGateway, type TestGateway, testKey, upstream } from "../support/gateway.ts"
import { saying, vendorFor, type Way, ways } from "../support/messages-scene.ts"

/** A gateway with a model for each way: "claude-native" and "claude-bridged". */
export interface MessagesSides {
  readonly gateway: TestGateway
  readonly apiKey: string
  /** What an Anthropic client takes as its base URL; others want `/v1` after it. */
  readonly baseURL: string
  vendor(way: Way): SimulatedVendor
  reset(): void
  close(): Promise<void>
}

export function modelOf(way: Way): string {
  return `claude-${way}`
}

export async function openMessagesSides(): Promise<MessagesSides> {
  const simulator = await startSimulator()
  const gateway = await startGateway({
    upstreams: ways.map((way) => upstream(way, simulator.vendor(way).baseUrl, vendorFor[way])),
    models: ways.map((way) => model(modelOf(way), [way])),
  })
  return {
    gateway,
    apiKey: testKey,
    baseURL: `${gateway.url}/compat`,
    vendor: simulator.vendor,
    reset() {
      for (const way of ways) simulator.vendor(way).reset()
    },
    async close() {
      await gateway.stop()
      await simulator.stop()
    },
  }
}

/** A question that takes two rounds of calls, the first of two at once, and a third round for the answer. */
export function threeRounds(way: Way): readonly Behaviour[] {
  const call = (id: string, city: string) => ({ id, name: "get_weather", arguments: JSON.stringify({ city }) })
  return [
    saying(way, {
      thinking: "Two cities",
      text: "I look twice.",
      toolCalls: [call("call_1", "Paris"), call("call_2", "Ōsaka")],
    }),
    saying(way, { toolCalls: [call("call_3", "Zürich")] }),
    saying(way, { text: "18 in all three." }),
  ]
}

export const weatherIn = (city: string): string => `18 degrees in ${city}`

/** The results that a vendor was told of in its last call, in order; both dialects name the call each belongs to. */
export function resultsTold(vendor: SimulatedVendor): readonly (readonly [id: unknown, content: unknown])[] {
  const { messages } = JSON.parse(Buffer.from(vendor.calls.at(-1)!.body).toString()) as { messages: Told[] }
  return messages.flatMap(({ role, tool_call_id: id, content }) => {
    if (role === "tool") return [[id, content] as const]
    const blocks = Array.isArray(content) ? (content as Told[]) : []
    return blocks.flatMap((block) =>
      block.type === "tool_result" ? [[block.tool_use_id, plainText(block.content)] as const] : [],
    )
  })
}

interface Told {
  readonly role?: string
  readonly type?: string
  readonly tool_call_id?: string
  readonly tool_use_id?: string
  readonly content?: unknown
}

function plainText(content: unknown): unknown {
  return Array.isArray(content) ? content.map(({ text }: { text?: string }) => text ?? "").join("") : content
}

export const allResults = [
  ["call_1", weatherIn("Paris")],
  ["call_2", weatherIn("Ōsaka")],
  ["call_3", weatherIn("Zürich")],
] as const
