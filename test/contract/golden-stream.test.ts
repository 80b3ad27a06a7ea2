import { afterAll, describe, expect, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { model, startGateway, type ToldStory, upstream } from "../support/gateway.ts"

/** Each lane has an upstream of its own, so that many runs at once know which answer was theirs. */
const lanes = 8
const simulator = await startSimulator()
const vendors = Array.from({ length: lanes }, (_, lane) => simulator.vendor(`v${lane}`))
const gateway = await startGateway({
  upstreams: vendors.map(({ name, baseUrl }) => upstream(name, baseUrl)),
  models: vendors.map(({ name }) => model(name, [name])),
})
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
})

const head = '"id":"chatcmpl-金","object":"chat.completion.chunk","created":1794700000,"model":"up"'

function chunk(delta: string, finish = "null"): string {
  return `data: {${head},"choices":[{"index":0,"delta":${delta},"finish_reason":${finish}}],"usage":null}`
}

/** With LF; the other line ends are made from it. */
const golden = [
  ": connected",
  chunk('{"role":"assistant","content":""}'),
  chunk('{"content":"日本語と中文"}'),
  ": keep-alive",
  chunk('{"content":" 👩‍👩‍👧‍👦🏳️‍🌈 "}'),
  `event: message\nid: 7\n${chunk('{"content":"e\u0301 ñ \\u00e9"}')}`,
  `data:{${head},"choices":[{"index":0,\ndata:"delta":{"content":"\\n\\"x\\""},"finish_reason":null}]}`,
  ":",
  chunk("{}", '"stop"'),
  `data: {${head},"choices":[],"usage":{"prompt_tokens":17,"completion_tokens":9,"total_tokens":26,"prompt_tokens_details":{"cached_tokens":4}}}`,
  ": almost",
  "data: [DONE]",
]
  .map((event) => `${event}\n\n`)
  .join("")

const usage = { input: 17, cachedInput: 4, cacheWrite: 0, audioInput: 0, output: 9, reasoning: 0, audioOutput: 0 }
const lineEnds = { LF: "\n", CRLF: "\r\n", CR: "\r" }

interface Cut {
  readonly splitAt?: readonly number[]
  readonly splitEvery?: number
  readonly gapMs: number
}

/** What a caller received of the golden stream, and what the gateway made of it. */
async function run(body: string, cut: Cut, lane: number): Promise<{ received: Buffer; story: ToldStory }> {
  vendors[lane]!.behave({ kind: "stream", body, ...cut })
  const response = await gateway.chat({ model: `v${lane}`, stream: true, messages: [] })
  const received = Buffer.from(await response.arrayBuffer())
  return { received, story: await gateway.story(response) }
}

/** Runs a job for each item, as many at once as there are lanes. */
async function inLanes<T>(items: readonly T[], job: (item: T, lane: number) => Promise<void>): Promise<void> {
  const waiting = [...items]
  const work = async (lane: number): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await job(item, lane)
  }
  await Promise.all(vendors.map((_, lane) => work(lane)))
}

function expectGolden(bytes: Buffer, { received, story }: { received: Buffer; story: ToldStory }, what: string): void {
  // Compared as a whole first: the text of thousands of equal bodies need not be made.
  if (!received.equals(bytes)) expect(`${what}: ${received.toString()}`).toBe(`${what}: ${bytes.toString()}`)
  expect([what, story.usage, story.estimated, story.ending]).toEqual([what, usage, false, "completed"])
}

describe("a stream reaches the caller byte for byte, wherever the network cuts it", () => {
  for (const [name, eol] of Object.entries(lineEnds)) {
    const body = golden.replaceAll("\n", eol)
    const bytes = Buffer.from(body)

    test(`${name}: cut in two at every byte`, async () => {
      const offsets = Array.from({ length: bytes.length - 1 }, (_, index) => index + 1)
      await inLanes(offsets, async (offset, lane) => {
        expectGolden(bytes, await run(body, { splitAt: [offset], gapMs: 1 }, lane), `cut at ${offset}`)
      })
    }, 60_000)

    test(`${name}: the cuts around the end, far enough apart that they surely arrive as two`, async () => {
      const usageAt = bytes.indexOf('"prompt_tokens"')
      const usageEnd = bytes.indexOf(": almost")
      const last = bytes.length
      const near = (at: number) => [at - 4, at - 3, at - 2, at - 1, at, at + 1].filter((cut) => cut < last)
      const cuts = [usageAt, ...near(usageEnd), ...near(bytes.indexOf("data: [DONE]")), ...near(last)]
      await inLanes(cuts, async (offset, lane) => {
        expectGolden(bytes, await run(body, { splitAt: [offset], gapMs: 25 }, lane), `cut at ${offset}`)
      })
    })

    test(`${name}: one byte at a time`, async () => {
      expectGolden(bytes, await run(body, { splitEvery: 1, gapMs: 0 }, 0), "every byte")
      expectGolden(bytes, await run(body, { splitEvery: 1, gapMs: 1 }, 1), "every byte, slowly")
    }, 60_000)

    test(`${name}: in one piece, and in pieces of every length up to 100`, async () => {
      expectGolden(bytes, await run(body, { gapMs: 0 }, 0), "one piece")
      const lengths = Array.from({ length: 50 }, (_, index) => 2 * index + 2)
      await inLanes(lengths, async (splitEvery, lane) => {
        expectGolden(bytes, await run(body, { splitEvery, gapMs: 0 }, lane), `pieces of ${splitEvery}`)
      })
    })
  }

  test("line ends mixed in one stream", async () => {
    const ends = ["\n", "\r\n", "\r"]
    let count = 0
    // A CR directly before a LF would be one line end, so blank lines keep the kind of the line before them.
    const body = golden.replaceAll(/\n+/g, (run) => ends[count++ % 3]!.repeat(run.length))
    const bytes = Buffer.from(body)
    await inLanes([1, 2, 3, 5, 7, 11, 64], async (splitEvery, lane) => {
      expectGolden(bytes, await run(body, { splitEvery, gapMs: 0 }, lane), `pieces of ${splitEvery}`)
    })
  })

  test("no replacement character was made anywhere", async () => {
    const { received } = await run(golden, { splitEvery: 1, gapMs: 0 }, 0)
    expect(received.toString()).not.toContain("\ufffd")
    expect(received.toString()).toContain("👩‍👩‍👧‍👦🏳️‍🌈")
  })
})
