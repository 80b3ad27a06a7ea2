import { z } from "zod"
import { longestTimeoutMs } from "../src/core/timeouts.ts"

const maxBigMegabytes = 4096
const maxPieces = 100_000

export const ms = z.number().min(0).max(longestTimeoutMs)
export const count = z.int().min(1).max(maxPieces)
const status = z.int().min(200).max(599)
export const headers = z
  .record(z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/), z.string().regex(/^[^\r\n]*$/))
  .readonly()
export const megabytes = z.number().positive().max(maxBigMegabytes)
/** What may stand in a header's value. */
export const visible = z.string().regex(/^[\x20-\x7e]+$/)
export const hostName = z.string().regex(/^[\w.[\]:-]+$/)
const encoding = z.enum(["utf8", "latin1", "base64"])
const splitting = {
  /** Byte offsets at which a new write (and chunk) starts. */
  splitAt: z.array(z.int().min(0)).readonly().exactOptional(),
  /** Length in bytes of each write. */
  splitEvery: z.int().min(1).exactOptional(),
  /** Between writes; a split defaults to 1 ms, 0 only lets the event loop turn. */
  gapMs: ms.exactOptional(),
}

/** Any status; the body is `json`, else `body`, else the vendor's usual words for it. */
export const statusAnswer = z.strictObject({
  kind: z.literal("status"),
  status,
  body: z.string().exactOptional(),
  json: z.json().exactOptional(),
  headers: headers.exactOptional(),
  delayMs: ms.exactOptional(),
})

/** An exact body: `frames` are written one by one, or `body` in one piece, unless split. */
export const stream = z.strictObject({
  kind: z.literal("stream"),
  frames: z.array(z.string()).readonly().exactOptional(),
  body: z.string().exactOptional(),
  encoding: encoding.exactOptional(),
  status: status.exactOptional(),
  /** Added to, or put in place of, `content-type: text/event-stream`. */
  headers: headers.exactOptional(),
  framing: z.enum(["chunked", "close", "content-length"]).exactOptional(),
  ...splitting,
  headDelayMs: ms.exactOptional(),
  /** `fin` and `rst` end in mid-body, `stall` goes silent with the connection open. */
  end: z.enum(["clean", "fin", "rst", "stall"]).exactOptional(),
  /** Sends `: ping` comments during a stall. */
  pingEveryMs: ms.min(1).exactOptional(),
})

export const html = z.strictObject({ kind: z.literal("html"), status: status.exactOptional() })

/** Exact bytes on the socket, status line and all. */
const raw = z.strictObject({
  kind: z.literal("raw"),
  bytes: z.string(),
  encoding: encoding.exactOptional(),
  ...splitting,
  /** `fin` otherwise. */
  thenClose: z.enum(["fin", "rst", "keep"]).exactOptional(),
})

/** Answers of any endpoint that are none, or not what was asked for. */
export const fault = z.discriminatedUnion("kind", [
  statusAnswer,
  stream,
  html,
  raw,
  /** Reads the request and never answers. */
  z.strictObject({ kind: z.literal("hang") }),
  /** RST before any byte of an answer. */
  z.strictObject({ kind: z.literal("reset") }),
  /** FIN before any byte of an answer. */
  z.strictObject({ kind: z.literal("close") }),
  /** Bytes that are not HTTP. */
  z.strictObject({ kind: z.literal("garbage") }),
])
