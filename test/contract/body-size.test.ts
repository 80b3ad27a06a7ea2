import { afterAll, afterEach, describe, expect, test } from "bun:test"
import { eventually } from "../support/gateway.ts"
import { rawChunk, rawConnection, rawExchange, rawHead } from "../support/raw-http.ts"
import { mebibyte, pour, slices } from "../support/raw-upload.ts"
import { chatPath, credential, startBodyScene, typical } from "./body-scene.ts"

const limit = 100 * mebibyte

const { vendor, gateway, ask, expectRefused, expectUnharmed, stop } = await startBodyScene()
afterEach(expectUnharmed)
afterAll(stop)

/** A valid request of exactly that many bytes. */
function bodyOf(size: number): Buffer {
  const before = Buffer.from('{"model":"m","messages":[],"x":"')
  const body = Buffer.alloc(size, "a")
  before.copy(body)
  body.write('"}', size - 2)
  return body
}

const tooLarge = "the request body is larger than 100 MiB"

describe("413 request_body_too_large", () => {
  test("exactly 100 MiB passes whole, with and without a content-length", async () => {
    vendor.keepBodies = false
    const body = bodyOf(limit)
    const sent = Buffer.concat([Buffer.from('{"model":"m-upstream"'), body.subarray('{"model":"m"'.length)])
    const sha256 = new Bun.CryptoHasher("sha256").update(sent).digest("hex")

    const declared = await rawConnection(gateway.url)
    declared.send(rawHead(chatPath, [credential, `Content-Length: ${limit}`]))
    await pour(declared, slices(body, 4 * mebibyte))
    expect((await declared.response()).status).toBe(200)
    declared.leave()

    const chunked = await rawConnection(gateway.url)
    chunked.send(rawHead(chatPath, [credential, "Transfer-Encoding: chunked"]))
    await pour(chunked, [...slices(body, 4 * mebibyte)].map(rawChunk))
    chunked.send(rawChunk(""))
    expect((await chunked.response()).status).toBe(200)
    chunked.leave()

    expect(vendor.calls.map((call) => [call.bodyLength, call.bodySha256])).toEqual([
      [sent.length, sha256],
      [sent.length, sha256],
    ])
  }, 60_000)

  test("one byte more by content-length is refused before any of the body is sent, and the connection is closed", async () => {
    const connection = await rawConnection(gateway.url)
    connection.send(rawHead(chatPath, [credential, `Content-Length: ${limit + 1}`]))
    const response = await connection.response()
    expectRefused(response, 413, "request_body_too_large", tooLarge)
    expect(response.header("connection")).toBe("close")
    await connection.closed
  })

  test("absurd lengths are refused the same way", async () => {
    for (const length of ["1073741825", "99999999999999", "9007199254740993"]) {
      const response = await rawExchange(gateway.url, rawHead(chatPath, [credential, `Content-Length: ${length}`]))
      expect(response.status).toBe(413)
    }
  })

  test("a client that waits for 100-continue gets the 413", async () => {
    const head = rawHead(chatPath, [credential, "Expect: 100-continue", `Content-Length: ${limit + 1}`])
    expectRefused(await rawExchange(gateway.url, head), 413, "request_body_too_large", tooLarge)
  })

  test("a client that keeps sending can still read the answer", async () => {
    const connection = await rawConnection(gateway.url)
    connection.send(rawHead(chatPath, [credential, `Content-Length: ${limit + 1}`]))
    await pour(connection, slices(bodyOf(8 * mebibyte), mebibyte))
    expectRefused(await connection.response(), 413, "request_body_too_large", tooLarge)
    connection.leave()
  })

  test("one byte more without a content-length is refused as it arrives", async () => {
    const connection = await rawConnection(gateway.url)
    connection.send(rawHead(chatPath, [credential, "Transfer-Encoding: chunked"]))
    await pour(connection, [...slices(bodyOf(limit + 1), 4 * mebibyte)].map(rawChunk))
    // The body is not ended: the answer comes because of what was counted, not because the client was done.
    const response = await connection.response()
    expectRefused(response, 413, "request_body_too_large", tooLarge)
    expect(response.header("connection")).toBe("close")
    await connection.closed
  }, 60_000)

  test("without a content-length, size beats shape only when the shape was good so far", async () => {
    const connection = await rawConnection(gateway.url)
    connection.send(rawHead(chatPath, [credential, "Transfer-Encoding: chunked"]))
    connection.send(rawChunk('{"model":"m",,'))
    expectRefused(await connection.response(), 400, "invalid_json")
    connection.leave()
  })

  test("fetch reads the 413 of a body it could not send", async () => {
    const response = await gateway.chat(bodyOf(limit + 1))
    expect(response.status).toBe(413)
    expect(((await response.json()) as { error: { code: string } }).error.code).toBe("request_body_too_large")
  }, 60_000)
})

describe("a client that hangs up in mid-upload does no harm", () => {
  for (const [name, size] of [
    ["a small body", 1000],
    ["a body that is read piece by piece", 2 * mebibyte],
  ] as const) {
    test(`${name}, by content-length`, async () => {
      const connection = await rawConnection(gateway.url)
      connection.send(rawHead(chatPath, [credential, `Content-Length: ${size}`]))
      connection.send(bodyOf(size).subarray(0, size / 2))
      await eventually(() => gateway.inFlight === 1)
      connection.leave()
      await eventually(() => gateway.inFlight === 0)
      expect(vendor.calls).toHaveLength(0)
    })

    test(`${name}, chunked`, async () => {
      const connection = await rawConnection(gateway.url)
      connection.send(rawHead(chatPath, [credential, "Transfer-Encoding: chunked"]))
      connection.send(rawChunk(bodyOf(size).subarray(0, size / 2)))
      await eventually(() => gateway.inFlight === 1)
      connection.leave()
      await eventually(() => gateway.inFlight === 0)
      expect(vendor.calls).toHaveLength(0)
    })
  }

  test("before the first byte of the body, and by reset", async () => {
    for (let round = 0; round < 20; round++) {
      const connection = await rawConnection(gateway.url)
      connection.send(rawHead(chatPath, [credential, "Content-Length: 5000"]))
      await eventually(() => gateway.inFlight === 1)
      if (round % 2 === 0) connection.socket.resetAndDestroy()
      else connection.leave()
      await eventually(() => gateway.inFlight === 0)
    }
    expect(vendor.calls).toHaveLength(0)
  })

  test("a slow upload holds no slot: another request passes meanwhile", async () => {
    const slow = await rawConnection(gateway.url)
    slow.send(rawHead(chatPath, [credential, `Content-Length: ${typical.length}`]))
    slow.send(typical.slice(0, 5))
    await eventually(() => gateway.inFlight === 1)
    expect((await ask(typical)).status).toBe(200)
    slow.send(typical.slice(5))
    expect((await slow.response()).status).toBe(200)
    slow.leave()
  })
})
