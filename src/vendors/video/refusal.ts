import type { Reply } from "../../core/vendor-job.ts"
import type { VideoSubmitted } from "../../core/video-vendor.ts"
import { unreadable } from "../reply.ts"
import { refusedBy } from "./reading.ts"

/** An error in the vendor's own words; `status` where it amounts to another one than the reply has. */
export interface VendorError {
  readonly status?: number | undefined
  readonly message: string
}

/**
 * A submit that brought no job. Only the vendor's own word makes it a refusal, since a proxy's error does not tell whether the
 * vendor has the job; nor does a time-out, whoever speaks of it.
 */
export function notAccepted(reply: Reply, error: VendorError | null): VideoSubmitted {
  const status = error?.status ?? reply.status
  const isLate = status === 504 || reply.status === 504
  const certain = status >= 400 && (status < 500 || (error !== null && !isLate))
  return certain ? refusedBy({ ...reply, status }, error?.message) : unreadable(reply)
}
