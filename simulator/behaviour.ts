import { z } from "zod"
import { count, fault, html, megabytes, ms, statusAnswer, stream, visible } from "./faults.ts"
import { file, imageJob, videoJob } from "./job-behaviours.ts"

/** Behaviour is plain data, so that it can be set from a test, over HTTP, or written down as a fixture. */

const toolCall = z.strictObject({ id: z.string().exactOptional(), name: z.string(), arguments: z.string() }).readonly()
const usageObject = z.record(z.string(), z.json()).readonly()
/** An object is sent as it is, `none` leaves usage out, otherwise it is counted. */
const usage = z.union([usageObject, z.literal("none")]).exactOptional()
/** What an error in the answer says; the vendor's usual words otherwise. */
const told = z.strictObject({ code: z.string().exactOptional(), message: z.string().exactOptional() }).readonly()

/** How the events of an answer are written, spaced and cut short. */
const pacing = {
  /** Between events, 5 ms otherwise. */
  gapMs: ms.exactOptional(),
  headDelayMs: ms.exactOptional(),
  /** Before the first event that carries something of the answer. */
  firstTokenDelayMs: ms.exactOptional(),
  eol: z.enum(["lf", "crlf", "cr"]).exactOptional(),
  /** SSE comments between the events. */
  comments: z.boolean().exactOptional(),
  /** Sends at most so many events, then ends so; `clean` looks complete to HTTP. Not streamed: ends before its content-length. */
  cut: z
    .strictObject({ afterEvents: z.int().min(0), how: z.enum(["clean", "fin", "rst", "stall"]) })
    .readonly()
    .exactOptional(),
  /** Sends the protocol's pings during a stall. */
  pingEveryMs: ms.min(1).exactOptional(),
  /** One JSON body though a stream was asked for. */
  ignoresStream: z.boolean().exactOptional(),
}

/** What a model says, whichever protocol it says it in. */
const said = {
  text: z.string().exactOptional(),
  toolCalls: z.array(toolCall).readonly().exactOptional(),
  /** How many pieces the text comes in; one for each word otherwise. */
  chunks: count.exactOptional(),
  id: z.string().exactOptional(),
  /** The model it was asked for otherwise. */
  model: z.string().exactOptional(),
  /** Of the input, read from the vendor's cache. */
  cachedTokens: z.int().min(0).exactOptional(),
}

/** A healthy chat answer, streamed or not as the request asks; every part of it can be set. */
const chat = z.strictObject({
  kind: z.literal("chat"),
  ...said,
  ...pacing,
  reasoning: z.string().exactOptional(),
  /** An object or null is sent as it is; the words say where, or that there is none. */
  usage: z.union([usageObject, z.null(), z.enum(["in_finish", "none", "twice"])]).exactOptional(),
  finishReason: z.string().nullable().exactOptional(),
  /** False leaves out `data: [DONE]`. */
  done: z.boolean().exactOptional(),
  /** False leaves out the opening chunk that has only a role. */
  roleChunk: z.boolean().exactOptional(),
})

/** An answer of the responses API. */
const responses = z.strictObject({
  kind: z.literal("responses"),
  ...said,
  ...pacing,
  /** The reasoning's summary. */
  reasoning: z.string().exactOptional(),
  usage,
  /** The last event; `error` is the bare event, which no other follows. Not streamed, `error` is a status 500. */
  ending: z.enum(["completed", "incomplete", "failed", "error"]).exactOptional(),
  /** How many events come before the ending; all otherwise. */
  endAfterEvents: z.int().min(0).exactOptional(),
  /** `max_output_tokens` otherwise. */
  incompleteReason: z.string().exactOptional(),
  error: told.exactOptional(),
})

/** An answer of the messages API. */
const messages = z.strictObject({
  kind: z.literal("messages"),
  ...said,
  ...pacing,
  thinking: z.string().exactOptional(),
  /** Of the thinking; some opaque text otherwise. */
  signature: z.string().exactOptional(),
  usage,
  /** Of the input, written to the vendor's cache. */
  cacheWriteTokens: z.int().min(0).exactOptional(),
  stopReason: z.string().nullable().exactOptional(),
  stopSequence: z.string().exactOptional(),
  /** False leaves out the `ping` after the first block has begun. */
  ping: z.boolean().exactOptional(),
  /** `error` comes in place of `message_delta` (not streamed: as the error's own status); `none` leaves `message_stop` out. */
  ending: z.enum(["stop", "error", "none"]).exactOptional(),
  /** How many events come before the ending; all otherwise. */
  endAfterEvents: z.int().min(0).exactOptional(),
  /** `code` is the error's type: `overloaded_error` otherwise. */
  error: told.exactOptional(),
})

/** Vectors that depend on nothing but text and dimensions. */
const embeddings = z.strictObject({
  kind: z.literal("embeddings"),
  /** As asked, or 1536, otherwise. */
  dimensions: z.int().min(1).max(65_536).exactOptional(),
  model: z.string().exactOptional(),
  usage,
  headDelayMs: ms.exactOptional(),
})

