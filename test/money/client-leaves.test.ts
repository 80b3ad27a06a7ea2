import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { rawClient } from "../../simulator/testing/raw-client.ts"
import type { UpstreamConfig } from "../../src/config/document.ts"
import type { Price } from "../../src/core/price.ts"
import { comes, openShop, type Shop, tokenPrice } from "../support/books.ts"
import { endpointSamples, form, formType, type Posted } from "../support/endpoints.ts"
import { eventually } from "../support/gateway.ts"
import { wavFile } from "../support/media-files.ts"
import { chunk, done, finishChunk, portOf, roleChunk, stopWithoutComplaint, usageChunk } from "../support/scene.ts"

setDefaultTimeout(60_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

async function connected(shop: Shop, path: string, { type, bytes }: Posted) {
  const client = await rawClient(portOf(shop.gateway))
  const head = [
    `POST ${path} HTTP/1.1`,
    "Host: gateway",
    `Authorization: Bearer ${shop.gateway.key}`,
    `Content-Type: ${type}`,
    `Content-Length: ${bytes.length}`,
    "",
    "",
  ]
  client.send(Buffer.concat([Buffer.from(head.join("\r\n")), bytes]))
  return client
}

function json(body: object): Posted {
  return { type: "application/json", bytes: Buffer.from(JSON.stringify({ model: "m", ...body })) }
}

interface Told {
  readonly upstream: Partial<UpstreamConfig>
  readonly path: string
  readonly asked: object
  readonly frames: readonly string[]
  /** What the caller has seen after each frame, by a word of it; null where the frame is held back. */
  readonly seen: readonly (string | null)[]
}

/** One token each. */
const words = ["one", " two", " three", " four"]
/** "user", a line end and "count", three for the message and three for the opening. */
const promptTokens = 9
const named = (data: { type: string; [field: string]: unknown }): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
const response = { id: "resp_1", object: "response", output: [], usage: null }
const delta = (text: string, sequence: number): string =>
  named({ type: "response.output_text.delta", delta: text, sequence_number: sequence })
const streams: Record<string, Told> = {
  chat: {
    upstream: {},
    path: "/v1/chat/completions",
    asked: { stream: true, messages: [{ role: "user", content: "count" }] },
    frames: [roleChunk, ...words.map((content) => chunk({ content })), finishChunk, usageChunk, done],
    seen: [null, ...words, '"finish_reason":"stop"', null],
  },
  responses: {
    upstream: { vendor: "openai" },
    path: "/v1/responses",
    asked: { input: "count" },
    frames: [named({ type: "response.created", response, sequence_number: 0 }), ...words.map(delta)],
    seen: [null, ...words],
  },
  "chat over messages": {
    upstream: { vendor: "anthropic" },
    path: "/v1/chat/completions",
    asked: { stream: true, messages: [{ role: "user", content: "count" }] },
    frames: [
      named({ type: "message_start", message: { id: "msg_1", model: "up", role: "assistant", content: [] } }),
      named({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
      ...words.map((text) => named({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })),
    ],
    seen: [null, null, ...words],
  },
}

describe("a client that leaves after any event: one line, estimated, and the upstream is aborted", () => {
  for (const [name, { upstream, path, asked, frames, seen }] of Object.entries(streams)) {
    test(name, async () => {
      await using shop = await openShop(simulator, { upstreams: { a: upstream } })
      let charged = 0
      for (const [index, word] of seen.entries()) {
        const sent = frames.slice(0, index + 1)
        shop.vendor("a").behave({ kind: "stream", frames: sent, end: "stall" })
        const client = await connected(shop, path, json(asked))
        const last = seen.slice(0, index + 1).findLast((one) => one !== null) ?? null
        const call = await eventually(() => shop.vendor("a").calls[index])
        if (last !== null) await client.until(last)
        // What is held back cannot be seen from outside.
        if (word === null) await Bun.sleep(50)
        client.leave(index % 2 === 0 ? "fin" : "rst")
        const story = await eventually(() => shop.gateway.stories[index], 20_000)
        await eventually(() => call.closedByPeer)
        const { row, lines } = await shop.entry(story.requestId)
        expect(row).toMatchObject({ ending: "client_gone", status: 200 })
        if (last === null) {
          // Nothing of the answer had come yet.
          expect({ lines, measured: row.measured.tokens }).toEqual({ lines: [], measured: null })
          continue
        }
        charged += 1
        const isTold = frames[index] === usageChunk
        const output = isTold ? 5 : sent.filter((frame) => words.some((one) => frame.includes(`"${one}"`))).length
        expect(story.usage).toMatchObject({ input: isTold ? 7 : promptTokens, output })
        expect(lines).toHaveLength(1)
        expect(lines[0]).toMatchObject({
          kind: "charge",
          amount: -BigInt(story.usage!.input * 1000 + output * 10_000),
          // What the vendor has said itself is no estimate.
          estimated: !isTold,
          usageInvalid: false,
        })
      }
      expect(await shop.charges()).toHaveLength(charged)
      expect(shop.calls()).toEqual([seen.length])
    })
  }
})

interface Whole {
  readonly path: string
  readonly request: Posted
  readonly price: Price
  readonly step: Behaviour
  readonly due: bigint
}

const sound = form([
  { name: "model", value: "m" },
  { name: "file", filename: "some.wav", value: wavFile(2) },
])
const usage = { prompt_tokens: 11, completion_tokens: 22, total_tokens: 33 }
const wholes: Record<string, Whole> = {
  chat: {
    path: "/v1/chat/completions",
    request: endpointSamples.chat.request("m"),
    price: tokenPrice,
    step: { kind: "chat", usage },
    due: 11_000n + 220_000n,
  },
  images: {
    path: "/v1/images/generations",
    request: json({ prompt: "a fox", n: 3 }),
    price: { image: "0.04" },
    step: { kind: "images" },
    due: 120_000_000n,
  },
  transcription: {
    path: "/v1/audio/transcriptions",
    request: { type: formType, bytes: sound },
    price: { second: "0.001" },
    step: { kind: "transcription", usage: { type: "duration", seconds: 7 } },
    due: 7_000_000n,
  },
}

describe("a client that leaves a call that is not streamed", () => {
  for (const [name, { path, request, price, step, due }] of Object.entries(wholes)) {
    test.concurrent(`${name}, before the answer: the real usage is charged`, async () => {
      await using shop = await openShop(simulator, { price })
      shop.vendor("a").behave({ ...step, headDelayMs: 300 } as Behaviour)
      const client = await connected(shop, path, request)
      await eventually(() => shop.vendor("a").calls[0]?.bodyComplete)
      client.leave()
      await expectRealCharge(shop, due)
    })
  }

  test.concurrent("images, in mid-answer: the answer is read to its end and charged", async () => {
    await using shop = await openShop(simulator, { price: { image: "0.04" } })
    shop.vendor("a").behave({ kind: "images", megabytes: 20 })
    const client = await connected(shop, "/v1/images/generations", json({ prompt: "a fox", n: 2 }))
    await client.until("b64_json")
    client.leave("rst")
    await expectRealCharge(shop, 80_000_000n)
  })

  async function expectRealCharge(shop: Shop, due: bigint): Promise<void> {
    const [line] = await comes(async () => {
      const charges = await shop.charges()
      return charges.length > 0 && charges
    }, 15_000)
    expect(line).toMatchObject({ amount: -due, estimated: false, usageInvalid: false })
    expect(shop.vendor("a").calls[0]).toMatchObject({ finished: true, closedByPeer: false })
    expect(await shop.charges()).toHaveLength(1)
    await eventually(() => shop.gateway.inFlight === 0)
  }
})

test("a client that leaves in mid-speech pays for the characters it asked for", async () => {
  await using shop = await openShop(simulator, { price: { character: "0.000015" } })
  shop.vendor("a").behave({ kind: "speech", megabytes: 50 })
  const request = json({ input: "Hello, world 👋", voice: "alloy" })
  const client = await connected(shop, "/v1/audio/speech", request)
  await client.until("\r\n\r\n")
  client.leave()
  const story = await eventually(() => shop.gateway.stories[0])
  const { lines } = await shop.entry(story.requestId)
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatchObject({ amount: -14n * 15_000n, estimated: false })
  await eventually(() => shop.vendor("a").calls[0]!.closedByPeer)
})
