import type { Ask } from "../admission/ask.ts"
import type { Route, Upstream } from "../core/catalog.ts"
import { GatewayError } from "../core/errors.ts"
import { parseObject } from "../core/json.ts"
import { blankOut, joinBytes, mebibyte, textOf } from "../lib/bytes.ts"
import { JsonProblem, type JsonShape, scanJson } from "../lib/json-bytes.ts"
import { type Failure, type FailureCause, failure } from "../routing/failure.ts"
import { post, Unreachable } from "../upstream/client.ts"
import { blankHeaders, clientHeaders, upstreamHeaders } from "../upstream/headers.ts"
import type { Answer, AttemptTerms, BegunFlow, BegunStream, StreamReader, WholeAnswer } from "./answer.ts"
import { runImageJob } from "./image-job.ts"
import type { Meter } from "./meter.ts"
import type { CallCarriage, WholeReader } from "./protocol.ts"

/** The largest whole answer, error answer and held-back preamble the gateway collects. */
const mostAnswerBytes = 100 * mebibyte
const mostErrorBytes = mebibyte
const mostHeldBytes = mebibyte

/** How much of what an upstream said is put on record; an extra header's value shorter than a secret may stand in it. */
const longestDetail = 400
const shortestSecret = 8

/** What the runtime decodes by itself; a chain of encodings it would hand on as it came. */
const readableEncodings: ReadonlySet<string> = new Set(["identity", "gzip", "x-gzip", "deflate", "br", "zstd"])

/** Asks one upstream once. Resolves at the first token or byte, at the whole answer, or at the failure; it never throws. */
export async function attempt(route: Route, terms: AttemptTerms): Promise<Answer | Failure> {
  const leash = new Leash(route, terms)
  let answer: Answer | Failure
  try {
    answer = await ask(route, terms, leash)
  } catch (error) {
    answer = leash.explain(error)
  }
  leash.release()
  if (answer.kind !== "failure") return answer
  leash.abort()
  return { ...answer, detail: shownDetail(answer.detail, route.upstream, terms) }
}

/** Blanked first and cut then, so that no piece of a secret is left at the cut. */
function shownDetail(detail: string, { headers }: Upstream, { credential }: AttemptTerms): string {
  const secrets = [credential.secret ?? "", ...Object.values(headers).filter((value) => value.length >= shortestSecret)]
  return secrets
    .reduce((text, secret) => (secret === "" ? text : text.replaceAll(secret, "***")), detail)
    .slice(0, longestDetail)
}

/** What can end an attempt from outside: the first-token limit, the request's deadline, the caller or the instance leaving. */
class Leash {
  readonly #controller = new AbortController()
  readonly #timer: Timer
  readonly #clientSignal: AbortSignal | null
  readonly #stream: boolean
  readonly #running: Set<() => void>
  #cut: FailureCause | null = null

