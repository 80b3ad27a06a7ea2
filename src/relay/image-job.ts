import type { Route } from "../core/catalog.ts"
import { GatewayError } from "../core/errors.ts"
import type { ImageProgress, ImageResult, ImageVendor } from "../core/image-vendor.ts"
import type { JsonValue } from "../core/json.ts"
import type { VendorCall, VendorContext } from "../core/vendor-job.ts"
import { blankOut, utf8 } from "../lib/bytes.ts"
import { callVendor, download, Unreachable, type VendorReply } from "../upstream/client.ts"
import { Forbidden } from "../upstream/guard.ts"
import { clientHeaders, upstreamHeaders } from "../upstream/headers.ts"
import { type ResponseFormat, readImageAsk } from "../vendors/image/ask.ts"
import { mayCarryCredential } from "../vendors/image/hosts.ts"
import type { AttemptTerms, WholeAnswer } from "./answer.ts"
import type { Failure, FailureCause } from "./failure.ts"

/** How soon a job is asked after: quickly at first, then less and less often. */
const polling = { firstMs: 400, growth: 1.4, mostMs: 3000 } as const

/** The largest picture fetched for a caller who wants base64. */
const mostImageBytes = 32 * 1024 * 1024

/** How long telling the vendor to stop may take; nobody waits for it. */
const cancelMs = 5000

/** Makes images with a vendor whose images are jobs: submits, asks after it until there is a verdict, answers in the images shape. */
export async function runImageJob(
  route: Route,
  vendor: ImageVendor,
  terms: AttemptTerms,
  signal: AbortSignal,
): Promise<WholeAnswer | Failure> {
  const { upstream } = route
  const ask = readImageAsk(terms.ask.json())
  const context: VendorContext = {
    baseUrl: upstream.baseUrl,
    upstreamModel: route.upstreamModel,
    settings: upstream.settings,
  }
  const send = (call: VendorCall, until: AbortSignal): Promise<VendorReply> =>
    callVendor(call, headersFor(call, route, vendor, terms), until)
  const submit = await send(vendor.submit(ask, context), signal)
  terms.credential.report(submit.reply.status)
  if (submit.reply.status >= 400) return refused(submit, terms)
  const submitted = vendor.readSubmit(submit.reply)
  if (submitted.kind === "unreadable") return failure("bad_answer", submitted.why)
  if (submitted.kind !== "accepted") return verdict(submitted, ask.responseFormat, terms, signal)
  const { ref } = submitted
  try {
    return await verdict(await untilVerdict(ref, vendor, context, send, signal), ask.responseFormat, terms, signal)
  } catch (error) {
    // The caller left or the time is over: what the vendor has not made yet it need not make.
    const cancel = vendor.cancel?.(ref, context)
    if (signal.aborted && cancel !== undefined) send(cancel, AbortSignal.timeout(cancelMs)).catch(() => {})
    throw error
  }
}

type Send = (call: VendorCall, until: AbortSignal) => Promise<VendorReply>
type Verdict = Extract<ImageProgress, { kind: "succeeded" | "failed" }>

/** Trouble while asking is not a verdict; only the request's own deadline ends it. */
async function untilVerdict(
  ref: JsonValue,
  vendor: ImageVendor,
  context: VendorContext,
  send: Send,
  signal: AbortSignal,
): Promise<Verdict> {
  let current = ref
  let pauseMs: number = polling.firstMs
  for (;;) {
    await sleep(pauseMs, signal)
    const progress = await look(current, vendor, context, send, signal)
    if (progress.kind === "succeeded" || progress.kind === "failed") return progress
    if (progress.kind === "continue") {
      current = progress.ref
      pauseMs = 0
    } else {
      pauseMs = Math.min(polling.mostMs, Math.max(polling.firstMs, pauseMs * polling.growth))
    }
  }
}

async function look(
  ref: JsonValue,
  vendor: ImageVendor,
  context: VendorContext,
  send: Send,
  signal: AbortSignal,
): Promise<ImageProgress> {
  try {
    return vendor.readPoll((await send(vendor.poll(ref, context), signal)).reply, ref)
  } catch (error) {
    if (error instanceof Unreachable || error instanceof Forbidden) return { kind: "unreadable", why: error.message }
    throw error
  }
}

async function verdict(
  found: Verdict,
  format: ResponseFormat,
  terms: AttemptTerms,
  signal: AbortSignal,
): Promise<WholeAnswer | Failure> {
  if (found.kind === "failed") return { ...failure("job_failed", found.reason), error: jobError(found.reason) }
  try {
    const data = await Promise.all(found.images.map((image) => present(image, format, terms, signal)))
    const body = utf8(JSON.stringify({ created: Math.floor(Date.now() / 1000), data }))
    return { kind: "whole", status: 200, headers: { "content-type": "application/json" }, body, usage: null }
  } catch (error) {
    if (!(error instanceof Forbidden)) throw error
    return {
      ...failure("job_failed", error.message),
      error: jobError(`its result cannot be fetched: ${error.message}`),
    }
  }
}

async function present(image: ImageResult, format: ResponseFormat, terms: AttemptTerms, signal: AbortSignal) {
  if ("base64" in image)
    return format === "b64_json" ? { b64_json: image.base64 } : { url: `data:image/png;base64,${image.base64}` }
  if (format === "url") return { url: image.url }
  const { bytes, type } = await download(image.url, mostImageBytes, terms.allowPrivateAddresses, signal)
  if (!type.startsWith("image/") && type !== "application/octet-stream")
    throw new Forbidden(`the result is no image but ${JSON.stringify(type.slice(0, 60))}`)
  return { b64_json: Buffer.from(bytes).toString("base64") }
}

/** The credential goes only where the upstream or its adapter says; an address out of a reply is not trusted with it. */
function headersFor(call: VendorCall, route: Route, vendor: ImageVendor, terms: AttemptTerms): Record<string, string> {
  const trusted = mayCarryCredential(call.url, route.upstream.baseUrl, vendor.hosts)
  const secret = trusted ? terms.credential.secret : null
  return upstreamHeaders(terms.clientHeaders, route.upstream, terms.carriage.endpoint, secret, "application/json")
}

function refused(submit: VendorReply, { credential }: AttemptTerms): Failure {
  const { status, text } = submit.reply
  const body = credential.secret === null ? submit.bytes : blankOut(submit.bytes, credential.secret, "***")
  return {
    ...failure("status", `${status} ${text.slice(0, 300)}`),
    answer: { status, headers: clientHeaders(submit.headers), body },
  }
}

/** Asking again would only pay again for the same verdict, so clients are told not to. */
function jobError(reason: string): GatewayError {
  return new GatewayError("upstream_error", `the image could not be made: ${reason}`, {
    headers: { "x-should-retry": "false" },
  })
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  const wake = (): void => resolve()
  signal.addEventListener("abort", wake)
  if (!signal.aborted) await promise
  clearTimeout(timer)
  signal.removeEventListener("abort", wake)
  signal.throwIfAborted()
}

function failure(cause: FailureCause, detail: string): Failure {
  return { kind: "failure", cause, detail }
}
