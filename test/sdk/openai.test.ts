import { afterAll, beforeEach, describe, expect, test } from "bun:test"
import type OpenAI from "openai"
import type { ChatCompletionMessageParam, ChatCompletionTool } from "openai/resources/chat/completions"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { eventually } from "../support/gateway.ts"
import { ask, openSides, thrownBy } from "./openai-sides.ts"

const { both, close, gatewayClient, vendor } = await openSides()
beforeEach(() => vendor.reset())
afterAll(close)

/** The contract says that an upstream is told within a second. */
const toldWithinMs = 1000
const fixed = { kind: "chat", id: "chatcmpl-fixed" } as const

/** An answer without the one field that tells the time. */
function timeless<T extends { created: number }>(answer: T): Omit<T, "created"> {
  expect(answer.created).toBeGreaterThan(1_700_000_000)
  const { created: _, ...rest } = answer
  return rest
}

describe("answers", () => {
  test("create gives the vendor's completion, and the gateway's request id", async () => {
    const { direct, through } = await both(
      async (client) => {
        const completion = await client.chat.completions.create(ask)
        return { completion: timeless(completion), id: completion._request_id ?? null }
      },
      { ...fixed, text: "Grüße, 世界 👋" },
    )
    expect(through.completion.choices[0]?.message.content).toBe("Grüße, 世界 👋")
    expect(through.completion).toEqual(direct.completion)
    expect(through.id).toMatch(/^req_[0-9a-f]{32}$/)
  })

  test("a stream gives the vendor's chunks; usage comes as if it had been asked for", async () => {
    const read = (more: object) => async (client: OpenAI) => {
      const chunks = []
      for await (const chunk of await client.chat.completions.create({ ...ask, ...more, stream: true })) {
        chunks.push(timeless(chunk))
      }
      return chunks
    }
    const asked = await both(read({ stream_options: { include_usage: true } }), fixed)
    expect(asked.through).toEqual(asked.direct)
    expect(asked.through.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: expect.any(Number) } })

    const notAsked = await both(read({}), fixed)
    expect(notAsked.through).toEqual(asked.direct)
    expect(notAsked.direct.at(-1)?.usage ?? null).toBeNull()
  })

  test("the stream helper assembles the same completion, with usage", async () => {
    const { direct, through } = await both(
      async (client) => {
        const pieces: string[] = []
        const stream = client.chat.completions.stream({ ...ask, stream_options: { include_usage: true } })
        stream.on("content", (delta) => pieces.push(delta))
        return {
          completion: timeless(await stream.finalChatCompletion()),
          text: pieces.join(""),
          usage: await stream.totalUsage(),
        }
      },
      { ...fixed, reasoning: "Let me think.", cachedTokens: 3 },
    )
    expect(through).toEqual(direct)
    expect(through.text).toContain("Say hello")
    expect(through.usage.total_tokens).toBeGreaterThan(0)
  })

  test("extra fields and headers of the SDK do no harm", async () => {
    const client = gatewayClient({ organization: "org-1", project: "proj-1", defaultHeaders: { "x-own": "1" } })
    const completion = await client.chat.completions.create({
      ...ask,
      temperature: 0.2,
      seed: 7,
      user: "u",
      metadata: { a: "b" },
    })
    expect(completion.choices[0]?.finish_reason).toBe("stop")
    expect(JSON.parse(Buffer.from(vendor.calls[0]!.body).toString())).toEqual({
      ...ask,
      temperature: 0.2,
      seed: 7,
      user: "u",
      metadata: { a: "b" },
    })
    const names = vendor.calls[0]!.headers.map(([name]) => name.toLowerCase())
    for (const own of ["openai-organization", "openai-project", "x-own"]) expect(names).not.toContain(own)
  })
})

