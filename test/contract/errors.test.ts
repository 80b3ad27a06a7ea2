import { afterAll, describe, expect, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import type { UpstreamConfig } from "../../src/config/document.ts"
import { model, startGateway, type TestGateway, testKey, upstream } from "../support/gateway.ts"
import { type RawResponse, rawExchange, rawRequest } from "../support/raw-http.ts"
import { dataOf } from "../support/sse-events.ts"

/** Errors that begin at an upstream, as the caller reads them. Refusals at the gates have their own tests. */

const simulator = await startSimulator()
const gone = await startSimulator()
const deadUrl = gone.vendor("a").baseUrl
await gone.stop()

interface Case {
  readonly status: number
  readonly type: string
  readonly code: string
  readonly behave?: Behaviour
  readonly stream?: boolean
  readonly upstream?: Partial<UpstreamConfig>
}

const hello = 'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}\n\n'
const failed = (code: string, more: Omit<Case, "status" | "type" | "code">): Case => ({
  status: 502,
  type: "api_error",
  code,
  ...more,
})
const late = (code: string, more: Omit<Case, "status" | "type" | "code">): Case => ({
  status: 504,
  type: "timeout_error",
  code,
  ...more,
})

const cases: Record<string, Case> = {
  "refused connection": failed("upstream_unreachable", { upstream: { baseUrl: deadUrl } }),
  "refused connection, stream": failed("upstream_unreachable", { upstream: { baseUrl: deadUrl }, stream: true }),
  "reset before the answer": failed("upstream_unreachable", { behave: { kind: "reset" } }),
  "closed before the answer": failed("upstream_unreachable", { behave: { kind: "close" } }),
  "status 500": failed("upstream_error", { behave: { kind: "status", status: 500 } }),
  "status 529": failed("upstream_error", { behave: { kind: "status", status: 529 } }),
  "status 503, stream": failed("upstream_error", { behave: { kind: "status", status: 503 }, stream: true }),
  "an empty stream": failed("upstream_error", { behave: { kind: "stream", body: "" }, stream: true }),
  "a stream that begins with an error": failed("upstream_error", {
    behave: { kind: "stream", body: 'data: {"error":{"message":"overloaded"}}\n\n' },
    stream: true,
  }),
  "a web page": failed("upstream_invalid_response", { behave: { kind: "html", status: 200 } }),
  "a web page, stream": failed("upstream_invalid_response", { behave: { kind: "html", status: 200 }, stream: true }),
  "no JSON": failed("upstream_invalid_response", { behave: { kind: "status", status: 200, body: "OK" } }),
  "JSON that is no object": failed("upstream_invalid_response", {
    behave: { kind: "status", status: 200, body: "[]" },
  }),
  "an error under status 200": failed("upstream_invalid_response", {
    behave: { kind: "status", status: 200, json: { error: { message: "no" } } },
  }),
  "no answer in time": late("request_timeout", {
    behave: { kind: "hang" },
    upstream: { timeouts: { nonStream: 150 } },
  }),
  "no first token in time": late("first_token_timeout", {
    behave: { kind: "hang" },
    stream: true,
    upstream: { timeouts: { firstToken: 150 } },
  }),
  "nothing but comments in time": late("first_token_timeout", {
    behave: { kind: "stream", body: ": hi\n\n", end: "stall", pingEveryMs: 20 },
    stream: true,
    upstream: { timeouts: { firstToken: 150 } },
  }),
  "the total time is over before the first token": late("stream_total_timeout", {
    behave: { kind: "hang" },
    stream: true,
    upstream: { timeouts: { total: 150, firstToken: 10_000 } },
  }),
}
const inBand: Record<string, Case> = {
  "cut off in mid-stream": failed("upstream_stream_truncated", { behave: { kind: "stream", body: hello } }),
  "reset in mid-stream": failed("upstream_stream_truncated", {
    behave: { kind: "stream", frames: [hello, hello], gapMs: 20, end: "rst" },
  }),
  "silent in mid-stream": late("stream_silence_timeout", {
    behave: { kind: "stream", body: hello, end: "stall" },
    upstream: { timeouts: { silence: 150 } },
  }),
  "longer than a stream may be": late("stream_total_timeout", {
    behave: { kind: "stream", body: hello, end: "stall" },
    upstream: { timeouts: { total: 150 } },
  }),
}

/** Each case has an upstream of its own, so that none meets the open circuit of another. */
const all = Object.values({ ...cases, ...inBand })
const gateway: TestGateway = await startGateway({
  upstreams: all.map((one, index) => upstream(`u${index}`, simulator.vendor(`u${index}`).baseUrl, one.upstream ?? {})),
  models: all.map((_, index) => model(`m${index}`, [`u${index}`])),
})
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
})

async function provoke(one: Case, stream: boolean): Promise<RawResponse> {
  const index = all.indexOf(one)
  if (one.behave !== undefined) simulator.vendor(`u${index}`).behave(one.behave)
  const body = JSON.stringify({ model: `m${index}`, stream, messages: [] })
  return await rawExchange(gateway.url, rawRequest("/v1/chat/completions", [`x-api-key: ${testKey}`], body))
}

function envelope(one: Case, told: string, id: string | undefined): string {
  const { message } = (JSON.parse(told) as { error: { message: string } }).error
  expect(message.length).toBeGreaterThan(10)
  return JSON.stringify({ error: { type: one.type, code: one.code, message, request_id: id }, request_id: id })
}

describe("before the first byte: an HTTP status and the unified envelope", () => {
  for (const [name, one] of Object.entries(cases)) {
    test.concurrent(`${name}: ${one.status} ${one.code}`, async () => {
      const response = await provoke(one, one.stream ?? false)
      expect(response.text).toBe(envelope(one, response.text, response.header("x-request-id")))
      expect(response.status).toBe(one.status)
      expect(response.header("content-type")).toBe("application/json")
      expect(response.header("x-upstream-request-id")).toBeUndefined()
    })
  }
})

describe("after it: one event with the same envelope, and no end marker", () => {
  for (const [name, one] of Object.entries(inBand)) {
    test.concurrent(`${name}: ${one.code}`, async () => {
      const response = await provoke(one, true)
      expect(response.status).toBe(200)
      const told = dataOf(response.text).at(-1)!
      expect(told).toBe(envelope(one, told, response.header("x-request-id")))
      expect(response.text.startsWith(hello)).toBe(true)
      expect(response.text.endsWith(`data: ${told}\n\n`)).toBe(true)
      expect(response.text).not.toContain("[DONE]")
      expect(response.text.split('"code"')).toHaveLength(2)
    })
  }
})

test("a defect of the gateway itself is 500 internal_error and says nothing of it to the caller", async () => {
  const broken = await startGateway({
    upstreams: [upstream("a", simulator.vendor("a").baseUrl)],
    models: [model("m", ["a"])],
  })
  await broken.store.db.schema.dropTable("keys").execute()
  const response = await broken.chat({ model: "m", messages: [] })
  const id = response.headers.get("x-request-id")
  const message = "something went wrong inside the gateway"
  expect([response.status, await response.json()]).toEqual([
    500,
    { error: { type: "api_error", code: "internal_error", message, request_id: id }, request_id: id },
  ])
  expect(String(broken.complaints[0])).toContain("keys")
  expect(broken.inFlight).toBe(0)
  await broken.stop()
})
