import type { TokenUsage } from "../core/usage.ts"
import { isExecutable } from "../lib/executable.ts"

/** Counts tokens where an upstream reports none; off the main thread, because a long text takes long. */
export interface TokenCounter {
  count(requestBody: Uint8Array, produced: string): Promise<TokenUsage>
  close(): void
}

/** How long a count may take before the rough rule of four bytes a token stands in for it. */
const mostCountMs = 5000

interface Reply {
  readonly id: number
  readonly input: number
  readonly output: number
}

interface Waiting {
  settle(usage: TokenUsage): void
  /** For when the worker does not answer. */
  readonly rough: TokenUsage
}

/** A counter whose worker starts with the first text to count: the tokenizer's tables take 100 MB. */
export function workerTokenCounter(): TokenCounter {
  const waiting = new Map<number, Waiting>()
  let worker: Worker | null = null
  let last = 0
  return {
    count(requestBody, produced) {
      const id = ++last
      return new Promise((resolve) => {
        const rough = roughUsage(requestBody, produced)
        const timer = setTimeout(() => answer(id, rough), mostCountMs)
        waiting.set(id, {
          rough,
          settle(usage) {
            clearTimeout(timer)
            resolve(usage)
          },
        })
        worker ??= startWorker()
        worker.postMessage({ id, requestBody, produced })
      })
    },
    close: giveUp,
  }

  /** Ends the worker; whoever waits for it gets the rough count, and the next text a new worker. */
  function giveUp(): void {
    worker?.terminate()
    worker = null
    for (const [id, { rough }] of waiting) answer(id, rough)
  }

  function answer(id: number, usage: TokenUsage): void {
    const asked = waiting.get(id)
    waiting.delete(id)
    asked?.settle(usage)
  }

  function startWorker(): Worker {
    const started = new Worker(workerAddress)
    started.onmessage = ({ data }: MessageEvent<Reply>) => answer(data.id, tokenUsage(data.input, data.output))
    // A worker that fails takes every text it had with it.
    started.onerror = () => {
      if (worker === started) giveUp()
    }
    started.unref()
    return started
  }
}

const workerAddress = isExecutable
  ? "./src/billing/tokens-worker.ts"
  : new URL("./tokens-worker.ts", import.meta.url).href

function roughUsage(requestBody: Uint8Array, produced: string): TokenUsage {
  return tokenUsage(Math.ceil(requestBody.length / 4), Math.ceil(Buffer.byteLength(produced) / 4))
}

function tokenUsage(input: number, output: number): TokenUsage {
  return { input, cachedInput: 0, cacheWrite: 0, output, reasoning: 0 }
}
