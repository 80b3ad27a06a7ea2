import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { suspendAccount } from "../../src/store/accounts.ts"
import { inTransaction } from "../../src/store/db.ts"
import { listKeys } from "../../src/store/keys.ts"
import { model, startGateway, type TestGateway, upstream } from "../support/gateway.ts"
import { launchPostgres } from "../support/postgres.ts"
import { type RawResponse, rawConnection, rawExchange, rawRequest } from "../support/raw-http.ts"

const chatPath = "/v1/chat/completions"
const body = '{"model":"m","messages":[]}'
const key = "sk-test-acme-0123456789"
const suspendedKey = "sk-test-suspended-0123456789"
const coldKey = "sk-test-cold-0123456789"
const refusal =
  '{"error":{"message":"Missing or invalid API key. Send it as \'Authorization: Bearer <key>\' or \'x-api-key: <key>\'.",' +
  '"type":"invalid_request_error","param":null,"code":"invalid_api_key"}}'

const simulator = await startSimulator()
const vendor = simulator.vendor("a")
const document = {
  upstreams: [upstream("a", vendor.baseUrl)],
  models: [model("m", ["a"])],
  plans: [{ name: "default", concurrency: 0, models: ["*"], priceMultiplier: "1" }],
  accounts: [
    account("acme", key),
    account("cold", coldKey),
    // Suspension must be told even where the balance would refuse as well.
    { ...account("sleeping", suspendedKey), balance: null },
  ],
}
const gateway = await startGateway(document)
await inTransaction(gateway.store, (trx) => suspendAccount(trx, "sleeping"))
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
})

function account(name: string, secret: string) {
  return { name, plan: "default", concurrency: null, balance: "10", keys: [{ name: "k", key: secret }] }
}

function ask(headers: readonly string[], url = gateway.url): Promise<RawResponse> {
  return rawExchange(url, rawRequest(chatPath, headers, body))
}

