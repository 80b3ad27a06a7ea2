import { afterAll, afterEach, describe, expect, test } from "bun:test"
import type { RecordedCall } from "../../simulator/calls.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { headerOf, model, startGateway, testKey, upstream } from "../support/gateway.ts"
import { type RawResponse, rawExchange, rawRequest } from "../support/raw-http.ts"

const chatPath = "/v1/chat/completions"
const plain = '{"model":"m","messages":[]}'
const streamed = '{"model":"m","messages":[],"stream":true}'
const credential = `Authorization: Bearer ${testKey}`
const secret = "credential-of-a"

const simulator = await startSimulator()
const vendor = simulator.vendor("a")
const elsewhere = simulator.vendor("elsewhere")
const gateway = await startGateway({
  upstreams: [
    upstream("a", vendor.baseUrl),
    upstream("b", vendor.baseUrl, {
      headers: { "X-Team": "blue", "x-trace": "on", "User-Agent": "configured/1", "OpenAI-Organization": "org-ours" },
    }),
    upstream("azure", vendor.baseUrl, { vendor: "azure-openai" }),
    upstream("open", vendor.baseUrl, { vendor: "openai-compatible", apiKeys: [] }),
    upstream("pool", vendor.baseUrl, { apiKeys: ["first-of-pool-0123", "second-of-pool-0123"] }),
  ],
  models: [
    model("m", ["a"]),
    model("configured", ["b"]),
    model("azure", ["azure"]),
    model("open", ["open"]),
    model("pool", ["pool"]),
  ],
})
afterEach(() => vendor.reset())
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
})

function ask(headers: readonly string[] = [], body = plain): Promise<RawResponse> {
  return rawExchange(gateway.url, rawRequest(chatPath, [credential, ...headers], body))
}

/** The one call that a request led to. */
async function callFor(headers: readonly string[], name = "m", withCredential = true): Promise<RecordedCall> {
  vendor.reset()
  const all = withCredential ? [credential, ...headers] : headers
  const response = await rawExchange(gateway.url, rawRequest(chatPath, all, `{"model":"${name}","messages":[]}`))
  expect(response.status).toBe(200)
  expect(vendor.calls).toHaveLength(1)
  return vendor.calls[0]!
}

function namesOf(call: RecordedCall): string[] {
  return call.headers.map(([name]) => name.toLowerCase()).toSorted()
}

/** What every call has, whatever the caller sends. */
const always = ["accept", "accept-encoding", "authorization", "connection", "content-length", "host", "user-agent"]