describe("tool calls", () => {
  const weather: ChatCompletionTool = {
    type: "function",
    function: {
      name: "get_weather",
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    },
  }
  const question: ChatCompletionMessageParam[] = [{ role: "user", content: "Please get weather in Paris" }]
  const called: Behaviour = {
    kind: "chat",
    id: "chatcmpl-fixed",
    toolCalls: [
      { id: "call_1", name: "get_weather", arguments: '{"city":"Paris"}' },
      { id: "call_2", name: "get_weather", arguments: '{"city":"Ōsaka"}' },
    ],
  }

  test("two parallel calls arrive whole, streamed and not", async () => {
    const plain = await both(
      async (client) =>
        timeless(await client.chat.completions.create({ model: "sim-large", messages: question, tools: [weather] })),
      called,
    )
    expect(plain.through).toEqual(plain.direct)
    const calls = plain.through.choices[0]?.message.tool_calls ?? []
    expect(calls.map((call) => call.type === "function" && call.function.arguments)).toEqual([
      '{"city":"Paris"}',
      '{"city":"Ōsaka"}',
    ])

    const streamed = await both(async (client) => {
      const stream = client.chat.completions.stream({ model: "sim-large", messages: question, tools: [weather] })
      return (await stream.finalMessage()).tool_calls
    }, called)
    expect(streamed.through).toEqual(streamed.direct)
    expect(streamed.through).toHaveLength(2)
  })

  test.each([false, true])("the SDK's own tool loop goes two rounds (stream: %p)", async (stream) => {
    const scenario = async (client: OpenAI) => {
      const cities: string[] = []
      const tools = [
        {
          type: "function" as const,
          function: {
            name: "get_weather",
            description: "Tells the weather",
            parameters: { type: "object", properties: { city: { type: "string" } } },
            parse: (text: string) => JSON.parse(text) as { city: string },
            function: ({ city }: { city: string }) => {
              cities.push(city)
              return `18 degrees in ${city}`
            },
          },
        },
      ]
      const runner = stream
        ? client.chat.completions.runTools({ model: "sim-large", messages: question, tools, stream: true })
        : client.chat.completions.runTools({ model: "sim-large", messages: question, tools })
      const said = await runner.finalContent()
      return { said, cities, roles: runner.messages.map(({ role }) => role) }
    }
    const final: Behaviour = { kind: "chat", text: "It is 18 degrees in both." }
    const { direct, through, directCalls, throughCalls } = await both(scenario, called, final)
    expect(through).toEqual(direct)
    expect(through).toEqual({
      said: "It is 18 degrees in both.",
      cities: ["Paris", "Ōsaka"],
      roles: ["user", "assistant", "tool", "tool", "assistant"],
    })
    expect([directCalls, throughCalls]).toEqual([2, 2])
  })
})

describe("leaving early", () => {
  const long: Behaviour = { kind: "chat", chunks: 500, gapMs: 20 }

  test("abort by signal in mid-stream: the upstream call is ended", async () => {
    vendor.behave(long)
    const controller = new AbortController()
    const stream = await gatewayClient().chat.completions.create(
      { ...ask, stream: true },
      { signal: controller.signal },
    )
    let chunks = 0
    for await (const _ of stream) if (++chunks === 3) controller.abort()
    expect(chunks).toBeLessThan(500)
    await eventually(() => vendor.calls[0]?.closedByPeer, toldWithinMs)
    expect(vendor.openCalls()).toBe(0)
  })

  test("leaving the loop: the upstream call is ended", async () => {
    vendor.behave(long)
    for await (const _ of await gatewayClient().chat.completions.create({ ...ask, stream: true })) break
    await eventually(() => vendor.calls[0]?.closedByPeer, toldWithinMs)
  })

  test("abort before the first token: APIUserAbortError, the upstream call is ended", async () => {
    vendor.behave({ kind: "hang" })
    const controller = new AbortController()
    const asking = thrownBy(() =>
      gatewayClient().chat.completions.create({ ...ask, stream: true }, { signal: controller.signal }),
    )
    await eventually(() => vendor.openCalls() === 1)
    controller.abort()
    expect((await asking).kind).toBe("APIUserAbortError")
    await eventually(() => vendor.calls[0]?.closedByPeer, toldWithinMs)
  })
})
