import { afterAll, beforeEach, describe, expect, test } from "bun:test"
import Anthropic from "@anthropic-ai/sdk"
import OpenAI from "openai"
import { startSimulator } from "../../simulator/simulator.ts"
import { rawClient } from "../../simulator/testing/raw-client.ts"
import { eventually, model, startGateway, testKey, upstream } from "../support/gateway.ts"
import { type RawResponse, rawExchange, rawHead, rawRequest } from "../support/raw-http.ts"

const simulator = await startSimulator()
const vendor = simulator.vendor("a")
const catalog = { upstreams: [upstream("a", vendor.baseUrl)], models: [model("m", ["a"])] }
const page = "https://app.example.com"
const [closed, listed, open] = await Promise.all([
  startGateway(catalog),
  startGateway({ ...catalog, corsOrigins: [page, "http://localhost:5173"] }),
  startGateway({ ...catalog, corsOrigins: ["*"] }),
])
beforeEach(() => vendor.reset())
afterAll(async () => {
  await Promise.all([closed, listed, open].map((gateway) => gateway.stop()))
  await simulator.stop()
})

const credential = `Authorization: Bearer ${testKey}`
const json = "Content-Type: application/json"
const exposed =
  "x-request-id, request-id, x-upstream-request-id, retry-after, x-should-retry, x-ratelimit-limit, x-ratelimit-remaining"

interface Sent {
  readonly origin?: string | null
  readonly headers?: readonly string[]
  readonly body?: string
}

function send(gateway: typeof closed, method: string, path: string, sent: Sent = {}): Promise<RawResponse> {
  const { origin = page, headers = [], body = "" } = sent
  const all = origin === null ? headers : [`Origin: ${origin}`, ...headers]
  return rawExchange(gateway.url, rawRequest(path, all, body, method))
}

/** The head of an answer without a body, which the connection's end shows. */
async function headOnly(gateway: typeof closed, method: string, path: string, headers: readonly string[]) {
  const client = await rawClient(Number(new URL(gateway.url).port))
  client.send(rawHead(path, [...headers, "Connection: close"], method))
  await client.ended
  const [statusLine = "", ...lines] = client.text().split("\r\n")
  expect(client.text().indexOf("\r\n\r\n")).toBe(client.text().length - 4)
  const pairs = lines.filter((line) => line !== "").map((line) => line.split(": ", 2) as [string, string])
  return {
    status: Number(statusLine.split(" ")[1]),
    headers: Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), value])),
  }
}

function preflight(gateway: typeof closed, path: string, method: string, origin = page, asked = "authorization") {
  const headers = [
    `Origin: ${origin}`,
    `Access-Control-Request-Method: ${method}`,
    `Access-Control-Request-Headers: ${asked}`,
  ]
  return headOnly(gateway, "OPTIONS", path, headers)
}

const corsOf = (response: RawResponse): Record<string, string> =>
  Object.fromEntries(
    response.headers
      .map(([name, value]) => [name.toLowerCase(), value] as const)
      .filter(([name]) => name.startsWith("access-control-") || name === "vary"),
  )
const allowed = (origin: string) => ({
  "access-control-allow-origin": origin,
  "access-control-expose-headers": exposed,
  vary: "origin",
})
const chat = (more: object = {}): string => JSON.stringify({ model: "m", messages: [], ...more })

