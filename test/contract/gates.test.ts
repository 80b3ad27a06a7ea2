import { afterAll, afterEach, describe, expect, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { inTransaction } from "../../src/store/db.ts"
import { postAdjustment } from "../../src/store/ledger.ts"
import { expectError, type Told } from "../support/error-envelope.ts"
import { eventually, model, startGateway, upstream } from "../support/gateway.ts"
import { type RawResponse, rawConnection, rawExchange, rawHead, rawRequest } from "../support/raw-http.ts"

const chatPath = "/v1/chat/completions"
const body = '{"model":"m","messages":[]}'
const tooLong = 100 * 1024 * 1024 + 1

const simulator = await startSimulator()
const vendor = simulator.vendor("a")
const narrow = simulator.vendor("narrow")
const document = {
  upstreams: [upstream("a", vendor.baseUrl), upstream("narrow", narrow.baseUrl, { concurrency: 1 })],
  models: [
    model("m", ["a"]),
    model("gpt-9-mini", ["a"]),
    model("gpt-9", ["a"]),
    model("elsewhere", ["a"], { endpoints: ["embeddings"] }),
    model("crowded", ["narrow"]),
  ],
  plans: [
    { name: "default", concurrency: 0, models: ["*"], priceMultiplier: "1" },
    { name: "some", concurrency: 0, models: ["m", "gpt-*-mini"], priceMultiplier: "1" },
    { name: "none", concurrency: 0, models: [], priceMultiplier: "1" },
    { name: "one", concurrency: 1, models: ["*"], priceMultiplier: "1" },
  ],
  accounts: [
    account("acme"),
    account("poor", { balance: null }),
    account("some", { plan: "some" }),
    account("none", { plan: "none" }),
    account("single", { plan: "one" }),
    account("spender", { plan: "one" }),
    account("broke", { plan: "none", balance: null }),
    account("raised", { plan: "one", concurrency: 2 }),
    account("unlimited", { plan: "one", concurrency: 0 }),
  ],
}
const gateway = await startGateway(document)
afterEach(() => {
  vendor.reset()
  narrow.reset()
})
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
})

function account(name: string, more: { plan?: string; balance?: string | null; concurrency?: number } = {}) {
  return { name, plan: "default", concurrency: null, balance: "10", keys: [{ name: "k", key: keyOf(name) }], ...more }
}

function keyOf(name: string): string {
  return `sk-test-${name}-0123456789`
}

function as(name: string): string {
  return `Authorization: Bearer ${keyOf(name)}`
}

function ask(headers: readonly string[], text = body, target = chatPath, method = "POST"): Promise<RawResponse> {
  return rawExchange(gateway.url, rawRequest(target, headers, text, method))
}

const notFound = { status: 404, type: "not_found_error", code: "not_found" }
const modelNotFound = { status: 404, type: "not_found_error", code: "model_not_found" }
const invalid = (code: string, status = 400): Told => ({ status, type: "invalid_request_error", code })
const concurrency: Told = {
  status: 429,
  type: "rate_limit_error",
  code: "concurrency_limit",
  message: "concurrency limit reached",
}
const insufficient: Told = { status: 402, type: "billing_error", code: "insufficient_balance" }

/** Holds one request open at the vendor until `release`. */
async function occupy(name: string, modelName = "m", at = vendor): Promise<{ release(): Promise<void> }> {
  const before = at.openCalls()
  at.behave({ kind: "hang" })
  const held = await rawConnection(gateway.url)
  // Only a stream is given up when its caller leaves.
  held.send(rawRequest(chatPath, [as(name)], `{"model":"${modelName}","stream":true}`))
  await eventually(() => at.openCalls() === before + 1)
  at.behave()
  return {
    async release() {
      held.leave()
      await eventually(() => at.openCalls() === before && gateway.inFlight === 0)
    },
  }
}

