import type { ImageJob } from "../../memory.ts"
import { inspectionWords } from "./dashscope-errors.ts"
import { isOver, type Stage, wordFor } from "./job.ts"

const words: Readonly<Record<Stage, string>> = {
  queued: "PENDING",
  running: "RUNNING",
  succeeded: "SUCCEEDED",
  partial: "SUCCEEDED",
  failed: "FAILED",
  moderated: "FAILED",
  expired: "UNKNOWN",
  cancelled: "CANCELED",
}

/** A task as a poll sees it. */
export function taskBody(job: ImageJob, stage: Stage): object {
  const head = { task_id: job.id, task_status: wordFor(job, stage, words) }
  if (stage === "expired") return { output: head }
  const times = { submit_time: timeText(job.createdAt), scheduled_time: timeText(job.createdAt) }
  if (!isOver(stage)) return { output: { ...head, ...times } }
  const output = { ...head, ...times, end_time: timeText(new Date()) }
  if (stage === "succeeded" || stage === "partial") {
    return { output: { ...output, ...resultsOf(job) }, usage: usageOf(job) }
  }
  const code = stage === "moderated" ? "DataInspectionFailed" : "InternalError.Algo"
  const message = job.plan.message ?? (stage === "moderated" ? inspectionWords : "The task failed.")
  return { output: { ...output, code, message } }
}

/** `2026-01-01 10:00:00.000` */
function timeText(time: Date): string {
  return time.toISOString().replace("T", " ").replace("Z", "")
}

function resultsOf(job: ImageJob): object {
  if (job.ask.asked.messages === true) return withMessages(job)
  const made = job.results.map((url) => ({ orig_prompt: job.ask.prompt, actual_prompt: job.ask.prompt, url }))
  const failed = Array.from({ length: failedIn(job) }, () => ({
    code: "InternalError.Timeout",
    message: job.plan.message ?? "An internal timeout error has occurred during execution.",
  }))
  const metrics = { TOTAL: made.length + failed.length, SUCCEEDED: made.length, FAILED: failed.length }
  return { results: [...made, ...failed], task_metrics: metrics }
}

/** How the newer models answer: each picture is a choice. */
export function withMessages(job: ImageJob): object {
  const choices = job.results.map((image) => ({
    finish_reason: "stop",
    message: { role: "assistant", content: [{ type: "image", image }] },
  }))
  return { choices, finished: true }
}

export function usageOf(job: ImageJob): object {
  return { image_count: job.results.length }
}

function failedIn({ plan }: ImageJob): number {
  return plan.outcome === "partial" ? 1 : 0
}
