import { openLink, type RedisLink } from "./redis-link.ts"

export interface KeeperOptions {
  readonly url: string
  readonly patienceMs: number
  /** Attempts to open a link are at least this far apart. */
  readonly retryMs: number
  now(): number
  /** Makes a new link ready for use; nobody else uses it before. */
  prepare(link: RedisLink): Promise<void>
  /** The link is in use from this call on; `attempts` tells how many it took. */
  onOpened(link: RedisLink, attempts: number): void
  /** Called at the change only: Redis is out of reach, or back. */
  onAway(away: boolean, why: string): void
}

/** Keeps one link to Redis open, trying again and again in the background while there is none. */
export class LinkKeeper {
  /** Resolved once the first attempt has led to a link or not. */
  readonly ready: Promise<void>
  readonly #options: KeeperOptions
  #link: RedisLink | undefined
  #away = false
  #closed = false
  #attempts = 0
  #attemptedAt = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(options: KeeperOptions) {
    this.#options = options
    this.ready = this.#attempt()
  }

  /** None while Redis is away. */
  get link(): RedisLink | undefined {
    return this.#link
  }

  get away(): boolean {
    return this.#away
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#link?.close()
    this.#link = undefined
  }

  async #attempt(): Promise<void> {
    this.#attempts++
    this.#attemptedAt = this.#options.now()
    try {
      this.#use(await this.#open())
    } catch (error) {
      this.#goAway(error)
    }
  }

  async #open(): Promise<RedisLink> {
    const { url, patienceMs, prepare } = this.#options
    const link: RedisLink = await openLink({
      url,
      patienceMs,
      onLost: (error) => {
        // One that was lost while it was being prepared has told so by failing a call.
        if (this.#link === link) this.#goAway(error)
      },
    })
    try {
      await prepare(link)
    } catch (error) {
      link.close()
      throw error
    }
    return link
  }

  #use(link: RedisLink): void {
    if (this.#closed) {
      link.close()
      return
    }
    if (link.isOver) throw new Error("the connection to Redis was lost while it was being made ready")
    this.#link = link
    const attempts = this.#attempts
    this.#attempts = 0
    this.#options.onOpened(link, attempts)
    if (this.#away && this.#link === link) {
      this.#away = false
      this.#options.onAway(false, "Redis answers again")
    }
  }

  #goAway(error: unknown): void {
    this.#link = undefined
    if (this.#closed) return
    const { now, retryMs, onAway } = this.#options
    // A link that had lasted is replaced at once; one that fails as soon as it is open is not asked for in a loop.
    const wait = Math.max(0, this.#attemptedAt + retryMs - now())
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#attempt(), wait)
    if (this.#away) return
    this.#away = true
    onAway(true, error instanceof Error ? error.message : String(error))
  }
}
