import { STATUS_CODES } from "node:http"
import type { Exchange } from "../exchange.ts"
import type { HeaderPair } from "./request-parser.ts"

/** One write of its own (and, in a chunked body, one chunk of its own). */
export interface Piece {
  readonly bytes: Uint8Array
  /** Time to wait before it is written; 0 lets the event loop turn, undefined writes at once. */
  readonly afterMs?: number
}

export type Framing = "chunked" | "close" | "content-length"
export type Ending = "clean" | "fin" | "rst" | "stall"

/** A whole answer, ready to be written. */
export interface Reply {
  readonly status: number
  readonly headers: readonly HeaderPair[]
  readonly framing: Framing
  readonly pieces: Iterable<Piece> | AsyncIterable<Piece>
  /** Bytes in all pieces; needed by `content-length`. */
  readonly length?: number
  readonly headDelayMs?: number
  /** Its work is done, but not a byte of it goes out. */
  readonly unsent?: "reset" | "hang"
  /** How the body ends; anything but `clean` leaves it unfinished on the wire. */
  readonly end?: Ending
  readonly pingEveryMs?: number
  /** What a ping is; an SSE comment otherwise. */
  readonly ping?: Uint8Array
}

/** Promised and never sent where a body with `content-length` is to end too early. */
export const missingBytes = 1024

const encoder = new TextEncoder()
const crlf = encoder.encode("\r\n")
const lastChunk = encoder.encode("0\r\n\r\n")
const comment = encoder.encode(": ping\n\n")

export async function sendReply(exchange: Exchange, reply: Reply): Promise<void> {
  if (reply.headDelayMs !== undefined) await exchange.sleep(reply.headDelayMs)
  if (reply.unsent === "hang") return await exchange.hang()
  if (reply.unsent === "reset") return exchange.reset()
  const chunked = reply.framing === "chunked"
  const frame = chunked ? chunkOf : (bytes: Uint8Array) => bytes
  const head = headOf(reply, exchange.keepAlive)
  if (isOnePiece(reply)) return await sendAtOnce(exchange, head, reply)
  await exchange.write(head)
  for await (const piece of reply.pieces) {
    if (piece.afterMs !== undefined) await exchange.sleep(piece.afterMs)
    await exchange.write(frame(piece.bytes))
  }
  switch (reply.end ?? "clean") {
    case "clean":
      if (chunked) await exchange.write(lastChunk)
      return reply.framing === "close" ? exchange.fin() : exchange.finish()
    case "fin":
      return exchange.fin()
    case "rst":
      return exchange.reset()
    case "stall":
      return await stall(exchange, frame(reply.ping ?? comment), reply.pingEveryMs)
  }
}

/** The common whole answer goes out in one write, as from a real server. */
function isOnePiece(reply: Reply): reply is Reply & { readonly pieces: readonly [Piece] } {
  const { pieces, framing, end = "clean" } = reply
  return Array.isArray(pieces) && pieces.length === 1 && framing === "content-length" && end === "clean"
}

async function sendAtOnce(exchange: Exchange, head: Uint8Array, reply: { pieces: readonly [Piece] }): Promise<void> {
  await exchange.write(Buffer.concat([head, reply.pieces[0].bytes]))
  exchange.finish()
}

async function stall(exchange: Exchange, sign: Uint8Array, pingEveryMs: number | undefined): Promise<never> {
  if (pingEveryMs === undefined) return await exchange.hang()
  for (;;) {
    await exchange.sleep(pingEveryMs)
    await exchange.write(sign)
  }
}

function headOf(reply: Reply, keepAlive: boolean): Uint8Array {
  const lines = [`HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status] ?? "Status"}`]
  for (const [name, value] of reply.headers) lines.push(`${name}: ${value}`)
  if (reply.framing === "chunked") lines.push("transfer-encoding: chunked")
  if (reply.framing === "content-length") {
    const short = reply.end === undefined || reply.end === "clean" ? 0 : missingBytes
    lines.push(`content-length: ${(reply.length ?? 0) + short}`)
  }
  if (!keepAlive || reply.framing === "close") lines.push("connection: close")
  return encoder.encode(`${lines.join("\r\n")}\r\n\r\n`)
}

function chunkOf(bytes: Uint8Array): Uint8Array {
  // An empty chunk would end the body.
  if (bytes.length === 0) return bytes
  return Buffer.concat([encoder.encode(`${bytes.length.toString(16)}\r\n`), bytes, crlf])
}

/** An answer whose body is known as a whole. */
export function wholeReply(status: number, body: string | Uint8Array, headers: readonly HeaderPair[]): Reply {
  const bytes = typeof body === "string" ? encoder.encode(body) : body
  return { status, headers, framing: "content-length", length: bytes.length, pieces: [{ bytes }] }
}

export function jsonReply(status: number, value: unknown, headers: readonly HeaderPair[] = []): Reply {
  return wholeReply(status, JSON.stringify(value), [["content-type", "application/json"], ...headers])
}
