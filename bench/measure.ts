import { cpuMicros, residentMegabytes } from "./cpu.ts"
import { drive, type Load, type Tally } from "./load.ts"
import type { Running } from "./processes.ts"
import type { Target } from "./targets.ts"
import { ANSWER_MODEL, answerJson, CHUNKS_PER_STREAM, requestBytes, STREAM_MODEL, streamEvents } from "./traffic.ts"

const REQUEST_CONNECTIONS = 32
export const CONCURRENT_STREAMS = 48
const WRONG_SHOWN = 5
/** What a target puts off until after the answer, such as writing a batch of records, is part of its cost. */
const AFTERWORK_MS = 200

/** How long one target is kept busy at a time. */
export interface Dose {
  readonly requestsMs: number
  /** Streams that each connection runs one after the other. */
  readonly streams: number
  /** Requests that each connection sends where targets of different speed must get the same number. */
  readonly charged: number
}

export interface Effort {
  readonly warmUp: Dose
  readonly round: Dose
  readonly rounds: number
}

/** Many short rounds rather than few long ones: other work on the machine comes and goes within seconds. */
export const FULL: Effort = {
  warmUp: { requestsMs: 1_000, streams: 1, charged: 250 },
  round: { requestsMs: 1_400, streams: 2, charged: 80 },
  rounds: 5,
}
export const QUICK: Effort = {
  warmUp: { requestsMs: 600, streams: 1, charged: 120 },
  round: { requestsMs: 800, streams: 1, charged: 40 },
  rounds: 2,
}

/** What one target cost in one round. */
export interface Round {
  readonly microsPerRequest: number
  readonly microsPerChunk: number
  readonly requests: number
  readonly chunks: number
  /** Network reads per chunk at the client: near 1 means that chunks really travelled apart. */
  readonly readsPerChunk: number
  readonly loadedMegabytes: number
}

const expectedAnswer = Buffer.from(answerJson)
const expectedStream = Buffer.from(streamEvents.join(""))

/** What requests for plain answers cost a target. */
export async function measureAnswers(
  path: string,
  running: Running,
  mayAsk: Load["mayAsk"],
  connections = REQUEST_CONNECTIONS,
): Promise<Cost> {
  return costOf(running, {
    url: running.url,
    request: requestBytes(path, ANSWER_MODEL, false),
    expected: expectedAnswer,
    connections,
    mayAsk,
  })
}

/** Throws when any answer was wrong: numbers of a target that answers wrongly mean nothing. */
export async function measureRound(target: Target, running: Running, dose: Dose): Promise<Round> {
  const streams = {
    url: running.url,
    request: requestBytes(target.streamPath, STREAM_MODEL, true),
    expected: expectedStream,
    connections: CONCURRENT_STREAMS,
  }
  const asked = await measureAnswers(target.answerPath, running, before(dose.requestsMs))
  const streamed = await costOf(running, { ...streams, mayAsk: (sent) => sent < dose.streams })
  const chunks = streamed.tally.answers * CHUNKS_PER_STREAM
  return {
    microsPerRequest: asked.micros / asked.tally.answers,
    microsPerChunk: streamed.micros / chunks,
    requests: asked.tally.answers,
    chunks,
    readsPerChunk: streamed.tally.reads / chunks,
    loadedMegabytes: residentMegabytes(running.pid),
  }
}

export interface Cost {
  readonly micros: number
  readonly tally: Tally
}

/** Nothing is in flight at either end, so all CPU in between belongs to the counted answers. */
export async function costOf(running: Running, load: Load): Promise<Cost> {
  const before = cpuMicros(running.pid)
  const tally = await driveRightly(load)
  await Bun.sleep(AFTERWORK_MS)
  return { micros: cpuMicros(running.pid) - before, tally }
}

async function driveRightly(load: Load): Promise<Tally> {
  const tally = await drive(load)
  if (tally.wrong.length === 0) return tally
  const texts = [...new Set(tally.wrong)].slice(0, WRONG_SHOWN)
  const count = `${tally.wrong.length} of ${load.connections} connections got a wrong answer`
  throw new Error([`${count} (${tally.answers} were right)`, ...texts].join("\n  "))
}

function before(ms: number): () => boolean {
  const deadline = performance.now() + ms
  return () => performance.now() < deadline
}
