import { afterAll, expect, setDefaultTimeout, test } from "bun:test"
import { connect, createServer, type Socket } from "node:net"
import { startSimulator } from "../../simulator/simulator.ts"
import { eventually, model, startGateway, upstream } from "../support/gateway.ts"
import { chatRequest, portOf, scene } from "../support/scene.ts"

setDefaultTimeout(60_000)
const simulator = await startSimulator()
afterAll(() => simulator.stop())

const megabyte = 1024 * 1024
/** What may lie in socket buffers on the way, several of them and sized by the system, of 150 MB while nobody reads. */
const mostUnderway = 40 * megabyte
const mostGrowth = 50 * megabyte

/** Waits until a number has stood still for a while. */
async function atRest(read: () => number): Promise<number> {
  for (let last = -1; ; ) {
    const now = read()
    if (now > 0 && now === last) return now
    last = now
    await Bun.sleep(200)
  }
}

test("a client that does not read holds the upstream back; when it reads on, it gets every byte", async () => {
  await using stage = await scene(simulator, ["a"])
  const megabytes = 150
  stage.vendor("a").behave({ kind: "big", megabytes, stream: true })
  const socket = connect({ port: portOf(stage.gateway), host: "127.0.0.1" })
  socket.pause()
  let received = 0
  let tail = Buffer.alloc(0)
  socket.on("data", (bytes: Buffer) => {
    received += bytes.length
    tail = Buffer.concat([tail, bytes.subarray(-400)]).subarray(-400)
  })
  socket.pause()
  Bun.gc(true)
  const residentBefore = process.memoryUsage.rss()
  socket.write(chatRequest(stage.gateway, '{"model":"m","stream":true,"messages":[]}'))
  const call = await eventually(() => stage.vendor("a").calls[0])
  const underway = await atRest(() => call.bytesSent)
  expect(underway).toBeLessThan(mostUnderway)
  expect(process.memoryUsage.rss() - residentBefore).toBeLessThan(mostGrowth)
  expect(call.endedAt).toBeNull()
  expect(received).toBe(0)

  socket.resume()
  await eventually(() => tail.includes("data: [DONE]\n\n"), 40_000)
  const story = await eventually(() => stage.gateway.stories[0])
  expect(story).toMatchObject({ ending: "completed", estimated: false, usage: { output: (megabytes * megabyte) / 4 } })
  expect(call.finished).toBeTrue()
  // Only framing differs between the two hops.
  expect(received).toBeGreaterThan(megabytes * megabyte)
  socket.destroy()
})

test("the bytes that a slow reader gets are the upstream's, all of them and in order", async () => {
  await using stage = await scene(simulator, ["a"])
  const events = Array.from(
    { length: 3000 },
    (_, index) =>
      `data: {"id":"c","choices":[{"index":0,"delta":{"content":"${index} ${"x".repeat(4000)}"},"finish_reason":null}]}\n\n`,
  )
  const end = 'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
  const usage = 'data: {"id":"c","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n'
  const body = `${events.join("")}${end}${usage}data: [DONE]\n\n`
  stage.vendor("a").behave({ kind: "stream", body, splitEvery: 65_521, gapMs: 0 })
  const response = await stage.gateway.chat({ model: "m", stream: true, messages: [] })
  const hash = new Bun.CryptoHasher("sha256")
  let reads = 0
  for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
    hash.update(bytes)
    if (reads++ % 10 === 0) await Bun.sleep(2)
  }
  expect(hash.digest("hex")).toBe(new Bun.CryptoHasher("sha256").update(body).digest("hex"))
})

test("a 50 MB upload reaches an upstream that reads slowly, byte for byte", async () => {
  const hash = new Bun.CryptoHasher("sha256")
  let received = 0
  const answer = '{"id":"x","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}'
  const slow = createServer((socket: Socket) => {
    let head: Buffer | null = Buffer.alloc(0)
    let length = 0
    socket.on("error", () => {})
    socket.on("data", (bytes: Buffer) => {
      let body = bytes
      if (head !== null) {
        head = Buffer.concat([head, bytes])
        const end = head.indexOf("\r\n\r\n")
        if (end < 0) return
        length = Number(/content-length: (\d+)/i.exec(head.toString("latin1", 0, end))?.[1])
        body = head.subarray(end + 4)
        head = null
      }
      hash.update(body)
      received += body.length
      if (received === length) {
        socket.end(
          `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${answer.length}\r\nconnection: close\r\n\r\n${answer}`,
        )
        return
      }
      socket.pause()
      setTimeout(() => socket.resume(), 1)
    })
  })
  await new Promise<void>((resolve) => slow.listen(0, "127.0.0.1", resolve))
  const { port } = slow.address() as { port: number }
  const gateway = await startGateway({
    upstreams: [upstream("slow", `http://127.0.0.1:${port}/v1`)],
    models: [model("m", ["slow"])],
  })
  try {
    const pad = Buffer.alloc(50 * megabyte, "0123456789abcdef")
    const around = (name: string): Buffer =>
      Buffer.concat([Buffer.from('{"messages":[],"pad":"'), pad, Buffer.from(`","model":"${name}"}`)])
    const response = await gateway.chat(around("m"))
    expect([response.status, await response.text()]).toEqual([200, answer])
    const expected = around("m-upstream")
    expect(received).toBe(expected.length)
    expect(hash.digest("hex")).toBe(new Bun.CryptoHasher("sha256").update(expected).digest("hex"))
  } finally {
    await gateway.stop()
    slow.close()
  }
})