function expectRefused(response: RawResponse): void {
  expect(response.status).toBe(401)
  expect(response.text).toBe(refusal)
  expect(response.header("www-authenticate")).toBe("Bearer")
  expect(response.header("content-type")).toBe("application/json")
  expect(response.header("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/)
}

const accepted: Record<string, readonly string[]> = {
  "Bearer, one space, key": [`Authorization: Bearer ${key}`],
  "header name in any case": [`AUTHORIZATION: Bearer ${key}`],
  "white space around the header's value, which is not part of it": [`Authorization: \t Bearer ${key} \t`],
  "no white space after the header's colon": [`Authorization:Bearer ${key}`],
  "x-api-key": [`x-api-key: ${key}`],
  "X-API-Key": [`X-API-Key: ${key}`],
  "Authorization good, x-api-key bad: Authorization wins": [
    "x-api-key: sk-test-wrong-0123456789",
    `Authorization: Bearer ${key}`,
  ],
  "Authorization good, x-api-key empty": [`Authorization: Bearer ${key}`, "x-api-key:"],
}

describe("accepted", () => {
  for (const [name, headers] of Object.entries(accepted)) {
    test(name, async () => {
      const response = await ask(headers)
      expect(response.status).toBe(200)
      expect(response.header("www-authenticate")).toBeUndefined()
    })
  }
})

const refused: Record<string, readonly string[]> = {
  "no credential at all": [],
  "lower-case bearer": [`Authorization: bearer ${key}`],
  "upper-case BEARER": [`Authorization: BEARER ${key}`],
  "a tab as separator": [`Authorization: Bearer\t${key}`],
  "two spaces": [`Authorization: Bearer  ${key}`],
  "space and tab": [`Authorization: Bearer \t${key}`],
  "no separator": [`Authorization: Bearer${key}`],
  "a colon as separator": [`Authorization: Bearer:${key}`],
  "a no-break space as separator": [`Authorization: Bearer\xa0${key}`],
  "the scheme alone": ["Authorization: Bearer"],
  "the scheme and a space": ["Authorization: Bearer "],
  "an empty Authorization": ["Authorization:"],
  "the bare key": [`Authorization: ${key}`],
  "another scheme": [`Authorization: Basic ${Buffer.from(`${key}:`).toString("base64")}`],
  "something after the key": [`Authorization: Bearer ${key} x`],
  "a comma after the key": [`Authorization: Bearer ${key},`],
  "quotes around the key": [`Authorization: Bearer "${key}"`],
  "two Authorization headers, one of them right": [
    `Authorization: Bearer ${key}`,
    "Authorization: Bearer sk-test-wrong-0123456789",
  ],
  "two Authorization headers, the other one right": [
    "Authorization: Bearer sk-test-wrong-0123456789",
    `Authorization: Bearer ${key}`,
  ],
  "Authorization bad, x-api-key good: Authorization wins": [
    "Authorization: Bearer sk-test-wrong-0123456789",
    `x-api-key: ${key}`,
  ],
  "Authorization malformed, x-api-key good": [`Authorization: bearer ${key}`, `x-api-key: ${key}`],
  "Authorization of another scheme, x-api-key good": ["Authorization: Basic eDp5", `x-api-key: ${key}`],
  "Authorization empty, x-api-key good": ["Authorization:", `x-api-key: ${key}`],
  "x-api-key empty": ["x-api-key:"],
  "x-api-key with a scheme": [`x-api-key: Bearer ${key}`],
  "x-api-key twice": [`x-api-key: ${key}`, `x-api-key: ${key}`],
  "an unknown key of the right form": [`Authorization: Bearer sk-tg-${"A".repeat(43)}`],
  "the key with its last character changed": [`Authorization: Bearer ${key.slice(0, -1)}8`],
  "the key with its last character missing": [`Authorization: Bearer ${key.slice(0, -1)}`],
  "the key in another case": [`Authorization: Bearer ${key.toUpperCase()}`],
  "something that looks like a JWT": ["Authorization: Bearer eyJhbGciOiJub25lIn0.eyJ0eXBlIjoib2F1dGhfYWNjZXNzIn0."],
  "a key of 10 kB": [`Authorization: Bearer ${"k".repeat(10_240)}`],
  "an x-api-key of 10 kB": [`x-api-key: ${"k".repeat(10_240)}`],
  "bytes above ASCII": ["Authorization: Bearer clé-d’accès-0123456789".replace("’", "\x92")],
  "UTF-8 of an emoji": [`Authorization: Bearer ${Buffer.from("🔑🔑🔑🔑🔑").toString("latin1")}`],
  "words of SQL": ["x-api-key: ' or '1'='1"],
  "names that every object has": ["x-api-key: __proto__"],
  "other places for a key": [`x-goog-api-key: ${key}`, `api-key: ${key}`, `Cookie: api_key=${key}`],
  "proxy credentials": [`Proxy-Authorization: Bearer ${key}`],
}

describe("refused, with one text for every cause", () => {
  for (const [name, headers] of Object.entries(refused)) {
    test(name, async () => {
      vendor.reset()
      expectRefused(await ask(headers))
      expect(vendor.calls).toHaveLength(0)
    })
  }

  test("a key in the query string is not a credential", async () => {
    expectRefused(await rawExchange(gateway.url, rawRequest(`${chatPath}?api_key=${key}&key=${key}`, [], body)))
  })

  test("a NUL in the key never gets as far as a look-up", async () => {
    const response = await ask([`Authorization: Bearer ${key.slice(0, 8)}\0${key.slice(8)}`])
    expect(response.status).toBeGreaterThanOrEqual(400)
    expect(response.status).toBeLessThan(500)
    expect(response.text).not.toContain(key.slice(8))
  })

  test("the key that was sent is in no header and no body of the answer", async () => {
    const secret = "sk-test-very-unusual-0123456789"
    const response = await ask([`Authorization: Bearer ${secret}`])
    expect(response.status).toBe(401)
    expect(JSON.stringify(response.headers) + response.text).not.toContain("unusual")
  })

  test("the connection of a refused request goes on to serve a good one", async () => {
    const connection = await rawConnection(gateway.url)
    for (let round = 0; round < 3; round++) {
      connection.send(rawRequest(chatPath, ["Authorization: Bearer sk-test-wrong-0123456789"], body))
      expectRefused(await connection.response())
    }
    connection.send(rawRequest(chatPath, [`x-api-key: ${key}`], body))
    expect((await connection.response()).status).toBe(200)
    connection.leave()
  })
})

test("a suspended account is told so: 403 account_suspended, nothing reaches an upstream", async () => {
  vendor.reset()
  const response = await ask([`Authorization: Bearer ${suspendedKey}`])
  const id = response.header("x-request-id")
  expect(response.status).toBe(403)
  expect(response.text).toBe(
    `{"error":{"type":"permission_error","code":"account_suspended","message":"this account is suspended","request_id":"${id}"},"request_id":"${id}"}`,
  )
  expect(vendor.calls).toHaveLength(0)
})

test("a revoked key is refused like an unknown one", async () => {
  const revoked = "sk-test-revoked-0123456789"
  await gateway.apply({ accounts: [account("gone", revoked)] })
  expect((await ask([`x-api-key: ${revoked}`])).status).toBe(200)
  const { id } = (await listKeys(gateway.store.db)).find(({ account }) => account === "gone")!
  await gateway.store.db.updateTable("keys").set({ revoked_at: 1n }).where("id", "=", id).execute()
  // Any change of the catalog makes an instance look keys up again.
  await gateway.apply({ models: [model("m2", ["a"])] })
  expectRefused(await ask([`x-api-key: ${revoked}`]))
})

describe("while the database is away", () => {
  const away: { server?: Awaited<ReturnType<typeof launchPostgres>>; gateway?: TestGateway } = {}
  beforeAll(async () => {
    away.server = await launchPostgres()
    away.gateway = await startGateway(document, { kind: "postgres", url: await away.server.freshDatabase() })
  }, 60_000)
  afterAll(async () => {
    await away.gateway?.stop()
    await away.server?.stop()
  })

  test("a key not seen before gets 503 and never 401; a key in use goes on; both work when it is back", async () => {
    const { url } = away.gateway!
    expect((await ask([`Authorization: Bearer ${key}`], url)).status).toBe(200)
    await away.server!.kill()

    const cold = await ask([`Authorization: Bearer ${coldKey}`], url)
    const id = cold.header("x-request-id")
    expect(cold.status).toBe(503)
    expect(cold.header("www-authenticate")).toBeUndefined()
    expect(JSON.parse(cold.text)).toEqual({
      error: {
        type: "overloaded_error",
        code: "backend_unavailable",
        message: "the gateway's database is not available; try again shortly",
        request_id: id,
      },
      request_id: id,
    })
    expect((await ask([`Authorization: Bearer ${key}`], url)).status).toBe(200)
    expectRefused(await ask([`Authorization: bearer ${coldKey}`], url))
    const ready = await fetch(`${url}/health/ready`)
    expect([ready.status, await ready.json()]).toEqual([503, { status: "database away" }])
    expect((await fetch(`${url}/health`)).status).toBe(200)

    await away.server!.start()
    const until = performance.now() + 15_000
    let status = 0
    while (status !== 200 && performance.now() < until) {
      status = (await ask([`Authorization: Bearer ${coldKey}`], url)).status
      expect([200, 503]).toContain(status)
      if (status !== 200) await Bun.sleep(20)
    }
    expect(status).toBe(200)
    expectRefused(await ask(["Authorization: Bearer sk-test-wrong-0123456789"], url))
    expect((await fetch(`${url}/health/ready`)).status).toBe(200)
  }, 60_000)
})
