import type { VideoJob } from "../core/video-job.ts"
import type { ContentLinks } from "./links.ts"

/** A job as callers see it: what is always there, and what its state adds. */
export function jobView(job: VideoJob, baseUrl: string, links: ContentLinks): Record<string, unknown> {
  const always = {
    id: job.id,
    object: "video.generation.job",
    status: job.state === "submitting" ? "queued" : job.state,
    model: job.model,
    created_at: Math.floor(job.createdAt / 1000),
  }
  if (job.state === "failed") return { ...always, error: { message: job.error ?? "the video could not be made" } }
  if (job.state !== "completed") return always
  return { ...always, video_url: addressOf(job, baseUrl, links), seconds: (job.microseconds ?? 0) / 1_000_000 }
}

/** The vendor's own address where it opens for anyone; a copy, or one that needs a credential, is reached through us. */
function addressOf(job: VideoJob, baseUrl: string, links: ContentLinks): string {
  const isOpen = !job.resultKept && !job.resultNeedsCredential && job.resultUrl !== null
  return isOpen ? job.resultUrl! : links.make(baseUrl, job.id)
}
