import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { apiRoutes } from "../../src/http/routes.ts"
import { allEndpoints, type EndpointSample, endpointSamples } from "../support/endpoints.ts"
import { expectError } from "../support/error-envelope.ts"
import { eventually, model, startGateway, testKey, upstream } from "../support/gateway.ts"
import { type RawResponse, rawChunk, rawConnection, rawExchange, rawHead, rawRequest } from "../support/raw-http.ts"
import { mebibyte, pour, slices } from "../support/raw-upload.ts"

setDefaultTimeout(60_000)
const credential = `Authorization: Bearer ${testKey}`

const simulator = await startSimulator()
const vendor = simulator.vendor("a")
// One slot: whatever kept it would make the next request fail.
const gateway = await startGateway({
  upstreams: [upstream("a", vendor.baseUrl, { vendor: "openai-compatible" })],
  models: [model("m", [{ upstream: "a", model: "m" }])],
  plans: [{ name: "default", concurrency: 1, models: ["*"], priceMultiplier: "1" }],
})
vendor.keepBodies = false
afterEach(async () => {
  await eventually(() => gateway.inFlight === 0)
  expect(gateway.complaints).toEqual([])
  vendor.reset()
})
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
})

const table = allEndpoints.map((endpoint) => [endpoint.path, endpoint] as const)

/** A request of exactly that many bytes. */
function bodyOf({ request }: EndpointSample, size: number): Uint8Array {
  const { bytes } = request("m", size - request("m").bytes.length)
  expect(bytes.length).toBe(size)
  return bytes
}

function typeOf({ request }: EndpointSample): string {
  return `Content-Type: ${request("m").type}`
}

function expectTooLarge(response: RawResponse, endpoint: EndpointSample): void {
  expectError(response, {
    status: 413,
    type: "invalid_request_error",
    code: "request_body_too_large",
    message: `the request body is larger than ${endpoint.limit / mebibyte} MiB`,
  })
  expect(response.header("connection")).toBe("close")
  expect(vendor.calls).toHaveLength(0)
}

test("every POST of the model API is in the table of these tests", () => {
  const known = apiRoutes.filter(({ dialect }) => dialect === "unified").map(({ path }) => path)
  expect(known.filter((path) => path !== "/v1/videos").toSorted()).toEqual(
    allEndpoints.map(({ path }) => path).toSorted(),
  )
})

describe.each(table)("the size of a body on %s", (path, endpoint) => {
  test("exactly the limit passes whole", async () => {
    vendor.behave({ kind: "status", status: 400, json: { error: "enough" } })
    const body = bodyOf(endpoint, endpoint.limit)
    const sha256 = new Bun.CryptoHasher("sha256").update(body).digest("hex")
    const connection = await rawConnection(gateway.url)
    connection.send(rawHead(path, [credential, typeOf(endpoint), `Content-Length: ${body.length}`]))
    await pour(connection, slices(body))
    const response = await connection.response()
    connection.leave()
    expect([response.status, response.text]).toEqual([400, '{"error":"enough"}'])
    expect(vendor.calls).toHaveLength(1)
    const [call] = vendor.calls
    // Responses are always asked for as a stream, which takes a few bytes more.
    if (path === endpointSamples.responses.path) expect(call!.bodyLength).toBe(body.length + '"stream":true,'.length)
    else expect([call!.bodyLength, call!.bodySha256]).toEqual([body.length, sha256])
  })

  test("one byte more is refused unread", async () => {
    const connection = await rawConnection(gateway.url)
    connection.send(rawHead(path, [credential, typeOf(endpoint), `Content-Length: ${endpoint.limit + 1}`]))
    expectTooLarge(await connection.response(), endpoint)
    await connection.closed
  })
})

describe.each(
  [endpointSamples.imageEdits, endpointSamples.speech, endpointSamples.responses].map(
    (endpoint) => [endpoint.path, endpoint] as const,
  ),
)("without a content-length on %s", (path, endpoint) => {
  const head = rawHead(path, [credential, typeOf(endpoint), "Transfer-Encoding: chunked"])

  test("exactly the limit passes", async () => {
    vendor.behave({ kind: "status", status: 400, json: {} })
    const connection = await rawConnection(gateway.url)
    connection.send(head)
    await pour(connection, [...slices(bodyOf(endpoint, endpoint.limit))].map(rawChunk))
    connection.send(rawChunk(""))
    expect((await connection.response()).status).toBe(400)
    connection.leave()
    expect(vendor.calls).toHaveLength(1)
  })

  test("one byte more is refused as it arrives, before the client is done", async () => {
    const connection = await rawConnection(gateway.url)
    connection.send(head)
    await pour(connection, [...slices(bodyOf(endpoint, endpoint.limit + 1))].map(rawChunk))
    expectTooLarge(await connection.response(), endpoint)
    await connection.closed
  })
})

