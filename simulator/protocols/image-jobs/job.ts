import type { Behaviour, BehaviourOf, Fault } from "../../behaviour.ts"
import { type ImageJob, type JobAsk, remember } from "../../memory.ts"
import { keepFile } from "../files.ts"
import { picture } from "../pictures.ts"
import type { VendorRequest } from "../protocol.ts"

/** A job takes this many polls unless told otherwise, so that both waiting states are seen. */
const usualWaitPolls = 2

export type Step = BehaviourOf<"image_job">

/** How a job ended. */
export type Ending = Exclude<NonNullable<Step["outcome"]>, "stuck"> | "cancelled"
export type Stage = "queued" | "running" | Ending

export function stepFor(step: Behaviour): Step {
  return step.kind === "image_job" ? step : { kind: "image_job" }
}

/** Begins a job as the step plans it. */
export function beginJob(request: VendorRequest, id: string, ask: JobAsk, plan: Step): ImageJob {
  const made = (plan.images ?? ask.images) - (plan.outcome === "partial" ? 1 : 0)
  const job: ImageJob = {
    id,
    plan,
    ask,
    createdAt: new Date(),
    results: Array.from({ length: Math.max(0, made) }, (_, number) =>
      plan.results === "data" ? dataUrl(number) : keepFile(request, number, plan.file),
    ),
    faults: [...(plan.polls ?? [])],
    polls: 0,
    cancelled: false,
    finished: false,
  }
  remember(request.memory.jobs, id, job)
  return job
}

export function dataUrl(number: number): string {
  return `data:image/png;base64,${picture(number).toString("base64")}`
}

/** Looks at a job as a poll does, which moves it on. */
export function pollJob(job: ImageJob): Stage {
  job.polls++
  return stageOf(job)
}

/** Where a job stands. */
export function stageOf(job: ImageJob): Stage {
  if (job.cancelled) return "cancelled"
  const { outcome = "succeeded", waitMs, waitPolls = waitMs === undefined ? usualWaitPolls : 0 } = job.plan
  const isDue = job.polls > waitPolls && Date.now() - job.createdAt.getTime() >= (waitMs ?? 0)
  if (outcome !== "stuck" && (job.finished || isDue)) return outcome
  return job.polls <= 1 ? "queued" : "running"
}

export function isOver(stage: Stage): stage is Ending {
  return stage !== "queued" && stage !== "running"
}

/** The vendor's word for a stage, unless the plan has another. */
export function wordFor(job: ImageJob, stage: Stage, words: Readonly<Record<Stage, string>>): string {
  return (isOver(stage) ? job.plan.finalWord : job.plan.waitingWord) ?? words[stage]
}

/** The fault that stands in the place of a poll's answer, if the job has any left. */
export function pollFault(request: VendorRequest, id: string): Fault | undefined {
  return request.memory.jobs.get(id)?.faults.shift()
}
