import type { VideoJob } from "../../memory.ts"
import { mp4 } from "../../mp4.ts"
import { type Reply, wholeReply } from "../../wire/reply.ts"
import { type HeaderPair, valuesOf } from "../../wire/request-parser.ts"
import { credentialsOf } from "../credentials.ts"
import { homeOf } from "../links.ts"
import { type Protocol, pathOf, type VendorRequest } from "../protocol.ts"
import { queryOf } from "./fields.ts"
import { finishedAt, secondsOf } from "./job.ts"

const path = /\/cdn\/(\w+)\.mp4$/

/** Where vendors put films: no credential is asked for, the address itself is the secret. */
export const videoFiles: readonly Protocol[] = (["GET", "HEAD"] as const).map((method) => ({
  method,
  ending: path,
  open: true,
  answer: (request) => (method === "HEAD" ? { ...fileReply(request), pieces: [] } : fileReply(request)),
  instead: (request) => jobOf(request)?.plan.file?.fault,
}))

/** The address of a job's result; `fresh` where the vendor makes a new one out each time it is asked. */
export function resultUrl(request: VendorRequest, job: VideoJob, fresh = false): string {
  const { file, resultLivesMs } = job.plan
  const address = `${homeOf(request, file?.host)}/cdn/${job.file}.mp4`
  if (resultLivesMs === undefined) return address
  return `${address}?Expires=${(fresh ? Date.now() : finishedAt(job)) + resultLivesMs}`
}

/** A picture's address, where a vendor tells one beside the film's; nothing is there. */
export function coverUrl(request: VendorRequest, job: VideoJob): string {
  return `${homeOf(request)}/cdn/${job.file}.png`
}

/** Size of a job's result. */
export function resultBytes(job: VideoJob): number {
  return filmOf(job).length
}

function filmOf(job: VideoJob): ReturnType<typeof mp4> {
  const { moov, resultBytes: bytes } = job.plan
  return mp4({
    seconds: secondsOf(job),
    ...(moov === undefined ? {} : { moov }),
    ...(bytes === undefined ? {} : { bytes }),
  })
}

function jobOf(request: VendorRequest): VideoJob | undefined {
  return request.memory.videoFiles.get(path.exec(pathOf(request))?.[1] ?? "")
}

function fileReply(request: VendorRequest): Reply {
  const job = jobOf(request)
  if (job === undefined) return refusal(404, "NoSuchKey", "The specified key does not exist.")
  const query = queryOf(request)
  if (Number(query.get("Expires") ?? Number.POSITIVE_INFINITY) <= Date.now()) {
    return refusal(403, "AccessDenied", "Request has expired.")
  }
  const { file = {} } = job.plan
  if (file.needsKey === true && credentialsOf(request.headers).length === 0) {
    return refusal(403, "AccessDenied", "Access denied.")
  }
  if (file.redirectTo !== undefined) return redirect(file.redirectTo)
  const hops = Number(query.get("hop") ?? 0)
  if (hops < (file.redirects ?? 0)) {
    query.set("hop", String(hops + 1))
    return redirect(`${homeOf(request)}${pathOf(request)}?${query}`)
  }
  return filmReply(request, job)
}

/** A job's film, or the part of it that is asked for. */
export function filmReply(request: VendorRequest, job: VideoJob): Reply {
  const film = filmOf(job)
  const tag = `"${job.file}"`
  const headers: HeaderPair[] = [
    ["content-type", job.plan.file?.contentType ?? "video/mp4"],
    ["accept-ranges", "bytes"],
    ["etag", tag],
    ["last-modified", new Date(finishedAt(job)).toUTCString()],
  ]
  if (valuesOf(request.headers, "if-none-match").includes(tag)) return wholeReply(304, "", headers)
  const range = wantedRange(request, tag, film.length)
  if (range === "unsatisfiable") return wholeReply(416, "", [...headers, ["content-range", `bytes */${film.length}`]])
  const { start, end } = range ?? { start: 0, end: film.length }
  return {
    status: range === null ? 200 : 206,
    headers: range === null ? headers : [...headers, ["content-range", `bytes ${start}-${end - 1}/${film.length}`]],
    framing: "content-length",
    length: end - start,
    pieces: film.pieces(start, end),
  }
}

/** The one range that is asked for; null for the whole, as where several are asked for or the file is another by now. */
function wantedRange(
  { headers }: VendorRequest,
  tag: string,
  length: number,
): { readonly start: number; readonly end: number } | "unsatisfiable" | null {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(valuesOf(headers, "range")[0] ?? "") ?? []
  const known = valuesOf(headers, "if-range")[0] ?? tag
  if ((first === "" && last === "") || known !== tag) return null
  const start = first === "" ? Math.max(0, length - Number(last)) : Number(first)
  const end = first === "" || last === "" ? length : Math.min(length, Number(last) + 1)
  return start < end ? { start, end } : "unsatisfiable"
}

export function redirect(location: string): Reply {
  return wholeReply(302, "", [["location", location]])
}

function refusal(status: number, code: string, message: string): Reply {
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${message}</Message></Error>`
  return wholeReply(status, body, [["content-type", "application/xml"]])
}