describe("request headers", () => {
  test("those of the list travel on with their values", async () => {
    const sent = {
      "content-type": "application/json; charset=utf-8",
      accept: "text/event-stream, */*;q=0.1",
      "user-agent": "MyApp/1.0 (test)",
      "idempotency-key": "key-42",
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      "openai-beta": "assistants=v2",
      "anthropic-version": "2023-06-01",
      "anthropic-beta": "a,b",
      "anthropic-anything": "x",
    }
    const call = await callFor(Object.entries(sent).map(([name, value]) => `${name}: ${value}`))
    for (const [name, value] of Object.entries(sent)) expect([name, headerOf(call, name)]).toEqual([name, value])
    expect(namesOf(call)).toEqual([...new Set([...always, ...Object.keys(sent)])].toSorted())
  })

  test("a caller that sends none of them leaves only what the gateway sets itself", async () => {
    const call = await callFor([])
    expect(namesOf(call)).toEqual(always)
    expect(headerOf(call, "accept-encoding")).toBe("identity")
    expect(headerOf(call, "user-agent")).toMatch(/^tollgate\/\d+\.\d+\.\d+/)
    expect(headerOf(call, "host")).toBe(new URL(vendor.baseUrl).host)
  })

  test("compression is never asked for, whatever the caller accepts", async () => {
    const call = await callFor(["Accept-Encoding: gzip, br, zstd"])
    expect(headerOf(call, "accept-encoding")).toBe("identity")
  })

  const kept = {
    Cookie: "session=secret-cookie",
    Cookie2: "$Version=1",
    "Proxy-Authorization": "Basic c2VjcmV0",
    "X-Goog-Api-Key": "secret-goog",
    "Api-Key": "secret-azure",
    "X-Key": "secret-bfl",
    "X-Forwarded-For": "203.0.113.7",
    "X-Forwarded-Host": "inside.example",
    "X-Forwarded-Proto": "https",
    Forwarded: "for=203.0.113.7",
    "X-Real-IP": "203.0.113.7",
    Via: "1.1 proxy",
    "X-Request-Id": "req_of_the_caller",
    "X-Internal-Token": "secret-internal",
    "X-Portkey-Custom-Host": "http://127.0.0.1:1",
    "OpenAI-Organization": "org-of-the-caller",
    "OpenAI-Project": "project-of-the-caller",
    Origin: "https://example.com",
    Referer: "https://example.com/secret",
    Range: "bytes=0-1",
    "If-None-Match": "tag-of-the-caller",
    // For this hop only.
    "Keep-Alive": "timeout=5",
    TE: "trailers",
    Trailer: "X-A",
    "Proxy-Connection": "keep-alive",
    Prefer: "wait",
  }

  test("nothing else does: other credentials, cookies, hop-by-hop, forwarding and unknown headers", async () => {
    const call = await callFor(Object.entries(kept).map(([name, value]) => `${name}: ${value}`))
    expect(namesOf(call)).toEqual(always)
    const all = JSON.stringify(call.headers)
    for (const value of Object.values(kept)) {
      if (value !== "keep-alive") expect(all).not.toContain(value)
    }
  })

  test("the caller's credential never reaches the upstream, in whichever header it came", async () => {
    const calls = [
      await callFor([]),
      await callFor([`x-api-key: ${testKey}`], "m", false),
      await callFor([`x-api-key: ${testKey}`, `x-goog-api-key: ${testKey}`]),
      await callFor(["x-api-key: sk-test-another-0123456789"]),
    ]
    for (const call of calls) {
      expect(JSON.stringify(call.headers)).not.toContain("sk-test")
      expect(headerOf(call, "authorization")).toBe(`Bearer ${secret}`)
      expect(headerOf(call, "x-api-key")).toBeUndefined()
    }
  })

  test("whatever Connection names stays here, an allowed header too", async () => {
    const call = await callFor([
      "Connection: close, X-Secret, User-Agent,  anthropic-beta ,IDEMPOTENCY-KEY",
      "X-Secret: 1",
      "User-Agent: MyApp/1.0",
      "anthropic-beta: a",
      "anthropic-version: 2023-06-01",
      "Idempotency-Key: key-42",
      "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ])
    expect(namesOf(call)).toEqual([...always, "anthropic-version", "traceparent"].toSorted())
    expect(headerOf(call, "user-agent")).toMatch(/^tollgate\//)
  })

  test("Connection in several lines and naming what the gateway needs itself changes nothing of it", async () => {
    const call = await callFor([
      "Connection: keep-alive",
      "Connection: authorization, host, content-length, accept-encoding, openai-beta",
      "OpenAI-Beta: x",
    ])
    expect(namesOf(call)).toEqual(always)
    expect(headerOf(call, "authorization")).toBe(`Bearer ${secret}`)
    expect(headerOf(call, "accept-encoding")).toBe("identity")
  })

  test("an upgrade is not passed on", async () => {
    const call = await callFor(["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"])
    expect(namesOf(call)).toEqual(always)
  })

  test("a header sent twice arrives as one list", async () => {
    const call = await callFor(["anthropic-beta: a", "anthropic-beta: b"])
    expect(call.headers.filter(([name]) => name.toLowerCase() === "anthropic-beta").map(([, value]) => value)).toEqual([
      "a, b",
    ])
  })
})

describe("what an upstream's configuration adds", () => {
  test("its own headers, which win over the caller's whatever their case", async () => {
    const call = await callFor(["User-Agent: MyApp/1.0", "X-Team: red", "OpenAI-Organization: theirs"], "configured")
    expect(headerOf(call, "x-team")).toBe("blue")
    expect(headerOf(call, "x-trace")).toBe("on")
    expect(headerOf(call, "user-agent")).toBe("configured/1")
    expect(headerOf(call, "openai-organization")).toBe("org-ours")
    expect(namesOf(call)).toEqual([...always, "openai-organization", "x-team", "x-trace"].toSorted())
  })

  test("the credential stands where the vendor wants it", async () => {
    const bearer = await callFor([])
    expect(headerOf(bearer, "authorization")).toBe("Bearer credential-of-a")
    const azure = await callFor([], "azure")
    expect(headerOf(azure, "api-key")).toBe("credential-of-azure")
    expect(headerOf(azure, "authorization")).toBeUndefined()
    const open = await callFor([], "open")
    expect(namesOf(open)).toEqual(always.filter((name) => name !== "authorization"))
  })

  test("the keys of a pool are used in turn", async () => {
    const used: (string | undefined)[] = []
    for (let round = 0; round < 4; round++) used.push(headerOf(await callFor([], "pool"), "authorization"))
    expect(used).toEqual([
      "Bearer first-of-pool-0123",
      "Bearer second-of-pool-0123",
      "Bearer first-of-pool-0123",
      "Bearer second-of-pool-0123",
    ])
  })
})

/** Headers an upstream may send that say more about it, or about itself as a hop, than the caller should hear. */
const telling = {
  "set-cookie": "vendor=1; Path=/",
  server: "cloudflare",
  "cf-ray": "8f00",
  via: "1.1 vendor",
  "alt-svc": 'h3=":443"',
  "openai-organization": "org-ours",
  "openai-processing-ms": "12",
  "x-ratelimit-remaining-requests": "9",
  "x-powered-by": "vendor",
  "strict-transport-security": "max-age=1",
  "access-control-allow-origin": "*",
  "keep-alive": "timeout=5",
  "proxy-authenticate": "Basic",
  "www-authenticate": "Bearer",
  trailer: "x-a",
  location: "https://vendor.example/",
  date: "Thu, 01 Jan 1970 00:00:00 GMT",
}
const returned = {
  "content-type": "application/json; odd=1",
  "content-disposition": 'attachment; filename="a.json"',
  "retry-after": "7",
  "x-should-retry": "true",
}

function responseNames(response: RawResponse): string[] {
  return response.headers.map(([name]) => name.toLowerCase()).toSorted()
}

describe("response headers", () => {
  for (const status of [200, 422]) {
    test(`of a ${status}: those of the list come back, the rest does not`, async () => {
      const json = status === 200 ? { choices: [] } : { error: { message: "no" } }
      vendor.behave({ kind: "status", status, json, headers: { ...telling, ...returned, "x-request-id": "up-1" } })
      const response = await ask()
      expect(response.status).toBe(status)
      for (const [name, value] of Object.entries(returned)) expect([name, response.header(name)]).toEqual([name, value])
      expect(response.header("x-upstream-request-id")).toBe("up-1")
      expect(response.header("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/)
      const expected = [...Object.keys(returned), "content-length", "date", "x-request-id", "x-upstream-request-id"]
      expect(responseNames(response)).toEqual(expected.toSorted())
      expect(response.header("date")).not.toBe(telling.date)
      expect(response.header("content-length")).toBe(String(JSON.stringify(json).length))
    })
  }

  test("an upstream's request-id is told as well where it has that name", async () => {
    vendor.behave({ kind: "status", status: 200, json: { choices: [] }, headers: { "request-id": "up-2" } })
    expect((await ask()).header("x-upstream-request-id")).toBe("up-2")
  })

  test("of a stream: ready for proxies that would buffer it, and as scrubbed as any other", async () => {
    const body =
      'data: {"id":"c","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    const headers = { ...telling, "x-request-id": "up-3", "cache-control": "public, max-age=60" }
    vendor.behave({ kind: "stream", body, headers: { ...headers, "content-type": "text/event-stream; charset=utf-8" } })
    const response = await ask([], streamed)
    expect(response.status).toBe(200)
    expect(response.header("content-type")).toBe("text/event-stream; charset=utf-8")
    expect(response.header("cache-control")).toBe("no-cache, no-transform")
    expect(response.header("x-accel-buffering")).toBe("no")
    expect(response.header("x-upstream-request-id")).toBe("up-3")
    expect(responseNames(response)).toEqual([
      "cache-control",
      "content-type",
      "date",
      "transfer-encoding",
      "x-accel-buffering",
      "x-request-id",
      "x-upstream-request-id",
    ])
  })

  test("a compressed answer reaches the caller as plain bytes without a word about compression", async () => {
    for (const encoding of ["gzip", "br", "deflate", "zstd"] as const) {
      vendor.behave({ kind: "gzip", encoding, inner: { kind: "status", status: 200, json: { choices: [], x: "é" } } })
      const response = await ask()
      expect([encoding, response.status, response.text]).toEqual([encoding, 200, '{"choices":[],"x":"é"}'])
      expect(response.header("content-encoding")).toBeUndefined()
    }
  })
})

describe("our own credential is not told to callers", () => {
  test("it is blanked out of a passed 4xx, body and headers, and nothing else is", async () => {
    const body = `{"error":{"message":"Incorrect API key provided: ${secret}. See ?key=${secret}&x=1 é","code":null}}`
    vendor.behave({
      kind: "status",
      status: 401,
      body,
      headers: { "x-request-id": `id-${secret}`, "content-disposition": `x; filename=${secret}` },
    })
    const response = await ask()
    expect(response.status).toBe(401)
    expect(response.text).toBe(body.replaceAll(secret, "***"))
    expect(response.header("content-length")).toBe(String(Buffer.byteLength(response.text)))
    expect(response.header("x-upstream-request-id")).toBe("id-***")
    expect(response.header("content-disposition")).toBe("x; filename=***")
    // The vendor refused us, not the caller.
    expect(response.header("www-authenticate")).toBeUndefined()
  })

  test("nor in what the gateway itself says of a failure", async () => {
    vendor.behave({ kind: "status", status: 500, body: `{"error":"bad key ${secret}"}` })
    const response = await ask()
    expect(response.status).toBe(502)
    expect(JSON.stringify(response.headers) + response.text).not.toContain(secret)
  })

  test("nor in the story of the request", async () => {
    vendor.behave({ kind: "status", status: 401, body: `{"error":"bad key ${secret}"}` })
    const response = await gateway.chat(plain)
    expect(Bun.inspect(await gateway.story(response), { depth: 10 })).not.toContain(secret)
  })
})

describe("redirects", () => {
  for (const status of [301, 302, 303, 307, 308]) {
    test(`${status} is not followed, and the credential is sent nowhere else`, async () => {
      const location = `${elsewhere.baseUrl}/chat/completions`
      for (const body of [plain, streamed]) {
        vendor.reset()
        vendor.behave({ kind: "status", status, body: "", headers: { location } })
        const response = await ask([], body)
        expect(response.status).toBe(502)
        expect((JSON.parse(response.text) as { error: { code: string } }).error.code).toBe("upstream_invalid_response")
        expect(response.header("location")).toBeUndefined()
        expect(vendor.calls).toHaveLength(1)
      }
      expect(elsewhere.calls).toHaveLength(0)
    })
  }
})
