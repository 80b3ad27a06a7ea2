import type { TokenUsage } from "../core/usage.ts"

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

/** A counter whose worker starts with the first text to count: the tokenizer's tables take 100 MB. */
export function workerTokenCounter(): TokenCounter {
  const waiting = new Map<number, (usage: TokenUsage) => void>()
  let worker: Worker | null = null
  let last = 0
  return {
    count(requestBody, produced) {
      const id = ++last
      return new Promise((resolve) => {
        const timer = setTimeout(() => settle(id, roughUsage(requestBody, produced)), mostCountMs)
        waiting.set(id, (usage) => {
          clearTimeout(timer)
          resolve(usage)
        })
        worker ??= startWorker()
        worker.postMessage({ id, requestBody, produced })
      })
    },
    close() {
      worker?.terminate()
      worker = null
    },
  }

  function settle(id: number, usage: TokenUsage): void {
    const resolve = waiting.get(id)
    waiting.delete(id)
    resolve?.(usage)
  }

  function startWorker(): Worker {
    const started = new Worker(new URL("./tokens-worker.ts", import.meta.url).href)
    started.onmessage = (event: MessageEvent<Reply>) =>
      settle(event.data.id, tokenUsage(event.data.input, event.data.output))
    started.unref()
    return started
  }
}

function roughUsage(requestBody: Uint8Array, produced: string): TokenUsage {
  return tokenUsage(Math.ceil(requestBody.length / 4), Math.ceil(Buffer.byteLength(produced) / 4))
}

function tokenUsage(input: number, output: number): TokenUsage {
  return { input, cachedInput: 0, cacheWrite: 0, output, reasoning: 0 }
}
