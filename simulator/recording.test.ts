import { afterEach, beforeEach, describe, expect, test } from "bun:test"
import { createHash, randomBytes } from "node:crypto"
import { type Simulator, startSimulator } from "./simulator.ts"
import { chatBody, eventually, post, rawClient } from "./testing/raw-client.ts"
import type { SimulatedVendor } from "./vendor.ts"

let simulator: Simulator
let vendor: SimulatedVendor

beforeEach(async () => {
  simulator = await startSimulator()
  vendor = simulator.vendor("v")
})
afterEach(() => simulator.stop())

const path = "/v/v1/chat/completions"

describe("what is recorded", () => {
  test("method, path with query, raw headers and the exact bytes, whichever way they are framed", async () => {
    const bytes = randomBytes(300_000)
    const client = await rawClient(simulator.port)
    client.send("POST /v/v1/x?a=%20b HTTP/1.1\r\nHOST: s\r\nX-One: 1\r\nx-one: 2\r\ntransfer-encoding: chunked\r\n\r\n")
    for (const part of [bytes.subarray(0, 70_000), bytes.subarray(70_000)]) {
      client.send(`${part.length.toString(16)}\r\n`)
      client.send(part)
      client.send("\r\n")
    }
    client.send("0\r\n\r\n")
    await client.until("HTTP/1.1 404")
    client.leave()
    const call = vendor.calls[0]!
    expect(call).toMatchObject({ method: "POST", path: "/v/v1/x?a=%20b", bodyLength: bytes.length, finished: true })
    expect(call.headers.slice(0, 3)).toEqual([
      ["HOST", "s"],
      ["X-One", "1"],
      ["x-one", "2"],
    ])
    expect(Buffer.from(call.body).equals(bytes)).toBe(true)
    expect(call.bodySha256).toBe(createHash("sha256").update(bytes).digest("hex"))
  })

  test("keepBodies false keeps only length and hash", async () => {
    vendor.keepBodies = false
    const body = chatBody({ pad: "x".repeat(5_000_000) })
    expect((await fetch(simulator.url + path, { method: "POST", body })).status).toBe(200)
    expect(vendor.calls[0]).toMatchObject({ bodyLength: body.length, bodyComplete: true })
    expect(vendor.calls[0]!.body).toHaveLength(0)
    expect(vendor.calls[0]!.bodySha256).toBe(createHash("sha256").update(body).digest("hex"))
  })

  test("a half-sent request is recorded as incomplete and closed by the peer", async () => {
    const client = await rawClient(simulator.port)
    client.send(`POST ${path} HTTP/1.1\r\nHost: s\r\nContent-Length: 100\r\n\r\nhalf`)
    await eventually(() => vendor.calls[0]?.bodyLength === 4)
    expect(vendor.openCalls()).toBe(1)
    client.leave()
    await eventually(() => vendor.openCalls() === 0)
    expect(vendor.calls[0]).toMatchObject({ bodyComplete: false, closedByPeer: true, finished: false })
  })

  test.each(["fin", "rst"] as const)(
    "a client that leaves by %s in mid-stream is noticed while waiting",
    async (how) => {
      vendor.behave({ kind: "chat", text: "a b c", gapMs: 60_000 })
      const client = await rawClient(simulator.port)
      client.send(post(path, chatBody({ stream: true })))
      await client.until("assistant")
      expect(vendor.calls[0]).toMatchObject({ closedByPeer: false, endedAt: null, connection: { open: true } })
      client.leave(how)
      await eventually(() => vendor.calls[0]!.closedByPeer)
      expect(vendor.calls[0]).toMatchObject({
        finished: false,
        endedAt: expect.any(Number),
        connection: { open: false },
      })
      expect([vendor.openCalls(), simulator.openConnections()]).toEqual([0, 0])
    },
  )

  test("leaving after the whole answer is not held against the call", async () => {
    const client = await rawClient(simulator.port)
    client.send(post(path, chatBody()))
    await client.until("fp_simulated")
    client.leave()
    await eventually(() => simulator.openConnections() === 0)
    expect(vendor.calls[0]).toMatchObject({ finished: true, closedByPeer: false })
  })
})