describe("off, as it is unless configured", () => {
  test("a preflight is 405 on paths that exist and 404 elsewhere, and nothing speaks of CORS", async () => {
    const headers = ["Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization"]
    for (const [path, status, allow] of [
      ["/v1/chat/completions", 405, "POST"],
      ["/v1/audio/transcriptions", 405, "POST"],
      ["/v1/models", 405, "GET, HEAD"],
      ["/", 405, "GET, HEAD"],
      ["/v1/nowhere", 404, undefined],
    ] as const) {
      const response = await send(closed, "OPTIONS", path, { headers })
      expect([path, response.status, response.header("allow")]).toEqual([path, status, allow])
      expect(corsOf(response)).toEqual({})
    }
  })

  test("requests of a page are served as any other, without a word to its browser", async () => {
    const answers = await Promise.all([
      send(closed, "POST", "/v1/chat/completions", { headers: [credential, json], body: chat() }),
      send(closed, "POST", "/v1/chat/completions", { headers: [credential, json], body: chat({ stream: true }) }),
      send(closed, "POST", "/v1/chat/completions", { headers: [json], body: chat() }),
      send(closed, "GET", "/v1/models", { headers: [credential] }),
    ])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 401, 200])
    expect(answers.map(corsOf)).toEqual([{}, {}, {}, {}])
  })
})

describe("a preflight of a listed origin", () => {
  const asked = "authorization,content-type,x-stainless-os"
  for (const [path, method, methods] of [
    ["/v1/chat/completions", "POST", "POST"],
    ["/v1/responses", "POST", "POST"],
    ["/v1/images/edits", "POST", "POST"],
    ["/v1/models", "GET", "GET, HEAD"],
    ["/v1/models/m", "GET", "GET, HEAD"],
    ["/compat/v1/models", "GET", "GET, HEAD"],
    ["/v1/models?limit=1", "GET", "GET, HEAD"],
  ] as const) {
    test(`${path}: 204 with exactly these headers, no key asked for`, async () => {
      const { status, headers } = await preflight(listed, path, method, page, asked)
      expect(status).toBe(204)
      const { date: _, "x-request-id": id, connection: __, ...rest } = headers
      expect(id).toMatch(/^req_[0-9a-f]{32}$/)
      expect(rest).toEqual({
        "access-control-allow-origin": page,
        "access-control-allow-methods": methods,
        "access-control-allow-headers": asked,
        "access-control-max-age": "600",
        vary: "origin, access-control-request-headers",
      })
    })
  }

  test("it is over at once: nothing stays in flight, nobody is asked, nothing is counted", async () => {
    for (let round = 0; round < 5; round++) await preflight(listed, "/v1/models", "GET")
    expect(listed.inFlight).toBe(0)
    expect(vendor.calls).toHaveLength(0)
    const first = await send(open, "GET", "/v1/models", { headers: [credential] })
    await preflight(open, "/v1/models", "GET")
    const second = await send(open, "GET", "/v1/models", { headers: [credential] })
    const [before, after] = [first, second].map((response) => Number(response.header("x-ratelimit-remaining")))
    expect(after).toBe(before! - 1)
  })

  test("a path that does not exist is 404, which a page may read", async () => {
    const response = await send(listed, "OPTIONS", "/v1/nowhere", { headers: ["Access-Control-Request-Method: POST"] })
    expect(response.status).toBe(404)
    expect(corsOf(response)).toEqual(allowed(page))
  })

  test("OPTIONS that asks for no method is no preflight: 405", async () => {
    const response = await send(listed, "OPTIONS", "/v1/chat/completions")
    expect([response.status, response.header("allow")]).toEqual([405, "POST"])
    expect(corsOf(response)).toEqual(allowed(page))
  })

  test("all that the official clients send from a page is allowed", async () => {
    for (const [path, method, sent] of await headersOfClients()) {
      const asked = sent.filter((name) => !safelisted.has(name)).join(",")
      const { status, headers } = await preflight(listed, path, method, page, asked)
      expect(status).toBe(204)
      const granted = headers["access-control-allow-headers"]!.split(/, ?/)
      expect(asked.split(",").filter((name) => !granted.includes(name))).toEqual([])
    }
  })
})

/** What a browser sends without asking. */
const safelisted: ReadonlySet<string> = new Set(["accept", "accept-language", "content-language", "user-agent"])

