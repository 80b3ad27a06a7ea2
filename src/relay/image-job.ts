import type { Route } from "../core/catalog.ts"
import { GatewayError } from "../core/errors.ts"
import type { ImageProgress, ImageResult, ImageVendor } from "../core/image-vendor.ts"
import type { JsonValue } from "../core/json.ts"
import type { VendorContext } from "../core/vendor-job.ts"
import { blankOut, mebibyte, utf8 } from "../lib/bytes.ts"
import { pause } from "../lib/pause.ts"
import { type Failure, failure } from "../routing/failure.ts"
import type { VendorReply } from "../upstream/client.ts"
import { Forbidden } from "../upstream/guard.ts"
import { blankHeaders, clientHeaders, upstreamHeaders } from "../upstream/headers.ts"
import { type Downloaded, download } from "../upstream/result.ts"
import { type VendorLine, vendorLine } from "../upstream/vendor-line.ts"
import { mayCarryCredential } from "../vendors/hosts.ts"
import { type ResponseFormat, readImageAsk } from "../vendors/image/ask.ts"
import type { AttemptTerms, WholeAnswer } from "./answer.ts"

/** How soon a job is asked after: quickly at first, then less and less often. */
const polling = { firstMs: 400, growth: 1.4, mostMs: 3000 } as const

/** A poll that is not answered by then is asked again. */
const pollMs = 10_000

/** How often a result is fetched whose address cannot be reached, and the pause in between: it is paid for already. */
const fetching = { tries: 3, pauseMs: 400 } as const

/** The largest picture fetched for a caller who wants base64. */
const mostImageBytes = 32 * mebibyte

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
  const send = vendorLine({
    headers: headersFor(route, terms),
    carries: (address) => mayCarryCredential(address, upstream.baseUrl, vendor.hosts),
    allowPrivate: terms.allowPrivateAddresses,
  })
  const submit = await send(vendor.submit(ask, context), signal)
  terms.credential.report(submit.reply.status)
  if (submit.reply.status >= 400) return refused(submit, terms)
  if (submit.reply.status >= 300) return failure("redirect", `the upstream redirects (${submit.reply.status})`)
  const submitted = vendor.readSubmit(submit.reply)
  if (submitted.kind === "unreadable") return failure("bad_answer", submitted.why)
  if (submitted.kind !== "accepted") return verdict(submitted, ask.responseFormat, terms, signal)
  const { ref } = submitted
  try {
    return await verdict(await untilVerdict(ref, { vendor, context, send }, signal), ask.responseFormat, terms, signal)
  } catch (error) {
    // The caller left or the time is over: what the vendor has not made yet it need not make.
    const cancel = vendor.cancel?.(ref, context)
    if (signal.aborted && cancel !== undefined) send(cancel, AbortSignal.timeout(cancelMs)).catch(() => {})
    throw error
  }
}

/** What it takes to ask after a job. */
interface Job {
  readonly vendor: ImageVendor
  readonly context: VendorContext
  readonly send: VendorLine
}

type Verdict = Extract<ImageProgress, { kind: "succeeded" | "failed" }>

/** Trouble while asking is not a verdict; only the request's own deadline ends it. */
async function untilVerdict(ref: JsonValue, job: Job, signal: AbortSignal): Promise<Verdict> {
  let current = ref
  let pauseMs: number = polling.firstMs
  for (;;) {
    await pause(pauseMs, signal)
    signal.throwIfAborted()
    const progress = await look(current, job, signal)
    if (progress.kind === "succeeded" || progress.kind === "failed") return progress
    if (progress.kind === "continue") {
      current = progress.ref
      pauseMs = 0
    } else {
      pauseMs = Math.min(polling.mostMs, Math.max(polling.firstMs, pauseMs * polling.growth))
    }
  }
}

async function look(ref: JsonValue, { vendor, context, send }: Job, signal: AbortSignal): Promise<ImageProgress> {
  const call = vendor.poll(ref, context)
  try {
    return vendor.readPoll((await send(call, AbortSignal.any([signal, AbortSignal.timeout(pollMs)]))).reply, ref)
  } catch (error) {
    if (signal.aborted) throw error
    const why = error instanceof Error ? error.message : String(error)
    return error instanceof Forbidden ? { kind: "failed", reason: why } : { kind: "unreadable", why }
  }
}

async function verdict(
  found: Verdict,
  format: ResponseFormat,
  terms: AttemptTerms,
  signal: AbortSignal,
): Promise<WholeAnswer | Failure> {
  if (found.kind === "failed") {
    const { secret } = terms.credential
    const reason = secret === null ? found.reason : found.reason.replaceAll(secret, "***")
    return { ...failure("job_failed", reason), error: jobError(reason) }
  }
  try {
    const data = await Promise.all(found.images.map((image) => present(image, format, terms, signal)))
    const body = utf8(JSON.stringify({ created: Math.floor(Date.now() / 1000), data }))
    const headers = { "content-type": "application/json" }
    const reading = { measured: { images: data.length }, invalid: false }
    return { kind: "whole", status: 200, headers, body, reading, produced: () => "" }
  } catch (error) {
    if (signal.aborted) throw error
    // Never a reason to have the same images made and paid for again.
    const why = error instanceof Forbidden ? error.message : "its address cannot be reached"
    const detail = error instanceof Error ? error.message : String(error)
    return { ...failure("job_failed", detail), error: jobError(`its result cannot be fetched: ${why}`) }
  }
}

async function present(image: ImageResult, format: ResponseFormat, terms: AttemptTerms, signal: AbortSignal) {
  if ("base64" in image)
    return format === "b64_json" ? { b64_json: image.base64 } : { url: `data:image/png;base64,${image.base64}` }
  if (format === "url") return { url: image.url }
  const { bytes, type } = await fetchResult(image.url, terms, signal)
  if (!type.startsWith("image/") && type !== "application/octet-stream")
    throw new Forbidden(`the result is no image but ${JSON.stringify(type.slice(0, 60))}`)
  return { b64_json: Buffer.from(bytes).toString("base64") }
}

async function fetchResult(address: string, terms: AttemptTerms, signal: AbortSignal): Promise<Downloaded> {
  for (let tried = 1; ; tried++) {
    try {
      return await download(address, mostImageBytes, terms.allowPrivateAddresses, signal)
    } catch (error) {
      if (error instanceof Forbidden || tried === fetching.tries) throw error
      await pause(fetching.pauseMs, signal)
      signal.throwIfAborted()
    }
  }
}

function headersFor(route: Route, { clientHeaders: caller, carriage, credential }: AttemptTerms) {
  return upstreamHeaders(caller, route.upstream, carriage.endpoint, credential.secret, "application/json")
}

function refused(submit: VendorReply, { credential }: AttemptTerms): Failure {
  const { status, text } = submit.reply
  const body = credential.secret === null ? submit.bytes : blankOut(submit.bytes, credential.secret, "***")
  return {
    ...failure("status", `${status} ${text}`),
    answer: { status, headers: blankHeaders(clientHeaders(submit.headers), credential.secret), body },
  }
}

/** Asking again would only pay again for the same verdict, so clients are told not to. */
function jobError(reason: string): GatewayError {
  return new GatewayError("upstream_error", `the image could not be made: ${reason}`, {
    headers: { "x-should-retry": "false" },
  })
}
