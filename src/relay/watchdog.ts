export type StreamTimeout = "stream_silence_timeout" | "stream_total_timeout"

/**
 * Watches one running stream with one timer: nothing is set or cleared per chunk, only a time is noted.
 * Silence counts only while the gateway waits for the upstream; a caller that reads slowly is not upstream silence.
 */
export class Watchdog {
  readonly #silenceMs: number
  readonly #deadline: number
  readonly #onTimeout: (code: StreamTimeout) => void
  #timer: Timer | null = null
  #lastProgress: number
  #restingSince: number | null = null

  constructor(silenceMs: number, deadline: number, onTimeout: (code: StreamTimeout) => void) {
    this.#silenceMs = silenceMs
    this.#deadline = deadline
    this.#onTimeout = onTimeout
    this.#lastProgress = performance.now()
    this.#arm()
  }

  /** The gateway asks the upstream for more. */
  waiting(): void {
    const now = performance.now()
    // Time in which nobody asked is added to the allowance, so only waiting is ever counted.
    if (this.#restingSince !== null) this.#lastProgress += now - this.#restingSince
    this.#restingSince = null
  }

  /** Bytes were handed to the caller; the upstream is not being asked until `waiting` is called. */
  resting(progressed: boolean): void {
    const now = performance.now()
    if (progressed) this.#lastProgress = now
    this.#restingSince = now
  }

  /** The upstream sent something worth the name while still being asked for more. */
  progressed(): void {
    this.#lastProgress = performance.now()
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }

  #arm(): void {
    const now = performance.now()
    const silenceLeft = this.#restingSince === null ? this.#lastProgress + this.#silenceMs - now : this.#silenceMs
    const totalLeft = this.#deadline - now
    this.#timer = setTimeout(() => this.#look(), Math.max(1, Math.min(silenceLeft, totalLeft)))
  }

  #look(): void {
    this.#timer = null
    const now = performance.now()
    const silent = this.#restingSince === null && now >= this.#lastProgress + this.#silenceMs
    if (now >= this.#deadline) this.#onTimeout("stream_total_timeout")
    else if (silent) this.#onTimeout("stream_silence_timeout")
    else this.#arm()
  }
}