  constructor(route: Route, terms: AttemptTerms) {
    const left = terms.deadline - performance.now()
    const firstToken = terms.ask.stream ? route.upstream.timeouts.firstToken : Number.POSITIVE_INFINITY
    const cause = firstToken < left ? "timeout" : "deadline"
    this.#timer = setTimeout(() => this.#end(cause), Math.max(0, Math.min(left, firstToken)))
    this.#stream = terms.ask.stream
    this.#running = terms.running
    this.#running.add(this.#shutDown)
    this.#clientSignal = terms.clientSignal
    this.#clientSignal?.addEventListener("abort", this.#clientLeft)
    if (this.#clientSignal?.aborted) this.#clientLeft()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  readonly abort = (): void => this.#controller.abort()

  /** From here on the attempt's own limits no longer apply. */
  release(): void {
    clearTimeout(this.#timer)
    this.#running.delete(this.#shutDown)
    this.#clientSignal?.removeEventListener("abort", this.#clientLeft)
  }

  explain(error: unknown): Failure {
    if (this.#cut !== null) return failure(this.#cut, `cut off: ${this.#cut}`)
    if (error instanceof Unreachable) return failure("unreachable", error.reason)
    if (error instanceof GatewayError) return untranslatable(error)
    const why = error instanceof Error ? error.message : String(error)
    return failure(this.#stream ? "bad_stream" : "bad_answer", `the answer broke off: ${why}`)
  }

  readonly #clientLeft = (): void => this.#end("client_gone")
  readonly #shutDown = (): void => this.#end("shutdown")

  #end(cause: FailureCause): void {
    this.#cut ??= cause
    this.#controller.abort()
  }
}

async function ask(route: Route, terms: AttemptTerms, leash: Leash): Promise<Answer | Failure> {
  const { upstream } = route
  const { carriage, credential } = terms
  if (carriage.kind === "job") return runImageJob(route, carriage.vendor, terms, leash.signal)
  const response = await post({
    url: addressOf(upstream, carriage, terms.query),
    headers: upstreamHeaders(terms.clientHeaders, upstream, carriage.endpoint, credential.secret, carriage.contentType),
    body: carriage.body(terms.ask, route, { streamOptions: terms.streamOptions }),
    signal: leash.signal,
  })
  credential.report(response.status)
  // The vendor's own headers are of use only to callers who speak its dialect.
  const native = carriage.contentType === undefined ? carriage.endpoint : undefined
  const headers = blankHeaders(clientHeaders(response.headers, native), credential.secret)
  if (response.status >= 400) return errorAnswer(response, headers, terms, carriage)
  if (response.status >= 300) return failure("redirect", `the upstream redirects (${response.status})`)
  const encoding = response.headers.get("content-encoding") ?? "identity"
  if (!readableEncodings.has(encoding.toLowerCase()))
    return failure("bad_answer", `the answer's content-encoding is ${encoding.slice(0, 40)}`)
  const type = response.headers.get("content-type") ?? ""
  if (type.startsWith("text/event-stream")) return beginStream(response, headers, terms.ask, carriage, leash)
  if (type.startsWith("text/html")) return failure("bad_answer", "the upstream answered with a web page")
  if (carriage.answer.kind === "pass_on") return beginFlow(response, headers, carriage.answer.meter(type), leash)
  return wholeAnswer(response, headers, terms.ask, carriage.answer)
}

/** The caller's query belongs to the caller's dialect: where a bridge carries the request it stays behind. */
function addressOf(
  { baseUrl, vendor }: Upstream,
  { endpoint, pathEnd = "", contentType }: CallCarriage,
  query: string,
) {
  return baseUrl + vendor.paths[endpoint] + pathEnd + (contentType === undefined ? query : "")
}

async function errorAnswer(
  response: Response,
  headers: Record<string, string>,
  terms: AttemptTerms,
  carriage: CallCarriage,
): Promise<Failure> {
  const { status } = response
  const { credential } = terms
  const raw = await readUpTo(response, mostErrorBytes)
  const clean = credential.secret === null ? raw.bytes : blankOut(raw.bytes, credential.secret, "***")
  const text = textOf(clean.subarray(0, 2000))
  const refusesOption = status === 400 && terms.ask.stream && terms.streamOptions && text.includes("stream_options")
  const body = carriage.errorBody?.(status, clean, terms.requestId) ?? clean
  if (body !== clean) headers["content-type"] = "application/json"
  else if (carriage.endpoint === "messages") nameRequest(headers, body)
  return {
    ...failure(refusesOption ? "stream_options" : "status", `${status} ${text}`),
    answer: { status, headers, body },
  }
}

/** Callers who speak messages find the id that the body tells in the header too; elsewhere it is ours. */
function nameRequest(headers: Record<string, string>, body: Uint8Array): void {
  const id = parseObject(textOf(body))?.request_id
  if (typeof id === "string" && /^[\w-]{1,100}$/.test(id)) headers["request-id"] = id
}

async function wholeAnswer(
  response: Response,
  headers: Record<string, string>,
  ask: Ask,
  reader: WholeReader,
): Promise<WholeAnswer | Failure> {
  const { bytes, whole } = await readUpTo(response, mostAnswerBytes)
  if (!whole) return failure("bad_answer", `the answer is larger than ${mostAnswerBytes} bytes`)
  let shape: JsonShape
  try {
    shape = scanJson(bytes, reader.fields)
  } catch (error) {
    if (error instanceof JsonProblem) return failure("bad_answer", `the answer is not JSON: ${error.message}`)
    throw error
  }
  const reading = reader.read(bytes, shape, ask)
  if ("problem" in reading) return failure("bad_answer", reading.problem)
  if (reading.contentType !== undefined) headers["content-type"] = reading.contentType
  return { ...reading, kind: "whole", status: response.status, headers }
}

/** Waits for the first bytes, so that until then another upstream can take over. */
async function beginFlow(
  response: Response,
  headers: Record<string, string>,
  meter: Meter | null,
  leash: Leash,
): Promise<BegunFlow | Failure> {
  const reader = response.body?.getReader() as StreamReader | undefined
  const first = await reader?.read()
  if (reader === undefined || first === undefined || first.done) return failure("bad_answer", "the answer is empty")
  return { kind: "flow", status: response.status, headers, reader, first: first.value, meter, abort: leash.abort }
}

/** Reads up to the first token, holding everything back, so that until then another upstream can take over. */
async function beginStream(
  response: Response,
  headers: Record<string, string>,
  ask: Ask,
  carriage: CallCarriage,
  leash: Leash,
): Promise<BegunStream | Failure> {
  const tap = carriage.tap(ask)
  const reader = response.body?.getReader() as StreamReader | undefined
  if (reader === undefined) return failure("bad_stream", "the stream has no body")
  const held: Uint8Array[] = []
  let heldBytes = 0
  for (;;) {
    const { done, value } = await reader.read()
    const passed = done ? tap.end() : tap.push(value as Uint8Array)
    if (passed !== null) {
      held.push(passed)
      heldBytes += passed.length
    }
    if (tap.error !== null) return failure("bad_stream", `the stream begins with an error: ${tap.error}`)
    if (tap.begun) return { kind: "stream", headers, reader, tap, held: joinBytes(held), abort: leash.abort }
    if (done || tap.ended) return failure("bad_stream", "the stream ended before its first token")
    if (heldBytes > mostHeldBytes)
      return failure("bad_stream", `no token in the first ${mostHeldBytes} bytes of the stream`)
  }
}

async function readUpTo(response: Response, limit: number): Promise<{ bytes: Uint8Array; whole: boolean }> {
  // The length of a compressed answer says nothing about how large it will be.
  const declared = response.headers.has("content-encoding") ? null : response.headers.get("content-length")
  if (declared !== null && Number(declared) <= limit) return { bytes: await response.bytes(), whole: true }
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length
    chunks.push(chunk)
    if (size > limit) return { bytes: Buffer.concat(chunks).subarray(0, limit), whole: false }
  }
  return { bytes: Buffer.concat(chunks), whole: true }
}

/** What a bridge cannot carry is this route's trouble, not the request's: another route may speak the caller's dialect. */
function untranslatable(error: GatewayError): Failure {
  if (error.status < 500) return { ...failure("not_bridgeable", error.message), error }
  return failure("bad_answer", error.message)
}