const rerank = z.strictObject({
  kind: z.literal("rerank"),
  /** By the path otherwise: Cohere's is under `/v2`, and the others took Jina's. */
  style: z.enum(["cohere", "jina", "voyage"]).exactOptional(),
  /** Cohere's measure; one for each hundred documents otherwise. */
  searchUnits: z.int().min(0).exactOptional(),
  model: z.string().exactOptional(),
  usage,
  headDelayMs: ms.exactOptional(),
})

/** Pictures at once: generations, edits and variations. */
const images = z.strictObject({
  kind: z.literal("images"),
  ...pacing,
  /** Entries in `data`, whatever `n` asks. */
  images: z.int().min(0).max(100).exactOptional(),
  /** As `response_format` asks, or base64, otherwise. */
  format: z.enum(["b64_json", "url"]).exactOptional(),
  /** Length of each picture's base64 text, made as the client reads it; a stream has small ones all the same. */
  megabytes: megabytes.exactOptional(),
  /** Entries more, which say that their picture failed, as Seedream does. */
  failedEntries: z.int().min(1).max(100).exactOptional(),
  /** Partial pictures before each streamed one; as asked otherwise. */
  partialImages: z.int().min(0).max(10).exactOptional(),
  usage,
  /** Of a stream: the last event, an `error` in its place, or none. */
  ending: z.enum(["completed", "error", "none"]).exactOptional(),
  error: told.exactOptional(),
  file: file.exactOptional(),
})

/** Sound: a tone in the format asked for. */
const speech = z.strictObject({
  kind: z.literal("speech"),
  ...pacing,
  /** About as long as the input would take to say otherwise. */
  seconds: z.number().positive().max(3600).exactOptional(),
  /** Sound of that size instead, made as the client reads it. */
  megabytes: megabytes.exactOptional(),
  /** How many pieces the sound comes in, 8 otherwise. */
  chunks: count.exactOptional(),
  contentType: visible.exactOptional(),
  usage,
  /** Of a stream of events: the last event, an `error` in its place, or none. */
  ending: z.enum(["done", "error", "none"]).exactOptional(),
  error: told.exactOptional(),
})

/** What was heard, of transcriptions and translations. */
const transcription = z.strictObject({
  kind: z.literal("transcription"),
  ...pacing,
  text: z.string().exactOptional(),
  chunks: count.exactOptional(),
  /** Length of the sound; by the file's size otherwise. */
  seconds: z.number().min(0).exactOptional(),
  language: z.string().exactOptional(),
  /** Counted in that unit: whisper models count seconds, all others tokens, otherwise. */
  usage: z.union([usageObject, z.enum(["none", "tokens", "duration"])]).exactOptional(),
  /** Of a stream: the last event, an `error` in its place, or none. */
  ending: z.enum(["done", "error", "none"]).exactOptional(),
  error: told.exactOptional(),
})

/** A valid answer of about that size, made as the client reads it. */
const big = z.strictObject({
  kind: z.literal("big"),
  megabytes,
  stream: z.boolean(),
})

/** What a vendor says of its own accord. Told to another endpoint than its own, it counts as plain healthy. */
const answer = z.discriminatedUnion("kind", [
  chat,
  responses,
  messages,
  embeddings,
  rerank,
  images,
  speech,
  transcription,
  imageJob,
  videoJob,
])

const compressible = z.discriminatedUnion("kind", [answer, statusAnswer, stream, html, big])

/** The inner answer compressed, with `content-encoding`, whatever the client accepts; streams are flushed at each piece. */
const gzip = z.strictObject({
  kind: z.literal("gzip"),
  inner: compressible,
  encoding: z.enum(["gzip", "br", "deflate", "zstd"]).exactOptional(),
})

const behaviour = z.discriminatedUnion("kind", [
  answer,
  fault,
  big,
  gzip,
  /** 400 if the body has `stream_options`, as from a vendor that does not know it; healthy otherwise. */
  z.strictObject({ kind: z.literal("echo_stream_options_error") }),
])

export type Behaviour = z.infer<typeof behaviour>
export type Answer = z.infer<typeof answer>
export type Fault = z.infer<typeof fault>
export type Compressible = z.infer<typeof compressible>
export type BehaviourOf<K extends Behaviour["kind"]> = Extract<Behaviour, { kind: K }>
export type FileOptions = z.infer<typeof file>
export type Pacing = Pick<BehaviourOf<"chat">, keyof typeof pacing>

export const healthy: BehaviourOf<"chat"> = { kind: "chat" }

/** True for what a vendor says of its own accord, false for what it was told to do instead. */
export function isAnswer(step: Behaviour): step is Answer {
  return answer.options.some((option) => option.shape.kind.value === step.kind)
}

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
