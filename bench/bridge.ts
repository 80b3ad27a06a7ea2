import { CONCURRENT_STREAMS, costOf, type Effort } from "./measure.ts"
import { bridgedStream, MESSAGES_MODEL, messagesEvents } from "./messages-traffic.ts"
import type { Running } from "./processes.ts"
import { judgeBridged, median, type Verdict } from "./table.ts"
import { type Scene, startTollgate } from "./targets.ts"
import { CHUNKS_PER_STREAM, requestBytes, STREAM_MODEL } from "./traffic.ts"

/** What `--only` calls this part. */
export const BRIDGE = "bridge"

const PATH = "/compat/v1/messages"

interface Way {
  readonly model: string
  readonly expected: Buffer
}

const NATIVE: Way = { model: MESSAGES_MODEL, expected: Buffer.from(messagesEvents.join("")) }
const BRIDGED: Way = { model: STREAM_MODEL, expected: bridgedStream }

/** What a chunk costs that is translated from chat for callers who speak messages, beside one that passes as it is. */
export async function benchBridge(
  effort: Effort,
  scene: Pick<Scene, "workshop" | "upstream">,
): Promise<readonly Verdict[]> {
  console.log(
    `\nbridge: the messages endpoint on a messages upstream and on a chat upstream, ${CHUNKS_PER_STREAM} chunks each`,
  )
  const running = await startTollgate(scene, { name: "tollgate-bridge", price: "free" })
  for (const way of [NATIVE, BRIDGED]) await microsPerChunk(running, way, effort.warmUp.streams)
  const times: number[] = []
  for (let round = 1; round <= effort.rounds; round++) {
    // Both in each round, because other work on the machine weighs on neighbours in time alike.
    const native = await microsPerChunk(running, NATIVE, effort.round.streams)
    const bridged = await microsPerChunk(running, BRIDGED, effort.round.streams)
    times.push(bridged / native)
    console.log(`round ${round} bridge: native ${native.toFixed(1)} µs a chunk, bridged ${bridged.toFixed(1)} µs`)
  }
  const verdict = judgeBridged(median(times))
  console.log(`\n${verdict.line}`)
  return [verdict]
}

async function microsPerChunk(running: Running, { model, expected }: Way, streams: number): Promise<number> {
  const { micros, tally } = await costOf(running, {
    url: running.url,
    request: requestBytes(PATH, model, true),
    expected,
    connections: CONCURRENT_STREAMS,
    mayAsk: (sent) => sent < streams,
  })
  return micros / (tally.answers * CHUNKS_PER_STREAM)
}
