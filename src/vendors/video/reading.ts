import type { JsonValue } from "../../core/json.ts"
import type { Reply } from "../../core/vendor-job.ts"
import type { VideoProgress, VideoSubmitted } from "../../core/video-vendor.ts"
import { at, errorText, reasonText, unreadable } from "../reply.ts"

/** The longest video anyone makes; a longer one is a mistake in the reply. */
const mostSeconds = 86_400

/** A vendor's number of seconds, which may come as text; null for anything that is no length. */
export function secondsAt(value: JsonValue | undefined, ...path: readonly string[]): number | null {
  const found = at(value, ...path)
  const seconds = typeof found === "string" && /^\d+(\.\d+)?$/.test(found.trim()) ? Number(found) : found
  return typeof seconds === "number" && seconds > 0 && seconds <= mostSeconds ? seconds : null
}

/** A submit that the vendor turned down by its HTTP status. */
export function refusedBy(reply: Reply, message: string | null = null): VideoSubmitted {
  const text = message ?? errorText(reply.json) ?? reasonText(reply.text)
  return { kind: "refused", status: reply.status, message: text === "" ? `HTTP ${reply.status}` : text }
}

/** The verdict of a job that its vendor calls done. */
export function finished(url: string | null, seconds: number | null): VideoProgress {
  if (url !== null) return { kind: "succeeded", url, seconds }
  return { kind: "failed", reason: "the vendor finished the job without a video" }
}

/** A reply to a poll that says nothing about the job, or that there is no such job. */
export function noVerdict(reply: Reply): VideoProgress {
  const { why } = unreadable(reply)
  return reply.status === 404 ? { kind: "missing", why } : { kind: "unreadable", why }
}

/** Compares status words as vendors mean them: case and surrounding space do not matter. */
export function wordOf(value: JsonValue | undefined): string | null {
  return typeof value === "string" && value.trim() !== "" ? value.trim().toLowerCase() : null
}
