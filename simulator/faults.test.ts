import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test"
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib"
import type { Behaviour } from "./behaviour.ts"
import { type Simulator, startSimulator } from "./simulator.ts"
import { chatBody, eventually, post, type RawClient, rawClient } from "./testing/raw-client.ts"
import type { SimulatedVendor } from "./vendor.ts"
import { missingBytes } from "./wire/reply.ts"

let simulator: Simulator
let vendor: SimulatedVendor
const clients: RawClient[] = []

beforeAll(async () => {
  simulator = await startSimulator()
  vendor = simulator.vendor("v")
})
beforeEach(() => vendor.reset())
afterEach(async () => {
  for (const client of clients.splice(0)) client.leave()
  await eventually(() => vendor.openCalls() === 0)
})
afterAll(async () => {
  await simulator.stop()
  expect(simulator.complaints).toEqual([])
})

/** Sends a chat request on a connection of its own to a vendor that behaves so. */
async function ask(step: Behaviour, extra: Record<string, unknown> = {}): Promise<RawClient> {
  vendor.behave(step)
  const client = await rawClient(simulator.port)
  clients.push(client)
  client.send(post("/v/v1/chat/completions", chatBody(extra)))
  return client
}

const quietMs = 60

/** Fails if anything arrives, or the connection ends, for a while. */
async function staysSilent(client: RawClient): Promise<void> {
  const before = client.reads.length
  const ended = await Promise.race([client.ended, Bun.sleep(quietMs).then(() => "open")])
  expect([ended, client.reads.length]).toEqual(["open", before])
}

function bodyOf(client: RawClient): string {
  return client.text().split("\r\n\r\n").slice(1).join("\r\n\r\n")
}

function readsOf(client: RawClient): string[] {
  return client.reads.map((bytes) => bytes.toString("latin1"))
}

describe("no answer at all", () => {
  test("reset arrives as ECONNRESET before any byte", async () => {
    const client = await ask({ kind: "reset" })
    expect(await client.ended).toBe("ECONNRESET")
    expect(client.text()).toBe("")
    expect(vendor.calls[0]).toMatchObject({ finished: true, closedByPeer: false, bytesSent: 0 })
  })
  test("close arrives as a FIN before any byte", async () => {
    const client = await ask({ kind: "close" })
    expect(await client.ended).toBe("end")
    expect(client.text()).toBe("")
  })
  test("hang reads the request and stays silent until the client leaves", async () => {
    const client = await ask({ kind: "hang" })
    await staysSilent(client)
    expect(vendor.calls[0]).toMatchObject({ bodyComplete: true, finished: false, closedByPeer: false, endedAt: null })
    expect(vendor.openCalls()).toBe(1)
  })
  test("garbage is no HTTP", async () => {
    const client = await ask({ kind: "garbage" })
    expect(await client.ended).toBe("end")
    expect(client.text()).not.toContain("HTTP/1")
    expect(client.text().length).toBeGreaterThan(0)
  })
  test("down resets open and coming calls, up answers again", async () => {
    const open = await ask({ kind: "hang" })
    await eventually(() => vendor.openCalls() === 1)
    vendor.down()
    expect(await open.ended).toBe("ECONNRESET")
    expect(vendor.calls[0]).toMatchObject({ finished: false, closedByPeer: false })
    expect(await (await ask({ kind: "chat" })).ended).toBe("ECONNRESET")
    vendor.up()
    await (await ask({ kind: "chat" })).until("HTTP/1.1 200 OK")
  })
})