describe("connections", () => {
  test("are kept alive, and pipelined requests are answered in order", async () => {
    vendor.behave({ kind: "status", status: 201, delayMs: 20 }, { kind: "status", status: 202 })
    const client = await rawClient(simulator.port)
    client.send(post(path, chatBody()) + post(path, chatBody()))
    await client.until("HTTP/1.1 202")
    expect(client.text().indexOf("HTTP/1.1 201")).toBe(0)
    expect(vendor.calls.map((call) => call.requestOnConnection)).toEqual([1, 2])
    client.leave()
  })
  test("connection: close is honoured and said", async () => {
    const client = await rawClient(simulator.port)
    client.send(post(path, chatBody(), "Connection: close\r\n"))
    expect(await client.ended).toBe("end")
    expect(client.text()).toContain("\r\nconnection: close\r\n")
  })
  test("expect: 100-continue is answered before the body", async () => {
    const client = await rawClient(simulator.port)
    const [head = "", body = ""] = post(path, chatBody(), "Expect: 100-continue\r\n").split("\r\n\r\n")
    client.send(`${head}\r\n\r\n`)
    await client.until("HTTP/1.1 100 Continue\r\n\r\n")
    client.send(body)
    await client.until("HTTP/1.1 200 OK")
    client.leave()
  })
  test("what is not HTTP is refused with the reason, cut off, and complained of", async () => {
    const client = await rawClient(simulator.port)
    client.send("NONSENSE\r\n\r\n")
    expect(await client.ended).toBe("end")
    expect(client.text()).toMatch(/^HTTP\/1\.1 400 [\s\S]*request line "NONSENSE"/)
    expect(simulator.complaints).toHaveLength(1)
  })
  test("idle ones are closed when told so", async () => {
    const brief = await startSimulator({ idleCloseMs: 30 })
    const client = await rawClient(brief.port)
    client.send(post(path, chatBody()))
    await client.until("fp_simulated")
    expect(await client.ended).toBe("end")
    await brief.stop()
  })
  test("stop ends every call at once, connecting is refused, and the port can be taken again", async () => {
    vendor.behave({ kind: "hang" })
    const client = await rawClient(simulator.port)
    client.send(post(path, chatBody()))
    await eventually(() => vendor.openCalls() === 1)
    await simulator.stop()
    expect(vendor.calls[0]).toMatchObject({ finished: false, closedByPeer: false, endedAt: expect.any(Number) })
    expect(await client.ended).toBe("end")
    const refused = await fetch(simulator.url).then(
      () => "answered",
      (error: { code?: string }) => error.code,
    )
    expect(refused).toBe("ECONNREFUSED")
    simulator = await startSimulator({ port: simulator.port })
    expect((await fetch(`${simulator.url}/v/v1/models`)).status).toBe(200)
  })
})

describe("steps", () => {
  test("one for each call, the last sticks, none is healthy again", async () => {
    const statuses = async (calls: number): Promise<number[]> => {
      const got: number[] = []
      for (let i = 0; i < calls; i++) got.push((await fetch(`${vendor.baseUrl}/models`)).status)
      return got
    }
    vendor.behave({ kind: "status", status: 500 }, { kind: "chat" }, { kind: "status", status: 429 })
    expect(await statuses(4)).toEqual([500, 200, 429, 429])
    vendor.behave()
    expect(await statuses(1)).toEqual([200])
  })
  test("vendors do not share steps, calls or keys", async () => {
    vendor.behave({ kind: "status", status: 500 })
    vendor.expectKey("sk-1")
    expect((await fetch(`${simulator.vendor("other").baseUrl}/models`)).status).toBe(200)
    expect(vendor.calls).toHaveLength(0)
  })
  test("the expected key is found wherever vendors put it", async () => {
    vendor.expectKey("k-123456789012345")
    const status = async (headers: Record<string, string>): Promise<number> =>
      (await fetch(`${vendor.baseUrl}/models`, { headers })).status
    for (const headers of [
      { authorization: "Bearer k-123456789012345" },
      { authorization: "Key k-123456789012345" },
      { "x-api-key": "k-123456789012345" },
      { "x-goog-api-key": "k-123456789012345" },
    ]) {
      expect(await status(headers)).toBe(200)
    }
    expect(await status({})).toBe(401)
    const wrong = await fetch(`${vendor.baseUrl}/models`, { headers: { authorization: "Bearer sk-wrong-9876543210" } })
    expect(await wrong.text()).toContain("sk-wrong")
    expect(wrong.status).toBe(401)
  })
})
