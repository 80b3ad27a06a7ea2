/** Limits of one request, in milliseconds. */
export interface Timeouts {
  /** A non-streaming request in all. */
  readonly nonStream: number
  /** From asking an upstream to its first token. */
  readonly firstToken: number
  /** Between two signs of progress in a stream. */
  readonly silence: number
  /** A streaming request in all. */
  readonly total: number
}

export const defaultTimeouts: Timeouts = { nonStream: 120_000, firstToken: 60_000, silence: 120_000, total: 1_800_000 }

/** How long a draining instance waits for the requests in flight. */
export const defaultDrainMs = 120_000

/** Timers take signed 32-bit milliseconds; anything longer would fire at once. */
export const longestTimeoutMs = 2 ** 31 - 1
