import { afterAll, afterEach, describe, expect, test } from "bun:test"
import Anthropic from "@anthropic-ai/sdk"
import OpenAI from "openai"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { model, startGateway, testKey, upstream } from "../support/gateway.ts"
import { expectWellFormed, typesOf } from "../support/responses-events.ts"
import { usage } from "../support/responses-frames.ts"
import { stopWithoutComplaint } from "../support/scene.ts"

/** The vectors of the endpoints beside messages; those of messages stand with the bridge and in the files about it. */

const simulator = await startSimulator()
// One speaks chat and responses, one chat alone, one messages alone.
const vendors = ["openai", "together", "anthropic"]
const names = [...vendors, "fourth", "fifth"]
const gateway = await startGateway({
  upstreams: vendors.map((vendor) => upstream(vendor, simulator.vendor(vendor).baseUrl, { vendor })),
  models: names.map((name) => model(name, [vendors.includes(name) ? name : "openai"])),
})
afterEach(() => {
  for (const vendor of vendors) simulator.vendor(vendor).reset()
})
afterAll(async () => {
  expect(gateway.complaints).toEqual([])
  await gateway.stop()
  await stopWithoutComplaint(simulator)
})

const anthropic = new Anthropic({ apiKey: testKey, baseURL: `${gateway.url}/compat`, maxRetries: 0 })
const openai = new OpenAI({ apiKey: testKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 })
const chat = { model: "openai", messages: [{ role: "user" as const, content: "Say hello" }] }
const input = "Say hello"

function behave(vendor: string, ...steps: readonly Behaviour[]): void {
  simulator.vendor(vendor).behave(...steps)
}

describe("model lists", () => {
  const idsOf = (models: readonly { id: string }[]): string[] => models.map(({ id }) => id)

  test("vector 94: pages of two over five models, forwards and backwards, and no other limit than 1 to 1000", async () => {
    const all = idsOf((await anthropic.models.list({ limit: 1000 })).data)
    expect(all.toSorted()).toEqual(names.toSorted())
    const page = await anthropic.models.list({ limit: 2 })
    expect([idsOf(page.data), page.has_more, page.first_id, page.last_id]).toEqual([
      all.slice(0, 2),
      true,
      all[0]!,
      all[1]!,
    ])
    expect(idsOf(await Array.fromAsync(page))).toEqual(all)
    const ahead = await Array.fromAsync(anthropic.models.list({ limit: 2, before_id: all[4]! }))
    expect(idsOf(ahead)).toEqual([all[2]!, all[3]!, all[0]!, all[1]!])
    for (const limit of [0, 1001, "abc"]) {
      const asking = async () => anthropic.get("/v1/models", { query: { limit } })
      await expect(asking()).rejects.toMatchObject({ status: 400, type: "invalid_request_error" })
    }
  })

  test("vector 95: the list in OpenAI's shape, of which its SDK reads all", async () => {
    const page = await openai.models.list()
    expect(page.object).toBe("list")
    const models = await Array.fromAsync(page)
    expect(idsOf(models).toSorted()).toEqual(names.toSorted())
    for (const { object, created, owned_by } of models) {
      expect([object, created, owned_by]).toEqual(["model", expect.any(Number), expect.any(String)])
    }
  })
})

test.each(["anthropic", "together"])("vector 96: count_tokens for a model of %s grows with the input", async (name) => {
  const count = (content: string) =>
    anthropic.messages.countTokens({ model: name, messages: [{ role: "user", content }] })
  const [few, many] = [await count("Hi"), await count("many words ".repeat(200))]
  expect(few).toEqual({ input_tokens: expect.any(Number) })
  for (const { input_tokens } of [few, many]) expect(input_tokens).toBeInteger()
  expect(few.input_tokens).toBeGreaterThan(0)
  expect(many.input_tokens).toBeGreaterThan(few.input_tokens + 100)
})