describe.each(table)("415 on %s", (path, endpoint) => {
  const { type, bytes } = endpoint.request("m")

  test.each(["gzip", "deflate", "br", "zstd", "GZIP", "gzip, identity", "x-unknown"])(
    "content-encoding %s",
    async (encoding) => {
      const headers = [credential, `Content-Type: ${type}`, `Content-Encoding: ${encoding}`]
      expectError(await rawExchange(gateway.url, rawRequest(path, headers, bytes)), {
        status: 415,
        type: "invalid_request_error",
        code: "unsupported_media_type",
        message: `content-encoding "${encoding}" is not supported; send the body as it is`,
      })
      expect(vendor.calls).toHaveLength(0)
    },
  )

  test("identity is none", async () => {
    const headers = [credential, `Content-Type: ${type}`, "Content-Encoding: identity"]
    expect((await rawExchange(gateway.url, rawRequest(path, headers, bytes))).status).toBe(200)
  })

  const others =
    endpoint.body === "multipart"
      ? ["application/json", "text/plain", "application/x-www-form-urlencoded"]
      : ["multipart/form-data; boundary=x", "Multipart/Mixed; boundary=x"]
  test("a body of the other kind", async () => {
    for (const other of others) {
      if (path === endpointSamples.imageEdits.path && other === "application/json") continue
      const response = await rawExchange(
        gateway.url,
        rawRequest(path, [credential, `Content-Type: ${other}`], '{"model":"m"}'),
      )
      if (path === endpointSamples.imageEdits.path) {
        // Taken for JSON, which it takes as well; the vendor says what it misses.
        expect(response.status).toBe(400)
        continue
      }
      const wanted = endpoint.body === "json" ? "application/json" : "multipart/form-data"
      expectError(response, {
        status: 415,
        type: "invalid_request_error",
        code: "unsupported_media_type",
        message: `this endpoint takes ${wanted}, not "${other}"`,
      })
      expect(vendor.calls).toHaveLength(0)
    }
  })

  test("a form endpoint wants a content-type; JSON is what a body without one is taken for", async () => {
    const response = await rawExchange(gateway.url, rawRequest(path, [credential], bytes))
    if (endpoint.body === "json") expect(response.status).toBe(200)
    else if (path === endpointSamples.imageEdits.path)
      expectError(response, { status: 400, type: "invalid_request_error", code: "invalid_json" })
    else
      expectError(response, {
        status: 415,
        type: "invalid_request_error",
        code: "unsupported_media_type",
        message: "this endpoint takes multipart/form-data, not a body without content-type",
      })
  })
})

describe.each(table)("the wrong method on %s", (path) => {
  test.each(["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])(
    "%s is 405 and names what is allowed, key or no key",
    async (method) => {
      for (const headers of [[], [credential]]) {
        const response = await rawExchange(gateway.url, rawRequest(`${path}?x=1`, headers, "", method))
        expectError(response, {
          status: 405,
          type: "invalid_request_error",
          code: "method_not_allowed",
          message: `${path} takes POST, not ${method}`,
        })
        expect(response.header("allow")).toBe("POST")
      }
      expect(vendor.calls).toHaveLength(0)
    },
  )
})

describe("paths that do not exist", () => {
  const wrong = allEndpoints.flatMap(({ path }) => [
    `${path}/`,
    `${path}/x`,
    path.toUpperCase(),
    path.replace("/v1", "/v2"),
    path.replace("/v1", "/compat/v1"),
    path.replace("/v1", "//v1"),
    path.replace("/v1", ""),
    `${path};x=1`,
    `${path}%20`,
  ])
  test("are 404 in the style of their neighbourhood, whatever the method", async () => {
    for (const path of wrong) {
      for (const method of ["POST", "GET"]) {
        const response = await rawExchange(gateway.url, rawRequest(path, [credential], "{}", method))
        const id = response.header("x-request-id")
        const { error, ...rest } = JSON.parse(response.text)
        expect([path, response.status]).toEqual([path, 404])
        expect(error).toEqual({
          type: "not_found_error",
          code: "not_found",
          message: expect.any(String),
          request_id: id,
        })
        expect(rest).toEqual(path.startsWith("/compat/") ? { type: "error", request_id: id } : { request_id: id })
      }
    }
    expect(vendor.calls).toHaveLength(0)
  })
})

describe.each(table)("refused on %s before the body is looked at", (path, endpoint) => {
  const { type, bytes } = endpoint.request("m")
  test("without a key 401 in chat style, though the body is too large or broken", async () => {
    for (const key of [[], ["Authorization: Bearer sk-wrong-0123456789"], [`Authorization: bearer ${testKey}`]]) {
      const response = await rawExchange(
        gateway.url,
        rawHead(path, [...key, `Content-Type: ${type}`, `Content-Length: ${endpoint.limit + 1}`]),
      )
      expect(response.status).toBe(401)
      expect(JSON.parse(response.text)).toEqual({
        error: { message: expect.any(String), type: "invalid_request_error", param: null, code: "invalid_api_key" },
      })
      expect(response.header("www-authenticate")).toBe("Bearer")
    }
    expect(vendor.calls).toHaveLength(0)
  })

  test("a second request in flight is 429, word for word, and never reaches the upstream", async () => {
    vendor.behave({ kind: "hang" })
    const first = await rawConnection(gateway.url)
    first.send(rawRequest(path, [credential, `Content-Type: ${type}`], bytes))
    await eventually(() => vendor.calls.length === 1)
    expectError(await rawExchange(gateway.url, rawRequest(path, [credential, `Content-Type: ${type}`], bytes)), {
      status: 429,
      type: "rate_limit_error",
      code: "concurrency_limit",
      message: "concurrency limit reached",
    })
    expect(vendor.calls).toHaveLength(1)
    // A call that is not streamed goes on without its caller: only its upstream can end it.
    first.leave()
    vendor.down()
    await eventually(() => gateway.inFlight === 0, 10_000)
  })
})
