import { afterAll, afterEach, describe, expect, test } from "bun:test"
import { dataOf } from "../support/sse-events.ts"
import { delta, done, facts, finish, hello, read, reported, role, usageChunk, world } from "../support/stream-pieces.ts"
import { expectCounted, expectReported, startStreamScene } from "./stream-scene.ts"

const { simulator, vendor, gateway, ask, stream, stop } = await startStreamScene()
afterEach(() => vendor.reset())
afterAll(stop)

describe("shapes of events", () => {
  test("one malformed event among good ones passes as it is", async () => {
    const broken = 'data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"x"\n\n'
    const received = await stream(
      hello,
      broken,
      "data: \n\n",
      "data\n\n",
      "data: null\n\n",
      world,
      finish(),
      usageChunk(reported),
      done,
    )
    expect(received.text).toBe(
      `${hello}${broken}data: \n\ndata\n\ndata: null\n\n${world}${finish()}${usageChunk(reported)}${done}`,
    )
    expectReported(received)
  })

  test("a JSON over several data lines is one event", async () => {
    const lines = JSON.stringify({ ...facts, choices: [], usage: reported }, null, 1).replaceAll("\n", "\ndata: ")
    const received = await stream(hello, finish(), `data: ${lines}\n\n`, done)
    expect(received.text).toBe(`${hello}${finish()}data: ${lines}\n\n${done}`)
    expectReported(received)
  })

  test("spaces after the colon: none and one are the same", async () => {
    const tight = (text: string) => text.replace("data: ", "data:")
    const frames = [hello, finish(), usageChunk(reported), done].map(tight)
    const received = await stream(...frames)
    expect(received.text).toBe(frames.join(""))
    expectReported(received)
  })

  test("a byte order mark, empty lines and unknown fields pass", async () => {
    const odd = `\ufeff\n\n\nretry: 1000\nfoo: bar\n${hello}`
    const received = await stream(odd, finish(), "\n", usageChunk(reported), done)
    expect(received.text).toBe(`${odd}${finish()}\n${usageChunk(reported)}${done}`)
    expectReported(received)
  })

  test("two choices: the stream is complete when both are finished", async () => {
    const second = delta({ content: "Bonjour" }, {}, 1)
    const received = await stream(hello, second, finish(), delta({ content: "!" }, {}, 1), finish({}, 1))
    expectCounted(received, hello + second + finish() + delta({ content: "!" }, {}, 1) + finish({}, 1))
  })

  test("two choices, one of them left open: cut short, and said so", async () => {
    const second = delta({ content: "Bonjour" }, {}, 1)
    const { text, story, response } = await stream(hello, second, finish())
    const error = JSON.parse(dataOf(text).at(-1)!) as { error: { code: string; request_id: string } }
    expect(error.error.code).toBe("upstream_stream_truncated")
    expect(error.error.request_id).toBe(response.headers.get("x-request-id")!)
    expect(text.startsWith(hello + second + finish())).toBe(true)
    expect(text).not.toContain("[DONE]")
    expect([story.ending, story.error]).toEqual(["failed", "upstream_stream_truncated"])
  })

  for (const [name, content] of Object.entries({
    reasoning: { reasoning_content: "Hm" },
    "a tool call": { tool_calls: [{ index: 0, id: "c", type: "function", function: { name: "f", arguments: "" } }] },
    "a refusal": { refusal: "No." },
    "an old function call": { function_call: { name: "f", arguments: "{}" } },
    audio: { audio: { id: "a", data: "AAAA" } },
  })) {
    test(`an answer of nothing but ${name} is one`, async () => {
      const received = await stream(role, delta(content), finish(), usageChunk(reported), done)
      expect(received.text).toBe(role + delta(content) + finish() + usageChunk(reported) + done)
      expectReported(received)
    })
  }

  test("an answer of nothing at all, finished at once, is one", async () => {
    const received = await stream(role, finish(), usageChunk(reported), done)
    expect(received.text).toBe(role + finish() + usageChunk(reported) + done)
    expectReported(received)
  })

  test("an event of 5 MiB passes whole, as the first token and later", async () => {
    const huge = delta({ content: "模型🙂".repeat(550_000) })
    expect(Buffer.byteLength(huge)).toBeGreaterThan(5 * 1024 * 1024)
    for (const frames of [
      [huge, finish(), usageChunk(reported), done],
      [role, hello, huge, finish(), usageChunk(reported), done],
    ]) {
      vendor.reset()
      const received = await stream(...frames)
      expect(received.text === frames.join("")).toBe(true)
      expectReported(received)
    }
  }, 30_000)

  test("an event too large to be read passes unread, and what follows is read again", async () => {
    const enormous = delta({ content: "x".repeat(17 * 1024 * 1024) })
    const frames = [hello, enormous, world, finish(), usageChunk(reported), done]
    const received = await stream(...frames)
    expect(received.text === frames.join("")).toBe(true)
    expectReported(received)
  }, 30_000)

  test("many events in one write", async () => {
    const frames = [role, ...Array.from({ length: 5000 }, () => world), finish(), usageChunk(reported), done]
    const received = await stream(frames.join(""))
    expect(received.text === frames.join("")).toBe(true)
    expectReported(received)
  })
})

describe("a stream was asked for and JSON was given", () => {
  const whole = { id: "x", choices: [{ index: 0, message: { role: "assistant", content: "hi" } }], usage: reported }

  test("it passes as JSON under its own content type, its usage read", async () => {
    vendor.behave({ kind: "status", status: 200, json: whole, headers: { "content-type": "application/json; a=b" } })
    const { response, text, story } = await ask()
    expect(response.status).toBe(200)
    expect(response.headers.get("content-type")).toBe("application/json; a=b")
    expect(response.headers.get("x-accel-buffering")).toBeNull()
    expect(text).toBe(JSON.stringify(whole))
    expect(story.usage).toEqual(read)
    expect(vendor.calls).toHaveLength(1)
  })
})

test("nothing in this file was an internal error", () => {
  expect(gateway.complaints).toEqual([])
  expect(simulator.complaints).toEqual([])
})