describe("order of the gates: a request that violates several is told the first", () => {
  test("path before authentication", async () => {
    expectError(await ask([], "not json", "/v1/nowhere"), notFound)
  })

  test("path before method", async () => {
    expectError(await ask([], "", "/v1/nowhere", "DELETE"), notFound)
  })

  test("method before authentication", async () => {
    expectError(await ask([], "", chatPath, "PUT"), invalid("method_not_allowed", 405))
  })

  test("authentication before body size, media type and body shape", async () => {
    const refusals = [
      await rawExchange(gateway.url, rawHead(chatPath, [`Content-Length: ${tooLong}`])),
      await ask(["Content-Encoding: gzip", "Content-Type: multipart/form-data; boundary=x"]),
      await ask([], "not json"),
      await ask([], '{"model":"unknown"}'),
    ]
    expect(refusals.map(({ status }) => status)).toEqual([401, 401, 401, 401])
    expect(new Set(refusals.map(({ text }) => text)).size).toBe(1)
  })

  test("body size before body shape, model, balance", async () => {
    const connection = await rawConnection(gateway.url)
    connection.send(rawHead(chatPath, [as("poor"), `Content-Length: ${tooLong}`]))
    connection.send("this is no JSON")
    expectError(await connection.response(), invalid("request_body_too_large", 413))
    connection.leave()
  })

  test("body shape before model, plan and balance", async () => {
    expectError(await ask([as("broke")], '{"model":"unknown","model":"unknown"}'), invalid("duplicate_key"))
    expectError(await ask([as("broke")], '{"model":"unknown",}'), invalid("invalid_json"))
    expectError(await ask([as("broke")], '{"model":1}'), invalid("missing_model"))
  })

  test("model and plan before balance", async () => {
    expectError(await ask([as("poor")], '{"model":"unknown"}'), modelNotFound)
    expectError(await ask([as("broke")], '{"model":"m"}'), modelNotFound)
  })

  test("balance before concurrency", async () => {
    const held = await occupy("spender")
    expectError(await ask([as("spender")]), concurrency)
    await inTransaction(gateway.store, (trx) =>
      postAdjustment(trx, { account: "spender", amount: -10_000_000_000n, reference: "spent", note: "spent" }),
    )
    // Any change of the catalog makes an instance read accounts again.
    await gateway.apply({ models: [model("later", ["a"])] })
    expectError(await ask([as("spender")]), insufficient)
    await held.release()
  })

  test("concurrency before route", async () => {
    const held = await occupy("single", "crowded", narrow)
    const crowded = '{"model":"crowded","messages":[]}'
    expectError(await ask([as("single")], crowded), concurrency)
    expectError(await ask([as("acme")], crowded), {
      status: 503,
      type: "overloaded_error",
      code: "backend_unavailable",
      message: "every upstream of this model is at its own limit of requests in flight",
    })
    await held.release()
    expect((await ask([as("acme")], crowded)).status).toBe(200)
  })
})

describe("model and plan", () => {
  test("a model the plan does not allow is answered like one that does not exist", async () => {
    const told = (response: RawResponse) => response.text.replaceAll(/req_[0-9a-f]{32}|gpt-9|nope/g, "…")
    const forbidden = await ask([as("some")], '{"model":"gpt-9"}')
    const absent = await ask([as("some")], '{"model":"nope"}')
    expectError(forbidden, {
      ...modelNotFound,
      message: 'the model "gpt-9" does not exist or you do not have access to it',
    })
    expectError(absent, {
      ...modelNotFound,
      message: 'the model "nope" does not exist or you do not have access to it',
    })
    expect(told(forbidden)).toBe(told(absent))
    const names = (response: RawResponse) => response.headers.map(([name]) => name)
    expect(names(forbidden)).toEqual(names(absent))
    expect(vendor.calls).toHaveLength(0)
  })

  test("patterns of a plan allow what they match and nothing else", async () => {
    const status = async (who: string, name: string) =>
      (await ask([as(who)], `{"model":"${name}","messages":[]}`)).status
    expect(await status("some", "m")).toBe(200)
    expect(await status("some", "gpt-9-mini")).toBe(200)
    expect(await status("some", "gpt-9")).toBe(404)
    expect(await status("none", "m")).toBe(404)
    expect(await status("acme", "gpt-9")).toBe(200)
  })

  test("a model that is not offered on this endpoint is 404 model_not_found", async () => {
    expectError(await ask([as("acme")], '{"model":"elsewhere"}'), modelNotFound)
  })

  test("names that every object has, odd characters and long names are unknown models", async () => {
    for (const name of ["__proto__", "constructor", "toString", "M", " m", "m ", "m\u0000", "a\nb", "é".repeat(5000)]) {
      const response = await ask([as("acme")], JSON.stringify({ model: name }))
      expectError(response, modelNotFound)
      expect(response.text.length).toBeLessThan(1000)
    }
    expect(vendor.calls).toHaveLength(0)
  })
})

test("402 insufficient_balance says that trying again is of no use", async () => {
  const response = await ask([as("poor")])
  expectError(response, insufficient)
  expect(response.header("x-should-retry")).toBe("false")
  expect(vendor.calls).toHaveLength(0)
})