async function headersOfClients(): Promise<[path: string, method: string, names: string[]][]> {
  const seen: [string, string, string[]][] = []
  const noting = (async (url: string | URL | Request, init?: RequestInit) => {
    const request = url instanceof Request ? url : new Request(String(url), init)
    seen.push([new URL(request.url).pathname, request.method, [...request.headers.keys()]])
    return fetch(request)
  }) as typeof fetch
  const options = { apiKey: testKey, dangerouslyAllowBrowser: true, maxRetries: 0, fetch: noting }
  const openai = new OpenAI({ ...options, baseURL: `${listed.url}/v1`, organization: "org", project: "p" })
  await openai.chat.completions.create({ model: "m", messages: [] })
  await openai.models.list()
  await new Anthropic({ ...options, baseURL: `${listed.url}/compat` }).models.list()
  expect(seen).toHaveLength(3)
  expect(seen.flatMap(([, , names]) => names)).toContain("x-stainless-lang")
  return seen
}

describe("a request of a listed origin", () => {
  test("each listed origin gets its own name back, on answers of every kind", async () => {
    for (const origin of [page, "http://localhost:5173"]) {
      const asks: [string, string, Sent, number][] = [
        ["POST", "/v1/chat/completions", { headers: [credential, json], body: chat() }, 200],
        ["POST", "/v1/chat/completions", { headers: [credential, json], body: chat({ stream: true }) }, 200],
        ["GET", "/v1/models", { headers: [credential] }, 200],
        ["GET", "/", {}, 200],
      ]
      for (const [method, path, sent, status] of asks) {
        const response = await send(listed, method, path, { ...sent, origin })
        expect([path, response.status, corsOf(response)]).toEqual([path, status, allowed(origin)])
      }
    }
  })

  test("errors too, so that a page can tell what is wrong", async () => {
    vendor.behave({ kind: "status", status: 418, json: { error: { message: "teapot" } } })
    const asks: [string, string, Sent, number][] = [
      ["POST", "/v1/chat/completions", { headers: [json], body: chat() }, 401],
      ["GET", "/v1/models", {}, 401],
      ["GET", "/compat/v1/models", {}, 401],
      ["GET", "/v1/models/nope", { headers: [credential] }, 404],
      ["POST", "/v1/chat/completions", { headers: [credential, json], body: "{" }, 400],
      ["POST", "/v1/chat/completions", { headers: [credential, json], body: chat({ model: "nope" }) }, 404],
      ["POST", "/v1/chat/completions", { headers: [credential, json], body: chat() }, 418],
      ["POST", "/v1/audio/speech", { headers: [credential, json, "Content-Encoding: gzip"], body: "x" }, 415],
      ["DELETE", "/v1/chat/completions", { headers: [credential] }, 405],
      ["POST", "/v1/nowhere", { headers: [credential] }, 404],
    ]
    for (const [method, path, sent, status] of asks) {
      const response = await send(listed, method, path, sent)
      expect([path, response.status, corsOf(response)]).toEqual([path, status, allowed(page)])
    }
  })

  test("a stream still comes piece by piece, and leaving it ends the upstream's call", async () => {
    vendor.behave({ kind: "chat", chunks: 500, gapMs: 20 })
    const response = await listed.chat({ model: "m", messages: [], stream: true }, { headers: { origin: page } })
    expect(response.headers.get("access-control-allow-origin")).toBe(page)
    const reader = response.body!.getReader()
    expect((await reader.read()).value?.length).toBeGreaterThan(0)
    expect(vendor.openCalls()).toBe(1)
    await reader.cancel()
    await eventually(() => vendor.calls[0]?.closedByPeer, 1000)
    await eventually(() => listed.inFlight === 0)
  })
})