describe("chat", () => {
  test("vector 97: a stream brings its usage though the client did not ask for it", async () => {
    behave("openai", { kind: "chat", text: "Hello there.", gapMs: 1 })
    const { choices, usage: told } = await openai.chat.completions.stream(chat).finalChatCompletion()
    expect(choices[0]?.message.content).toBe("Hello there.")
    expect(told!.prompt_tokens).toBeGreaterThan(0)
    expect(told!.completion_tokens).toBeGreaterThan(0)
    expect(told!.total_tokens).toBe(told!.prompt_tokens + told!.completion_tokens)
    const [call] = simulator.vendor("openai").calls
    expect(JSON.parse(Buffer.from(call!.body).toString())).toMatchObject({ stream_options: { include_usage: true } })
  })

  test("vector 98: where the upstream tells no usage, one chunk with a count is added under the stream's id", async () => {
    behave("openai", { kind: "chat", id: "chatcmpl-theirs", text: "Hello there.", usage: "none", gapMs: 1 })
    const chunks = await Array.fromAsync(await openai.chat.completions.create({ ...chat, stream: true }))
    const [added, ...more] = chunks.filter((chunk) => chunk.usage)
    expect(more).toEqual([])
    expect(added).toBe(chunks.at(-1)!)
    expect(added).toMatchObject({ id: "chatcmpl-theirs", object: "chat.completion.chunk", choices: [] })
    const { prompt_tokens, completion_tokens, total_tokens } = added!.usage!
    expect(prompt_tokens).toBeGreaterThan(0)
    expect(completion_tokens).toBeGreaterThan(0)
    expect(total_tokens).toBe(prompt_tokens + completion_tokens)
  })

  test("vector 99: an answer that is no stream passes byte for byte, its usage with it", async () => {
    const told = '{"total_tokens":9,"completion_tokens":1.0,"prompt_tokens":7 ,"cost":1e-3}'
    const message = '{"role":"assistant","content":"Gr\\u00fc\\u00dfe \\/ 世界"}'
    const body = `{ "usage":${told},\n\t"choices":[{"index":0,"message":${message}}], "own":1, "own":2 }\r\n`
    behave("openai", { kind: "status", status: 200, body })
    const raw = await openai.chat.completions.create(chat).asResponse()
    expect(Buffer.from(await raw.arrayBuffer()).toString()).toBe(body)
    expect((await openai.chat.completions.create(chat)).usage).toEqual(JSON.parse(told))
  })
})

describe("responses", () => {
  const text = "Grüße, 世界 👋"
  const chatUsage = {
    prompt_tokens: usage.input_tokens,
    prompt_tokens_details: usage.input_tokens_details,
    completion_tokens: usage.output_tokens,
    completion_tokens_details: usage.output_tokens_details,
    total_tokens: usage.total_tokens,
  }
  const answers: [about: string, vendor: string, step: Behaviour][] = [
    ["events", "openai", { kind: "responses", text, usage, gapMs: 1 }],
    ["JSON", "openai", { kind: "responses", text, usage, ignoresStream: true }],
    ["chat chunks", "together", { kind: "chat", text, usage: chatUsage, gapMs: 1 }],
    ["chat JSON", "together", { kind: "chat", text, usage: chatUsage, ignoresStream: true }],
  ]

  test.each(answers)(
    "vector 100: the SDK reads text, usage and rising numbers where the upstream sends %s",
    async (_, vendor, step) => {
      behave(vendor, step)
      const stream = openai.responses.stream({ model: vendor, input })
      const numbers = (await Array.fromAsync(stream)).map(({ sequence_number }) => sequence_number)
      const final = await stream.finalResponse()
      expect([final.status, final.output_text, final.usage]).toEqual(["completed", text, usage])
      expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
    },
  )

  test.each(answers)(
    "vector 101: stream: false is answered with events where the upstream sends %s",
    async (_, vendor, step) => {
      behave(vendor, step)
      const raw = await openai.responses.create({ model: vendor, input, stream: false }).asResponse()
      expect([raw.status, raw.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"])
      const events = await raw.text()
      expectWellFormed(events)
      expect(typesOf(events).at(-1)).toBe("response.completed")
    },
  )

  const cut = { afterEvents: 8, how: "clean" } as const
  const failures: [about: string, vendor: string, step: Behaviour, last: string, seen: string][] = [
    ["a failed response", "openai", { kind: "responses", ending: "failed" }, "response.failed", "failed"],
    ["an error event", "openai", { kind: "responses", ending: "error" }, "error", "APIError"],
    ["a stream that just ends", "openai", { kind: "responses", chunks: 20, cut }, "error", "APIError"],
    ["a chat stream that just ends", "together", { kind: "chat", chunks: 20, cut }, "error", "APIError"],
  ]
  test.each(failures)(
    "vector 102: %s from %s is told in band, never a silent end",
    async (_, vendor, step, last, seen) => {
      behave(vendor, step)
      const raw = await openai.responses.create({ model: vendor, input, stream: true }).asResponse()
      const types = typesOf(await raw.text())
      expect([raw.status, types.includes("response.output_text.delta"), types.at(-1)]).toEqual([200, true, last])
      expect(types).not.toContain("response.completed")
      const final = openai.responses.stream({ model: vendor, input }).finalResponse()
      const outcome = await final.then(
        ({ status }) => status,
        (error: Error) => error.constructor.name,
      )
      expect(outcome).toBe(seen)
    },
  )

  test("vector 102: an upstream that fails before it says anything is an error by its status", async () => {
    behave("openai", { kind: "status", status: 500 })
    const asking = async () => openai.responses.create({ model: "openai", input, stream: true })
    await expect(asking()).rejects.toMatchObject({ status: 502, code: "upstream_error" })
  })
})
