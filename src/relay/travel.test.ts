import { expect, test } from "bun:test"
import { sampleUpstream } from "../../test/support/catalog-samples.ts"
import { nobodyListens } from "../../test/support/events.ts"
import { readAsk } from "../admission/ask.ts"
import type { Route } from "../core/catalog.ts"
import { GatewayError } from "../core/errors.ts"
import type { Story } from "../core/story.ts"
import { repeatBudget } from "../routing/repeat-budget.ts"
import { upstreamLoad } from "../routing/upstream-load.ts"
import { credentialPools } from "../upstream/credentials.ts"
import { upstreamHealth } from "../upstream/health.ts"
import { chat } from "./protocols/chat.ts"
import { findAnswer, type Journey, type TravelParts } from "./travel.ts"

/** One upstream with room for one call, at an address where nothing answers. */
const upstream = sampleUpstream("a", { concurrency: 1 })
const route: Route = { upstream, upstreamModel: "m", priority: 1, weight: 100 }

function house(): TravelParts {
  const now = () => performance.now()
  return {
    health: upstreamHealth(now, () => {}),
    load: upstreamLoad(),
    budget: repeatBudget(now),
    events: nobodyListens,
    credential: credentialPools(now),
    withoutStreamOptions: new Set(),
    running: new Set(),
  }
}

async function journey(): Promise<Journey> {
  const request = new Request("http://gateway/v1/chat/completions", { method: "POST", body: '{"model":"m"}' })
  const story: Story = {
    requestId: "req_1",
    endpoint: "chat",
    accountId: "1",
    account: "acme",
    keyId: "2",
    key: "ci",
    model: "m",
    stream: false,
    attempts: [],
    tariff: { price: "free", multiplier: "1", version: 1 },
    firstTokenAt: null,
    endedAt: null,
    status: 200,
    error: null,
    ending: null,
    measured: null,
    waived: false,
    estimated: false,
    usageInvalid: false,
    charge: 0n,
    price: null,
  }
  const ask = await readAsk(request, chat)
  return {
    ask,
    protocol: chat,
    model: { name: "m", price: "free", tokenizer: "o200k_base", createdAt: 0, endpoints: null, routes: [route] },
    routes: [route],
    request,
    query: "",
    allowPrivateAddresses: false,
    startedAt: performance.now(),
    story,
  }
}

function openCircuit(parts: TravelParts): void {
  for (let i = 0; i < 5; i++) parts.health.circuit(upstream.id).enter().fail()
}

async function refusal(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => "no error",
    (error: unknown) => (error instanceof GatewayError ? error.code : error),
  )
}

test("every circuit open: one is asked all the same, once, and gives its place back", async () => {
  const parts = house()
  openCircuit(parts)
  const trip = await journey()
  expect(await findAnswer(trip, parts)).toMatchObject({ kind: "failure", cause: "unreachable" })
  expect(trip.story.attempts.map(({ why }) => why)).toEqual(["last_resort"])
  expect(parts.load.hasRoom(upstream)).toBe(true)
})

test("an upstream that is full is not asked", async () => {
  const parts = house()
  parts.load.enter(upstream)
  const trip = await journey()
  expect(await refusal(findAnswer(trip, parts))).toBe("backend_unavailable")
  expect(trip.story.attempts).toEqual([])
})

test("an open circuit does not make room: a full upstream is no last resort", async () => {
  const parts = house()
  parts.load.enter(upstream)
  openCircuit(parts)
  const trip = await journey()
  expect(await refusal(findAnswer(trip, parts))).toBe("backend_unavailable")
  expect(trip.story.attempts).toEqual([])
})