describe("concurrency", () => {
  test("429 is word for word as specified, has no retry-after, and never reaches an upstream", async () => {
    const held = await occupy("single")
    const response = await ask([as("single")])
    const id = response.header("x-request-id")
    expect(response.status).toBe(429)
    expect(response.text).toBe(
      `{"error":{"type":"rate_limit_error","code":"concurrency_limit","message":"concurrency limit reached","request_id":"${id}"},"request_id":"${id}"}`,
    )
    expect(response.header("retry-after")).toBeUndefined()
    expect(response.header("x-should-retry")).toBeUndefined()
    expect(vendor.calls).toHaveLength(1)
    // Another account is not touched by it.
    expect((await ask([as("acme")])).status).toBe(200)
    await held.release()
    expect((await ask([as("single")])).status).toBe(200)
  })

  test("of requests sent together exactly as many as the limit are admitted, round after round", async () => {
    for (let round = 0; round < 20; round++) {
      vendor.reset()
      vendor.behave({ kind: "status", status: 200, json: { choices: [] }, delayMs: 30 })
      const statuses = (await Promise.all(Array.from({ length: 6 }, () => ask([as("raised")])))).map((r) => r.status)
      expect(statuses.toSorted()).toEqual([200, 200, 429, 429, 429, 429])
      expect(vendor.calls).toHaveLength(2)
    }
  })

  test("an account's own 0 lifts the plan's limit", async () => {
    vendor.behave({ kind: "status", status: 200, json: { choices: [] }, delayMs: 30 })
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask([as("unlimited")])))
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
  })

  test("requests refused at any gate keep no slot", async () => {
    const one = [as("single")]
    for (const text of ["not json", "[]", "{}", '{"model":"m","model":"m"}', '{"model":"unknown"}'])
      await ask(one, text)
    await ask([...one, "Content-Encoding: gzip"])
    await ask(one, body, "/v1/nowhere")
    const tooBig = await rawExchange(gateway.url, rawHead(chatPath, [...one, `Content-Length: ${tooLong}`]))
    expect(tooBig.status).toBe(413)
    vendor.behave({ kind: "status", status: 422 }, { kind: "chat" })
    expect((await ask(one)).status).toBe(422)
    expect((await ask(one)).status).toBe(200)
    expect(gateway.inFlight).toBe(0)
  })
})

describe("health and drain", () => {
  test("health paths answer without a key and carry a request id", async () => {
    for (const [path, told] of [
      ["/health", { status: "ok" }],
      ["/health/ready", { status: "ready" }],
      ["/health?x=1", { status: "ok" }],
    ] as const) {
      const response = await fetch(gateway.url + path)
      expect([response.status, await response.json()]).toEqual([200, told])
      expect(response.headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/)
      expect(response.headers.get("content-type")).toBe("application/json")
    }
  })

  test("draining comes before every other gate, health paths aside, and running requests finish", async () => {
    const leaving = await startGateway(document)
    const kept = await rawConnection(leaving.url)
    vendor.behave({ kind: "status", status: 200, json: { choices: [], late: true }, delayMs: 400 })
    const running = rawExchange(leaving.url, rawRequest(chatPath, [as("acme")], body))
    await eventually(() => vendor.calls.length === 1)
    const drained = leaving.drain()

    const asked = [
      rawRequest(chatPath, [as("acme")], body),
      rawRequest(chatPath, [], "not json"),
      rawRequest("/v1/nowhere", [], ""),
      rawRequest("/compat/v1/messages", [], ""),
      rawRequest(chatPath, [], "", "DELETE"),
      rawHead(chatPath, [as("acme"), `Content-Length: ${tooLong}`]),
    ]
    kept.send(asked[0]!)
    const answers = [
      await kept.response(),
      ...(await Promise.all(asked.map((bytes) => rawExchange(leaving.url, bytes)))),
    ]
    for (const answer of answers) {
      expect([answer.status, answer.text]).toEqual([503, '{"error":"instance draining"}'])
      expect(answer.header("connection")).toBe("close")
      expect(answer.header("x-request-id")).toMatch(/^req_/)
    }
    await kept.closed
    const health = await fetch(`${leaving.url}/health`)
    expect([health.status, await health.json()]).toEqual([200, { status: "draining" }])
    const ready = await fetch(`${leaving.url}/health/ready`)
    expect([ready.status, await ready.json()]).toEqual([503, { status: "draining" }])

    expect((await running).text).toBe('{"choices":[],"late":true}')
    await drained
    expect(leaving.inFlight).toBe(0)
    expect(vendor.calls).toHaveLength(1)
    await leaving.stop()
  })
})

test("nothing in this file was an internal error", () => {
  expect(gateway.complaints).toEqual([])
})
