import type { Behaviour, BehaviourOf, Fault } from "../../behaviour.ts"
import { remember, type VideoAsk, type VideoJob } from "../../memory.ts"
import { jsonReply, type Reply } from "../../wire/reply.ts"
import { credentialsOf } from "../credentials.ts"
import { headDelay } from "../event-stream.ts"
import { plainId } from "../ids.ts"
import type { VendorRequest } from "../protocol.ts"

const usualQueuedMs = 200
const usualRunningMs = 600

export type Plan = BehaviourOf<"video_job">

/** How a job ended. */
export type Ending = NonNullable<Plan["outcome"]>
export type Stage = "queued" | "running" | Ending

/** A vendor's word for each stage; of two stages with one word the first counts when the word is told. */
export type Vocabulary = Readonly<Record<Stage, string>>

/** A job as a poll finds it. */
export interface Look {
  readonly stage: Stage
  /** The vendor's word for it, or the one that was told. */
  readonly word: string
}

/** What a submit asks for, and how the vendor will know it. */
export interface NewVideo {
  readonly speaker: string
  readonly makeId: () => string
  /** Name of the result, where the vendor gives it one. */
  readonly file?: string
  readonly ask: VideoAsk
}

/** Takes a valid submit as the step tells it, and answers as the vendor does to the job it has begun. */
export function submitVideo(
  request: VendorRequest,
  step: Behaviour,
  asked: NewVideo,
  answer: (job: VideoJob) => Reply,
): Reply {
  const plan: Plan = step.kind === "video_job" ? step : { kind: "video_job" }
  const { submit = "accept", headDelayMs = 0 } = plan
  countSubmit(request, asked.ask)
  if (typeof submit === "object") {
    return { ...jsonReply(submit.status, submit.json, Object.entries(submit.headers ?? {})), ...headDelay(headDelayMs) }
  }
  const reply = answer(beginVideo(request, plan, asked))
  // The vendor's own delay, of an answer that is held until the job is over, comes on top.
  const answered = { ...reply, ...headDelay(headDelayMs + (reply.headDelayMs ?? 0)) }
  return submit === "accept" ? answered : { ...answered, unsent: submit === "lost" ? "reset" : "hang" }
}

function countSubmit({ memory }: VendorRequest, { externalId, prompt }: VideoAsk): void {
  const name = externalId ?? prompt
  const before = memory.submits.get(name) ?? 0
  remember(memory.submits, name, before + 1)
}

function beginVideo(
  request: VendorRequest,
  plan: Plan,
  { speaker, makeId, file = plainId(), ask }: NewVideo,
): VideoJob {
  const { videos, videoFiles, videosByCaller } = request.memory
  let id = makeId()
  while (videos.has(id)) id = makeId()
  const job: VideoJob = {
    id,
    speaker,
    key: keyOf(request),
    plan,
    ask,
    createdAt: Date.now(),
    file,
    faults: [...(plan.polls ?? [])],
    polls: 0,
    cancelledAt: null,
  }
  remember(videos, id, job)
  remember(videoFiles, job.file, job)
  if (ask.externalId !== undefined) remember(videosByCaller, callersName(speaker, job.key, ask.externalId), job)
  return job
}

function keyOf(request: VendorRequest): string {
  return credentialsOf(request.headers)[0] ?? ""
}

/** A job that was submitted to this vendor in that protocol, if whoever asks may see it. */
export function findVideo(request: VendorRequest, speaker: string, id: string): VideoJob | undefined {
  const job = request.memory.videos.get(id)
  return job?.speaker === speaker && isVisible(request, job) ? job : undefined
}

/** Every job of that protocol that whoever asks may see, oldest first. */
export function videosOf(request: VendorRequest, speaker: string): VideoJob[] {
  return [...request.memory.videos.values()].filter((job) => job.speaker === speaker && isVisible(request, job))
}

/** The job that the same key has submitted under an id of its own. */
export function findByExternalId(request: VendorRequest, speaker: string, externalId: string): VideoJob | undefined {
  return request.memory.videosByCaller.get(callersName(speaker, keyOf(request), externalId))
}

/** Each account has its own ids. */
function callersName(speaker: string, key: string, externalId: string): string {
  return JSON.stringify([speaker, key, externalId])
}

function isVisible(request: VendorRequest, { plan, key }: VideoJob): boolean {
  return plan.ownerOnly !== true || key === keyOf(request)
}

/** Forgets a job, as after a vendor's own delete. */
export function forgetVideo({ memory }: VendorRequest, { id, file, speaker, key, ask }: VideoJob): void {
  memory.videos.delete(id)
  if (ask.externalId !== undefined) memory.videosByCaller.delete(callersName(speaker, key, ask.externalId))
  memory.videoFiles.delete(file)
}

/** Looks at a job as a poll does, which uses up one of the words that were told. */
export function pollVideo(job: VideoJob, vocabulary: Vocabulary): Look {
  const told = job.plan.words?.[job.polls]
  job.polls++
  return told === undefined ? lookAt(job, vocabulary) : { stage: stageNamed(told, vocabulary), word: told }
}

/** A job without any trace of the looking; `at` is the moment looked at. */
export function lookAt(job: VideoJob, vocabulary: Vocabulary, at?: number): Look {
  const stage = stageOf(job, at)
  return { stage, word: vocabulary[stage] }
}

/** Where a job stands at a moment, now otherwise. */
export function stageOf(job: VideoJob, at: number = Date.now()): Stage {
  if (job.cancelledAt !== null) return "cancelled"
  if (at < startedAt(job)) return "queued"
  return at < finishedAt(job) ? "running" : (job.plan.outcome ?? "success")
}

const stages: readonly Stage[] = [
  "queued",
  "running",
  "success",
  "failure",
  "moderated",
  "expired",
  "cancelled",
  "no_url",
  "odd_status",
]

function stageNamed(word: string, vocabulary: Vocabulary): Stage {
  return stages.find((stage) => vocabulary[stage] === word) ?? "running"
}

export function isOver(stage: Stage): stage is Ending {
  return stage !== "queued" && stage !== "running"
}

export function startedAt({ plan, createdAt }: VideoJob): number {
  return createdAt + (plan.queuedMs ?? usualQueuedMs)
}

export function finishedAt(job: VideoJob): number {
  return job.cancelledAt ?? startedAt(job) + (job.plan.runningMs ?? usualRunningMs)
}

/** How long it was worked on, in seconds; not at all if it was cancelled before. */
export function workSeconds(job: VideoJob): number {
  return Math.max(0, finishedAt(job) - startedAt(job)) / 1000
}

/** When the job last changed, as far as one can tell now. */
export function updatedAt(job: VideoJob, at: number = Date.now()): number {
  const moments = [job.createdAt, startedAt(job), finishedAt(job)]
  return Math.max(...moments.filter((moment) => moment <= at || moment === job.createdAt))
}

/** How much of the work is done, from 0 to 1. */
export function progressOf(job: VideoJob, at: number = Date.now()): number {
  const [start, end] = [startedAt(job), finishedAt(job)]
  return end <= start ? 1 : Math.min(1, Math.max(0, (at - start) / (end - start)))
}

/** The real length of the result. */
export function secondsOf({ plan, ask }: VideoJob): number {
  return plan.seconds ?? ask.seconds
}

/** The fault that stands in the place of a poll's answer, if the job has any left. */
export function videoFault(request: VendorRequest, id: string): Fault | undefined {
  return request.memory.videos.get(id)?.faults.shift()
}
