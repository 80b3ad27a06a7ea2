import type { Call } from "../admission/call.ts"
import { GatewayError } from "../core/errors.ts"
import { isOver, type VideoJob } from "../core/video-job.ts"
import { findJob, findSignedJob, hideJob, listJobs } from "../store/job-lists.ts"
import { refreshResult } from "../store/jobs.ts"
import { contentResponse } from "./content.ts"
import { lookAt } from "./look.ts"
import { mayFetchPrivate, type VideoParts } from "./parts.ts"
import { submitVideo } from "./submit.ts"
import { sideOf } from "./vendor-side.ts"
import { jobView } from "./view.ts"

type View = Record<string, unknown>

/** How long telling a vendor to stop may take; nobody waits for it. */
const cancelMs = 10_000

const looksLikeId = /^[0-9a-f-]{36}$/

/** What callers can do with video jobs. Jobs of others are as unknown as those that never were. */
export interface VideoApi {
  submit(call: Call): Promise<View | Response>
  show(accountId: string, id: string, request: Request): Promise<View>
  list(
    accountId: string,
    page: { readonly limit: number; readonly after: string | null },
    request: Request,
  ): Promise<View>
  /** Takes a job out of the caller's sight, and stops it where the vendor can. What it costs is charged all the same. */
  remove(accountId: string, id: string): Promise<View>
  /** `accountId` is null for whoever brings a signed link. */
  content(accountId: string | null, id: string, request: Request): Promise<Response>
  isSigned(id: string, query: URLSearchParams): boolean
}

export function videoApi(parts: VideoParts): VideoApi {
  const { db } = parts.store
  const view = (job: VideoJob, request: Request): View =>
    jobView(job, parts.publicUrl ?? new URL(request.url).origin, parts.links)

  /** What does not look like an id is not looked up: not every text is one that a database can be asked for. */
  const found = async (accountId: string | null, id: string): Promise<VideoJob | null> => {
    if (!looksLikeId.test(id)) return null
    return accountId === null ? findSignedJob(db, id) : findJob(db, accountId, id)
  }

  async function jobOf(accountId: string | null, id: string): Promise<VideoJob> {
    const job = await found(accountId, id)
    if (job === null) throw unknownJob()
    return job
  }

  return {
    async submit(call) {
      const job = await submitVideo(call, parts)
      return job instanceof Response ? job : view(job, call.request)
    },
    show: async (accountId, id, request) => view(await jobOf(accountId, id), request),
    async list(accountId, { limit, after }, request) {
      const last = after === null ? null : await found(accountId, after)
      if (after !== null && last === null)
        throw new GatewayError("invalid_parameter", "after: must be the id of a job of yours")
      const jobs = await listJobs(db, accountId, last, limit + 1)
      const data = jobs.slice(0, limit).map((job) => view(job, request))
      const ids = data.map(({ id }) => id)
      return {
        object: "list",
        data,
        first_id: ids[0] ?? null,
        last_id: ids.at(-1) ?? null,
        has_more: jobs.length > limit,
      }
    },
    async remove(accountId, id) {
      const job = await jobOf(accountId, id)
      if (!isOver(job.state)) stop(job, parts)
      await hideJob(db, accountId, id)
      // What is left of it then is the operator's to clear away; the caller has done all that callers can.
      if (job.resultKept) await parts.results?.delete(id).catch(() => {})
      return { id, object: "video.generation.job", deleted: true }
    },
    async content(accountId, id, request) {
      const job = await jobOf(accountId, id)
      const { method, headers, signal } = request
      const ask = { method: method === "HEAD" ? "HEAD" : "GET", range: headers.get("range"), signal } as const
      return contentResponse(job, ask, {
        results: parts.results,
        allowPrivateAddresses: mayFetchPrivate(parts),
        credentialFor: (_, url) => sideOf(job, parts)?.credentialFor(url.href) ?? null,
        renew: () => renewed(job, parts),
      })
    },
    isSigned: (id, query) => parts.links.check(id, query),
  }
}

/** One answer for unknown, malformed and other people's ids. */
function unknownJob(): GatewayError {
  return new GatewayError("job_not_found", "there is no such job")
}

/** Asks the vendor to stop; whatever it does, its word on the job comes by polling. */
function stop(job: VideoJob, parts: VideoParts): void {
  const side = job.ref === null ? null : sideOf(job, parts)
  const cancel = side?.vendor.cancel?.(job.ref, side.context)
  if (side === null || cancel === undefined) return
  side.call(cancel, AbortSignal.timeout(cancelMs)).catch(() => {})
}

/** A fresh address of a result whose old one has expired. */
async function renewed(job: VideoJob, parts: VideoParts): Promise<string | null> {
  const sight = await lookAt(job, parts, AbortSignal.timeout(cancelMs))
  if (sight.kind !== "succeeded") return null
  await refreshResult(parts.store.db, job.id, sight.url)
  return sight.url
}
