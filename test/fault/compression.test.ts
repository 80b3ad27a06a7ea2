import { afterAll, expect, setDefaultTimeout, test } from "bun:test"
import { gzipSync } from "node:zlib"
import { startSimulator } from "../../simulator/simulator.ts"
import { eventually, headerOf } from "../support/gateway.ts"
import { chunk, done, expectError, expectSuccess, finishChunk, roleChunk, scene, usageChunk } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => simulator.stop())

const encodings = ["gzip", "br", "deflate", "zstd"] as const
const fullStream = [
  roleChunk,
  chunk({ content: "Grüße, " }),
  chunk({ content: "世界 🌍" }),
  finishChunk,
  usageChunk,
  done,
]

for (const encoding of encodings) {
  test.concurrent(`an answer in ${encoding} that nobody asked for arrives readable and metered`, async () => {
    await using stage = await scene(simulator, ["a", "b"])
    stage.vendor("a").behave({ kind: "gzip", encoding, inner: { kind: "chat", text: "Grüße 世界" } })
    const whole = await stage.ask(false)
    expectSuccess(whole, false)
    expect(JSON.parse(whole.text).choices[0].message.content).toBe("Grüße 世界")
    expect(whole.headers.get("content-encoding")).toBeNull()
    expect(headerOf(stage.vendor("a").calls[0]!, "accept-encoding")).toBe("identity")
    expect(stage.calls()).toEqual([1, 0])
  })

  test.concurrent(`a stream in ${encoding} arrives readable and metered`, async () => {
    await using stage = await scene(simulator, ["a", "b"])
    stage.vendor("a").behave({ kind: "gzip", encoding, inner: { kind: "stream", frames: fullStream, gapMs: 5 } })
    const streamed = await stage.ask(true)
    expect(streamed.text).toBe(fullStream.join(""))
    expect(streamed.headers.get("content-encoding")).toBeNull()
    expect(streamed.story).toMatchObject({ ending: "completed", estimated: false, usage: { input: 7, output: 5 } })
    expect(stage.calls()).toEqual([1, 0])
  })

  test.concurrent(`the first event of a stream in ${encoding} is not held by the codec`, async () => {
    await using stage = await scene(simulator, ["a"])
    const frames = [chunk({ content: "first" }), chunk({ content: "late" })]
    stage.vendor("a").behave({ kind: "gzip", encoding, inner: { kind: "stream", frames, gapMs: 60_000 } })
    const leaving = new AbortController()
    const response = await stage.gateway.chat({ model: "m", stream: true, messages: [] }, { signal: leaving.signal })
    const first = await response.body!.getReader().read()
    expect(Buffer.from(first.value as Uint8Array).toString()).toBe(frames[0]!)
    leaving.abort()
    await eventually(() => stage.vendor("a").openCalls() === 0)
  })

  test.concurrent(`a 4xx in ${encoding} is passed readable`, async () => {
    await using stage = await scene(simulator, ["a", "b"])
    const body = '{"error": {"message":"Grüße"}}'
    stage.vendor("a").behave({ kind: "gzip", encoding, inner: { kind: "status", status: 422, body } })
    const refused = await stage.ask(false)
    expect([refused.status, refused.text, refused.headers.get("content-encoding")]).toEqual([422, body, null])
  })
}

for (const stream of [false, true]) {
  test.concurrent(`a chain of encodings is refused, ${stream ? "streamed" : "not streamed"}`, async () => {
    await using stage = await scene(simulator, ["a", "b"])
    for (const [chain, bytes] of [
      [Array(1000).fill("gzip").join(", "), "{}"],
      ["gzip, gzip", '{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}'],
    ] as const) {
      stage.vendor("a").reset()
      const type = stream ? "text/event-stream" : "application/json"
      const headers = { "content-type": type, "content-encoding": chain }
      stage.vendor("a").behave({ kind: "status", status: 200, body: bytes, headers })
      expectError(await stage.ask(stream, { model: "solo" }), 502, "api_error", "upstream_invalid_response")
      stage.vendor("a").behave({ kind: "chat" })
      expectSuccess(await stage.ask(stream), stream)
    }
  })
}

test.concurrent("bytes that really are compressed twice are refused, not passed on", async () => {
  await using stage = await scene(simulator, ["a"])
  const body = gzipSync(gzipSync('{"choices":[]}'))
  const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip, gzip\r\ncontent-length: ${body.length}\r\n\r\n`
  const bytes = Buffer.concat([Buffer.from(head), body]).toString("base64")
  stage.vendor("a").behave({ kind: "raw", bytes, encoding: "base64", thenClose: "keep" })
  expectError(await stage.ask(false), 502, "api_error", "upstream_invalid_response")
})

test.concurrent("a small compressed answer that unpacks into a huge one is given up at the limit", async () => {
  await using stage = await scene(simulator, ["a"])
  const body = gzipSync(`{"choices":[],"pad":"${"0".repeat(120 * 1024 * 1024)}"}`, { level: 1 })
  expect(body.length).toBeLessThan(2 * 1024 * 1024)
  const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: ${body.length}\r\n\r\n`
  const bytes = Buffer.concat([Buffer.from(head), body]).toString("base64")
  stage.vendor("a").behave({ kind: "raw", bytes, encoding: "base64", thenClose: "keep" })
  expectError(await stage.ask(false), 502, "api_error", "upstream_invalid_response")
})
