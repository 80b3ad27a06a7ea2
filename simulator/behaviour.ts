import { z } from "zod"
import { longestTimeoutMs } from "../src/core/timeouts.ts"

/** Behaviour is plain data, so that it can be set from a test, over HTTP, or written down as a fixture. */

export const maxBigMegabytes = 4096
const maxPieces = 100_000

const ms = z.number().min(0).max(longestTimeoutMs)
const count = z.int().min(1).max(maxPieces)
const status = z.int().min(200).max(599)
const headers = z.record(z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/), z.string().regex(/^[^\r\n]*$/)).readonly()
const encoding = z.enum(["utf8", "latin1", "base64"])
const splitting = {
  /** Byte offsets at which a new write (and chunk) starts. */
  splitAt: z.array(z.int().min(0)).readonly().exactOptional(),
  /** Length in bytes of each write. */
  splitEvery: z.int().min(1).exactOptional(),
  /** Between writes; a split defaults to 1 ms, 0 only lets the event loop turn. */
  gapMs: ms.exactOptional(),
}

const toolCall = z.strictObject({ id: z.string().exactOptional(), name: z.string(), arguments: z.string() }).readonly()

/** A healthy chat answer, streamed or not as the request asks; every part of it can be set. */
const chat = z.strictObject({
  kind: z.literal("chat"),
  text: z.string().exactOptional(),
  reasoning: z.string().exactOptional(),
  toolCalls: z.array(toolCall).readonly().exactOptional(),
  /** How many pieces the text comes in; one for each word otherwise. */
  chunks: count.exactOptional(),
  /** An object or null is sent as it is; the words say where, or that there is none. */
  usage: z
    .union([z.record(z.string(), z.json()).readonly(), z.null(), z.enum(["in_finish", "none", "twice"])])
    .exactOptional(),
  cachedTokens: z.int().min(0).exactOptional(),
  /** Between chunks, 5 ms otherwise. */
  gapMs: ms.exactOptional(),
  headDelayMs: ms.exactOptional(),
  firstTokenDelayMs: ms.exactOptional(),
  finishReason: z.string().nullable().exactOptional(),
  /** False leaves out `data: [DONE]`. */
  done: z.boolean().exactOptional(),
  id: z.string().exactOptional(),
  /** The model it was asked for otherwise. */
  model: z.string().exactOptional(),
  eol: z.enum(["lf", "crlf", "cr"]).exactOptional(),
  /** SSE comments between the chunks. */
  comments: z.boolean().exactOptional(),
  /** False leaves out the opening chunk that has only a role. */
  roleChunk: z.boolean().exactOptional(),
})

/** Any status; the body is `json`, else `body`, else the vendor's usual words for it. */
const statusAnswer = z.strictObject({
  kind: z.literal("status"),
  status,
  body: z.string().exactOptional(),
  json: z.json().exactOptional(),
  headers: headers.exactOptional(),
  delayMs: ms.exactOptional(),
})

/** An exact body: `frames` are written one by one, or `body` in one piece, unless split. */
const stream = z.strictObject({
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

const html = z.strictObject({ kind: z.literal("html"), status: status.exactOptional() })

/** A valid answer of about that size, made as the client reads it. */
const big = z.strictObject({
  kind: z.literal("big"),
  megabytes: z.number().positive().max(maxBigMegabytes),
  stream: z.boolean(),
})

const compressible = z.discriminatedUnion("kind", [chat, statusAnswer, stream, html, big])

/** The inner answer compressed, with `content-encoding`, whatever the client accepts; streams are flushed at each piece. */
const gzip = z.strictObject({
  kind: z.literal("gzip"),
  inner: compressible,
  encoding: z.enum(["gzip", "br", "deflate", "zstd"]).exactOptional(),
})

/** Exact bytes on the socket, status line and all. */
const raw = z.strictObject({
  kind: z.literal("raw"),
  bytes: z.string(),
  encoding: encoding.exactOptional(),
  ...splitting,
  /** `fin` otherwise. */
  thenClose: z.enum(["fin", "rst", "keep"]).exactOptional(),
})

const behaviour = z.discriminatedUnion("kind", [
  chat,
  statusAnswer,
  stream,
  html,
  big,
  gzip,
  raw,
  /** Reads the request and never answers. */
  z.strictObject({ kind: z.literal("hang") }),
  /** RST before any byte of an answer. */
  z.strictObject({ kind: z.literal("reset") }),
  /** FIN before any byte of an answer. */
  z.strictObject({ kind: z.literal("close") }),
  /** Bytes that are not HTTP. */
  z.strictObject({ kind: z.literal("garbage") }),
  /** 400 if the body has `stream_options`, as from a vendor that does not know it; healthy otherwise. */
  z.strictObject({ kind: z.literal("echo_stream_options_error") }),
])

export type Behaviour = z.infer<typeof behaviour>
export type Compressible = z.infer<typeof compressible>
export type BehaviourOf<K extends Behaviour["kind"]> = Extract<Behaviour, { kind: K }>

export const healthy: BehaviourOf<"chat"> = { kind: "chat" }

/** Checks behaviour that came from outside; the error names the field. */
export function readBehaviours(value: unknown): readonly Behaviour[] {
  const read = z.array(behaviour).safeParse(value)
  if (read.success) return read.data
  const problems = read.error.issues.map(({ path, message }) => `behaviour${pathText(path)}: ${message}`)
  throw new TypeError(problems.join("; "))
}

function pathText(path: readonly PropertyKey[]): string {
  return path.map((step) => (typeof step === "number" ? `[${step}]` : `.${String(step)}`)).join("")
}