describe("whole answers", () => {
  test("status: exact body and headers, or the vendor's usual words", async () => {
    const exact = await ask({ kind: "status", status: 429, body: "slow\ndown", headers: { "Retry-After": "2" } })
    await exact.until("slow\ndown")
    expect(exact.text()).toStartWith("HTTP/1.1 429 Too Many Requests\r\n")
    expect(exact.text()).toContain("\r\nRetry-After: 2\r\n")
    const usual = await ask({ kind: "status", status: 503 })
    await usual.until("engine_overloaded")
    const json = await ask({ kind: "status", status: 418, json: { tea: [1] }, headers: { "Content-Type": "a/b" } })
    await json.until('{"tea":[1]}')
    expect(json.text().match(/content-type/gi)).toHaveLength(1)
  })
  test("status after a delay says nothing before", async () => {
    const client = await ask({ kind: "status", status: 500, delayMs: quietMs * 2 })
    await staysSilent(client)
    await client.until("HTTP/1.1 500")
  })
  test("html", async () => {
    const client = await ask({ kind: "html", status: 504 })
    await client.until("</html>")
    expect(client.text()).toMatch(/^HTTP\/1\.1 504 [\s\S]*content-type: text\/html/)
  })
  test.each([
    ["gzip", gunzipSync],
    ["br", brotliDecompressSync],
    ["zstd", zstdDecompressSync],
  ] as const)("%s: a body compressed though nobody asked", async (encoding, decompress) => {
    vendor.behave({ kind: "gzip", encoding, inner: { kind: "chat", text: "squeezed" } })
    const url = `${vendor.baseUrl}/chat/completions`
    const response = await fetch(url, { method: "POST", body: chatBody(), decompress: false })
    expect(response.headers.get("content-encoding")).toBe(encoding)
    expect(decompress(await response.bytes()).toString()).toContain('"content":"squeezed"')
  })
  test("a compressed stream can be decoded event by event", async () => {
    const inner: Behaviour = { kind: "stream", frames: ["data: 1\n\n", "data: 2\n\n"], end: "stall" }
    vendor.behave({ kind: "gzip", inner })
    const stop = new AbortController()
    const url = `${vendor.baseUrl}/chat/completions`
    const response = await fetch(url, { method: "POST", body: chatBody({ stream: true }), signal: stop.signal })
    let text = ""
    for await (const bytes of response.body!) {
      text += Buffer.from(bytes).toString()
      if (text.includes("data: 2\n\n")) break
    }
    stop.abort()
    expect(text).toBe("data: 1\n\ndata: 2\n\n")
  })
})

describe("raw bytes", () => {
  test("are written exactly, in pieces that arrive apart, and then cut as told", async () => {
    const bytes = Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n\x00\xffé", "latin1").toString("base64")
    const client = await ask({ kind: "raw", bytes, encoding: "base64", splitAt: [4, 20], gapMs: 20, thenClose: "rst" })
    expect(await client.ended).toBe("ECONNRESET")
    expect(Buffer.concat(client.reads).toString("base64")).toBe(bytes)
    expect(client.reads.map((read) => read.length)).toEqual([4, 16, 21])
  })
  test("close by FIN unless told otherwise", async () => {
    expect(await (await ask({ kind: "raw", bytes: "x" })).ended).toBe("end")
  })
  test("keep goes on with the next request on the same connection", async () => {
    const client = await ask({ kind: "raw", bytes: "HTTP/1.1 204 No Content\r\n\r\n", thenClose: "keep" })
    await client.until("204")
    vendor.behave({ kind: "status", status: 418 })
    client.send(post("/v/v1/chat/completions", chatBody()))
    await client.until("HTTP/1.1 418")
    expect(vendor.calls.map(({ requestOnConnection }) => requestOnConnection)).toEqual([1, 2])
  })
})

