import type { Pacing } from "../behaviour.ts"
import { jsonReply, type Piece, type Reply } from "../wire/reply.ts"
import type { HeaderPair } from "../wire/request-parser.ts"

const defaultGapMs = 5
const lineEnds = { lf: "\n", crlf: "\r\n", cr: "\r" } as const
const encoder = new TextEncoder()

export const eventStreamHeaders: readonly HeaderPair[] = [
  ["content-type", "text/event-stream; charset=utf-8"],
  ["cache-control", "no-cache"],
]

export interface StreamEvent {
  /** With LF line ends. */
  readonly text: string
  /** True for the first event that carries something of the answer. */
  readonly content?: boolean
}

/** What an event says; its type is its name. */
export interface EventData {
  readonly type: string
  readonly [field: string]: unknown
}

/** An event with its name in front, as the newer protocols write it; the data repeats the name as its type. */
export function namedEvent(data: EventData): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
}

/** An event without a name line, as chat and sound have them. */
export function dataEvent(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`
}

/** An answer made of events, each made when the one before has been written. */
export function eventStreamReply(
  events: Iterable<StreamEvent>,
  pacing: Pacing,
  more: { readonly headers?: readonly HeaderPair[]; readonly ping?: string } = {},
): Reply {
  const { cut, pingEveryMs } = pacing
  return {
    status: 200,
    headers: [...eventStreamHeaders, ...(more.headers ?? [])],
    framing: "chunked",
    pieces: paced(cut === undefined ? events : firstOf(events, cut.afterEvents), pacing),
    ...(cut === undefined ? {} : { end: cut.how }),
    ...(pingEveryMs === undefined ? {} : { pingEveryMs }),
    ...(more.ping === undefined ? {} : { ping: encoder.encode(more.ping) }),
    ...headDelay(pacing.headDelayMs ?? 0),
  }
}

function* paced(events: Iterable<StreamEvent>, pacing: Pacing): Generator<Piece> {
  const eol = lineEnds[pacing.eol ?? "lf"]
  const gapMs = pacing.gapMs ?? defaultGapMs
  let isFirst = true
  for (const { text, content } of events) {
    const comment = pacing.comments === true ? `: keep-alive${eol}${eol}` : ""
    const bytes = encoder.encode(comment + (eol === "\n" ? text : text.replaceAll("\n", eol)))
    const delay = content === true ? pacing.firstTokenDelayMs : undefined
    if (isFirst && delay === undefined) yield { bytes }
    else yield { bytes, afterMs: delay ?? gapMs }
    isFirst = false
  }
}

export function* firstOf<T>(items: Iterable<T>, count: number): Generator<T> {
  if (count === 0) return
  let taken = 0
  for (const item of items) {
    yield item
    if (++taken === count) return
  }
}

/** Not streamed, the first token comes with all the others: both delays are before the head. */
export function pacedJsonReply(value: unknown, pacing: Pacing, headers: readonly HeaderPair[] = []): Reply {
  return pacedWhole(jsonReply(200, value, headers), pacing)
}

export function pacedWhole(reply: Reply, pacing: Pacing): Reply {
  const delayMs = (pacing.headDelayMs ?? 0) + (pacing.firstTokenDelayMs ?? 0)
  return { ...reply, ...(pacing.cut === undefined ? {} : { end: pacing.cut.how }), ...headDelay(delayMs) }
}

export function headDelay(ms: number): { headDelayMs?: number } {
  return ms === 0 ? {} : { headDelayMs: ms }
}