describe("an origin that is not listed", () => {
  const strangers = [
    "https://evil.example",
    "https://app.example.com.evil.example",
    "https://app.example.com:8443",
    "http://app.example.com",
    "https://APP.example.com",
    "https://sub.app.example.com",
    "null",
    "*",
  ]
  test.each(strangers)("%s: a preflight is refused as without CORS, a request gets no permission", async (origin) => {
    const asking = await send(listed, "OPTIONS", "/v1/chat/completions", {
      origin,
      headers: ["Access-Control-Request-Method: POST"],
    })
    expect([asking.status, asking.header("allow"), corsOf(asking)]).toEqual([405, "POST", {}])
    const response = await send(listed, "GET", "/v1/models", { origin, headers: [credential] })
    expect([response.status, corsOf(response)]).toEqual([200, {}])
  })

  test("nor does a program that sends no origin", async () => {
    const response = await send(listed, "GET", "/v1/models", { origin: null, headers: [credential] })
    expect([response.status, corsOf(response)]).toEqual([200, {}])
  })
})

test("`*` lets every origin in by its own name", async () => {
  for (const origin of ["https://anything.example", "null", "http://127.0.0.1:3000"]) {
    const { status, headers } = await preflight(open, "/v1/chat/completions", "POST", origin)
    expect([status, headers["access-control-allow-origin"]]).toEqual([204, origin])
    const response = await send(open, "GET", "/v1/models", { origin, headers: [credential] })
    expect(corsOf(response)).toEqual(allowed(origin))
  }
  const response = await send(open, "GET", "/v1/models", { origin: null, headers: [credential] })
  expect(corsOf(response)).toEqual({})
})

test("credentials are never allowed: keys travel in headers, not in cookies", async () => {
  const { headers } = await preflight(open, "/v1/chat/completions", "POST")
  expect(Object.keys(headers)).not.toContain("access-control-allow-credentials")
  const response = await send(open, "GET", "/v1/models", { headers: [credential] })
  expect(response.header("access-control-allow-credentials")).toBeUndefined()
})

test("the back office is closed to pages: its preflight is no 204", async () => {
  for (const gateway of [listed, open]) {
    const response = await send(gateway, "OPTIONS", "/api/accounts", {
      headers: ["Access-Control-Request-Method: GET"],
    })
    expect(response.status).toBe(401)
    expect(response.header("access-control-allow-methods")).toBeUndefined()
    expect(response.header("access-control-allow-headers")).toBeUndefined()
  }
})

test("origins can be changed while the gateway runs", async () => {
  const later = "https://later.example"
  expect((await preflightStatus(later)) === 204).toBe(false)
  await listed.apply({ corsOrigins: [page, "http://localhost:5173", later] })
  expect(await preflightStatus(later)).toBe(204)
})

async function preflightStatus(origin: string): Promise<number> {
  const headers = ["Access-Control-Request-Method: POST"]
  const connection = await rawClient(Number(new URL(listed.url).port))
  connection.send(rawHead("/v1/models", [...headers, `Origin: ${origin}`, "Connection: close"], "OPTIONS"))
  await connection.ended
  return Number(connection.text().split(" ")[1])
}

describe("HEAD", () => {
  test("/ is a quick 200 without a key and without a body, as GET is with one", async () => {
    for (const gateway of [closed, listed]) {
      const { status, headers } = await headOnly(gateway, "HEAD", "/", [])
      expect(status).toBe(200)
      expect(headers["x-request-id"]).toMatch(/^req_[0-9a-f]{32}$/)
      expect(gateway.inFlight).toBe(0)
    }
    expect((await send(closed, "GET", "/", { origin: null })).text).toBe('{"service":"tollgate"}')
  })

  test("/v1/models needs a key, and tells a page the limits", async () => {
    const { status, headers } = await headOnly(listed, "HEAD", "/v1/models", [credential, `Origin: ${page}`])
    expect(status).toBe(200)
    expect(headers).toMatchObject({ "x-ratelimit-limit": "240", ...allowed(page) })
    expect((await headOnly(listed, "HEAD", "/v1/models", [])).status).toBe(401)
  })

  test("a path of the model API takes no HEAD", async () => {
    const { status, headers } = await headOnly(closed, "HEAD", "/v1/chat/completions", [credential])
    expect([status, headers.allow]).toEqual([405, "POST"])
  })
})
