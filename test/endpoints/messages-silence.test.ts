import { afterAll, expect, setDefaultTimeout, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { messagesEvents } from "../support/messages-check.ts"
import { askMessages, over } from "../support/messages-scene.ts"
import { chunk, done, finishChunk, stopWithoutComplaint, usageChunk } from "../support/scene.ts"

setDefaultTimeout(60_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

const silenceMs = 21_000

test.concurrent("vector 82: a bridged stream that falls silent for twenty seconds brings a ping, and goes on", async () => {
  await using stage = await over("bridged", simulator)
  const frames = [chunk({ content: "one" }), chunk({ content: " two" }) + finishChunk + usageChunk + done]
  stage.vendor("a").behave({ kind: "stream", frames, gapMs: silenceMs })
  const answer = await askMessages(stage, { stream: true })
  const types = messagesEvents(answer.text).map(({ type }) => type)
  expect(types).toEqual([
    "message_start",
    "content_block_start",
    "content_block_delta",
    "ping",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ])
  expect(answer.text).toContain('event: ping\ndata: {"type":"ping"}\n\n')
  expect(answer.story).toMatchObject({ ending: "completed", estimated: false })
})

test.concurrent("pings are no progress: the silence limit ends the stream all the same", async () => {
  await using stage = await over("bridged", simulator, { timeouts: { silence: 18_000 } })
  stage.vendor("a").behave({ kind: "stream", frames: [chunk({ content: "one" }), done], gapMs: silenceMs * 2 })
  const answer = await askMessages(stage, { stream: true })
  const types = messagesEvents(answer.text).map(({ type }) => type)
  expect(types.slice(-2)).toEqual(["ping", "error"])
  expect(answer.story).toMatchObject({ ending: "failed", error: "stream_silence_timeout" })
})