describe("exact streams", () => {
  const body = "data: é\n\ndata: [DONE]\n\n"

  test("split at every byte, each piece is a write and a chunk of its own", async () => {
    const bytes = Buffer.from(body)
    const client = await ask({ kind: "stream", body, splitEvery: 1, gapMs: 5 })
    await client.until("0\r\n\r\n")
    const chunks = Array.from(bytes, (byte) => `1\r\n${String.fromCharCode(byte)}\r\n`)
    expect(bodyOf(client)).toBe(`${chunks.join("")}0\r\n\r\n`)
    // The first piece may come with the head, the last with the end of the body.
    const inner = chunks.slice(1, -1)
    expect(readsOf(client).filter((read) => inner.includes(read))).toEqual(inner)
  })
  test("split at offsets by default far enough apart to be two reads", async () => {
    const client = await ask({ kind: "stream", body, splitAt: [7], framing: "close" })
    expect(await client.ended).toBe("end")
    expect(readsOf(client).at(-1)).toBe(Buffer.from(body).toString("latin1", 7))
  })
  test("frames are chunks of their own", async () => {
    const client = await ask({ kind: "stream", frames: ["a", "bcd"], headers: { "x-a": "b" }, status: 201 })
    await client.until("0\r\n\r\n")
    expect(bodyOf(client)).toBe("1\r\na\r\n3\r\nbcd\r\n0\r\n\r\n")
    expect(client.text()).toMatch(/^HTTP\/1\.1 201 [\s\S]*content-type: text\/event-stream\r\nx-a: b\r\n/)
  })
  test.each([
    ["fin", "end"],
    ["rst", "ECONNRESET"],
  ] as const)("%s in mid-body, whatever the framing", async (end, expected) => {
    const chunked = await ask({ kind: "stream", body, end })
    expect(await chunked.ended).toBe(expected)
    expect(bodyOf(chunked)).not.toContain("0\r\n\r\n")
    const counted = await ask({ kind: "stream", body, end, framing: "content-length" })
    expect(await counted.ended).toBe(expected)
    expect(counted.text()).toContain(`content-length: ${Buffer.byteLength(body) + missingBytes}\r\n`)
  })
  test("stall keeps the connection open and silent", async () => {
    const client = await ask({ kind: "stream", body, end: "stall" })
    await client.until("[DONE]")
    await staysSilent(client)
  })
  test("stall with pings sends only comments", async () => {
    const client = await ask({ kind: "stream", body: "data: 1\n\n", end: "stall", pingEveryMs: 5 })
    await client.until(": ping\n\n\r\n8\r\n: ping\n\n")
  })
})

describe("timing of a healthy stream", () => {
  test("nothing before the head delay; head and role before the first token's delay", async () => {
    const step: Behaviour = { kind: "chat", text: "late", headDelayMs: quietMs * 2, firstTokenDelayMs: quietMs * 2 }
    const client = await ask(step, { stream: true })
    await staysSilent(client)
    await client.until('"role":"assistant"')
    await staysSilent(client)
    await client.until("late")
  })
})

describe("big answers", () => {
  test("a client that does not read holds the writer back; leaving ends the call", async () => {
    vendor.behave({ kind: "big", megabytes: 64, stream: true })
    const client = await rawClient(simulator.port)
    client.socket.pause()
    client.send(post("/v/v1/chat/completions", chatBody({ stream: true })))
    await eventually(() => (vendor.calls[0]?.bytesSent ?? 0) > 0)
    await Bun.sleep(quietMs)
    const sent = vendor.calls[0]!.bytesSent
    await Bun.sleep(quietMs)
    expect(vendor.calls[0]).toMatchObject({ bytesSent: sent, finished: false })
    expect(sent).toBeLessThan(32 * 1024 * 1024)
    client.leave("rst")
    await eventually(() => vendor.calls[0]?.closedByPeer === true)
  })
  test.each([true, false])("are valid and of the size told (stream: %p)", async (stream) => {
    vendor.behave({ kind: "big", megabytes: 3, stream })
    const body = chatBody({ stream })
    const text = await (await fetch(`${vendor.baseUrl}/chat/completions`, { method: "POST", body })).text()
    expect(text.length).toBeGreaterThan(3 * 1024 * 1024)
    if (stream) expect(text).toEndWith("data: [DONE]\n\n")
    else expect(JSON.parse(text).choices[0].message.content).toHaveLength(3 * 1024 * 1024)
    expect(vendor.calls[0]!.bytesSent).toBeGreaterThan(text.length)
  })
})
