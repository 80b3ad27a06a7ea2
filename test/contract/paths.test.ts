import { afterAll, afterEach, expect, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { expectError } from "../support/error-envelope.ts"
import { model, startGateway, testKey, upstream } from "../support/gateway.ts"
import { type RawResponse, rawExchange, rawRequest } from "../support/raw-http.ts"

const chatPath = "/v1/chat/completions"
const body = '{"model":"m","messages":[]}'
const credential = `Authorization: Bearer ${testKey}`
const notFound = { status: 404, type: "not_found_error", code: "not_found" }

const simulator = await startSimulator()
const vendor = simulator.vendor("a")
const gateway = await startGateway({ upstreams: [upstream("a", vendor.baseUrl)], models: [model("m", ["a"])] })
afterEach(() => vendor.reset())
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
})

function ask(headers: readonly string[], text = body, target = chatPath, method = "POST"): Promise<RawResponse> {
  return rawExchange(gateway.url, rawRequest(target, headers, text, method))
}

const unknown = [
  "//",
  "/v1",
  "/v1/",
  "/v1/../x",
  "/v1/chat/completions/..",
  "//v1/chat/completions",
  "/v1//chat/completions",
  "/v1/chat//completions",
  "/V1/chat/completions",
  "/v1/Chat/Completions",
  "/v1/chat/completions/",
  "/v1/chat/completions.",
  "/v1/chat/completions;x=1",
  "/v1/chat;x=1/completions",
  "/v1/chat%2fcompletions",
  "/v1/ch%61t/completions",
  "/v1/chat/completions%00",
  "/v1/chat/completions%20",
  "/v1/chat/completions%3Fx=1",
  "/v1/chat/completions/%2e%2e",
  "/v1/%2e%2e/x",
  "/health/",
  "/healthy",
  "/health/ready/",
  "/chat/completions",
  "/__proto__",
  "/constructor",
  "/compat",
  `/${"a".repeat(10_000)}`,
]
for (const target of unknown) {
  test(`${target.slice(0, 40)} is 404 not_found, key or no key`, async () => {
    expectError(await ask([credential], body, target), notFound)
    expectError(await ask([], body, target), notFound)
    expect(vendor.calls).toHaveLength(0)
  })
}

test("a very long path is told in part only", async () => {
  expect((await ask([], body, `/${"a".repeat(10_000)}`)).text.length).toBeLessThan(600)
})

test("markup and quotes in a path come back as JSON text", async () => {
  const response = await ask([], body, `/"><script>alert(1)</script>`)
  expectError(response, notFound)
  expect(response.header("content-type")).toBe("application/json")
})

test("a spelling that means the same path is served under the same rules", async () => {
  for (const target of ["/v1/x/../chat/completions", "/v1/x/%2e%2e/chat/completions"]) {
    expect((await ask([], body, target)).status).toBe(401)
    expect((await ask([credential], body, target)).status).toBe(200)
  }
  // What the upstream is asked does not depend on the spelling.
  expect(vendor.calls.map(({ path }) => path)).toEqual(["/a/v1/chat/completions", "/a/v1/chat/completions"])
})

test("the path is found without a usable Host header as well", async () => {
  const post = `Content-Length: ${body.length}\r\n${credential}\r\n\r\n${body}`
  const http10 = await rawExchange(gateway.url, `POST ${chatPath} HTTP/1.0\r\n${post}`)
  const emptyHost = await rawExchange(gateway.url, `POST ${chatPath} HTTP/1.1\r\nHost:\r\n${post}`)
  const oddHost = await rawExchange(gateway.url, `POST ${chatPath} HTTP/1.1\r\nHost: a/health?\r\n${post}`)
  const health = await rawExchange(gateway.url, "GET /health HTTP/1.0\r\n\r\n")
  expect([http10, emptyHost, oddHost, health].map(({ status }) => status)).toEqual([200, 200, 200, 200])
  const deeper = await rawExchange(gateway.url, `POST /x123456${chatPath} HTTP/1.1\r\nHost:\r\n${post}`)
  expectError(deeper, notFound)
})

test("the query string is kept and forwarded, and does not count for matching", async () => {
  const queries = ["?a=b&model=x", "?", "?x=/v1/other", "?a=b?c=%2Fd&e=%20f+g", "?%C3%A9=1&&=;"]
  for (const query of queries) expect((await ask([credential], body, chatPath + query)).status).toBe(200)
  expect(vendor.calls.map(({ path }) => path)).toEqual(queries.map((query) => `/a/v1/chat/completions${query}`))
  expectError(await ask([credential], body, `/v1/nowhere?x=${chatPath}`), notFound)
})

for (const target of ["/compat/", "/compat/v1/nowhere", "/compat/v1/messages/nowhere"]) {
  test(`${target} is 404 in the messages style`, async () => {
    const response = await ask([], body, target)
    const id = response.header("x-request-id")
    expect(response.status).toBe(404)
    expect(response.text).toBe(
      JSON.stringify({
        type: "error",
        error: {
          type: "not_found_error",
          code: "not_found",
          message: `there is nothing at ${target}`,
          request_id: id,
        },
        request_id: id,
      }),
    )
  })
}

test("wrong methods are 405 and told which one is right", async () => {
  for (const method of ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
    const response = await ask([credential], "", chatPath, method)
    expectError(response, {
      status: 405,
      type: "invalid_request_error",
      code: "method_not_allowed",
      message: `/v1/chat/completions takes POST, not ${method}`,
    })
    expect(response.header("allow")).toBe("POST")
  }
  expect((await fetch(gateway.url + chatPath, { method: "HEAD" })).status).toBe(405)
})
