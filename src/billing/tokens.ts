import type { Endpoint } from "../core/endpoints.ts"
import type { Tokenizer } from "../core/tokenizer.ts"
import type { TokenUsage } from "../core/usage.ts"
import { mebibyte } from "../lib/bytes.ts"
import { isExecutable } from "../lib/executable.ts"
import { Pieces } from "../lib/pieces.ts"
import { roughPromptTokens, roughTokens } from "./rough-tokens.ts"
import type { CountReply, CountTask } from "./tokens-worker.ts"

/** A request and what came of it, to be counted where the upstream does not say. */
export interface CountAsk {
  /** In whose dialect the request is. */
  readonly endpoint: Endpoint
  /** As the caller wrote it; empty for a form. */
  readonly requestBody: Uint8Array | Pieces
  readonly produced: string
  readonly tokenizer: Tokenizer
}

/** Counts tokens where an upstream reports none; off the main thread, because a long text takes long. */
export interface TokenCounter {
  count(ask: CountAsk): Promise<TokenUsage>
  close(): void
}

/** How long a count may take before a rough one stands in for it. */
const mostCountMs = 5000

/** What is larger is counted roughly: handing it to the worker would copy it, and what is in it are pictures and files. */
const mostBytes = 8 * mebibyte

interface Waiting {
  readonly ask: CountAsk
  settle(usage: TokenUsage): void
}

const workerAddress = isExecutable
  ? "./src/billing/tokens-worker.ts"
  : new URL("./tokens-worker.ts", import.meta.url).href

/** A counter whose worker starts with the first text to count: the tokenizer's tables take 100 MB. */
export function workerTokenCounter(address = workerAddress, patienceMs = mostCountMs): TokenCounter {
  /** In the order in which they came. */
  const waiting = new Map<number, Waiting>()
  let worker: Worker | null = null
  /** The text that the worker has. Only one at a time: those that wait too long are then neither copied nor counted. */
  let running: { readonly id: number; readonly timer: Timer } | null = null
  let last = 0
  return {
    count(ask) {
      const id = ++last
      return new Promise((resolve) => {
        const timer = setTimeout(() => answer(id, null), patienceMs)
        waiting.set(id, {
          ask,
          settle(usage) {
            clearTimeout(timer)
            resolve(usage)
          },
        })
        if (running === null) runNext()
      })
    },
    close() {
      endWorker()
      for (const id of waiting.keys()) answer(id, null)
    },
  }

  function runNext(): void {
    const [next] = waiting
    if (next === undefined) return
    const [id, { ask }] = next
    // Not so soon that a long text, which others only wait for, costs the worker its tables.
    running = { id, timer: setTimeout(replaceWorker, 2 * patienceMs) }
    worker ??= startWorker()
    const task = taskFor(id, ask)
    worker.postMessage(task, task.requestBody === null ? [] : [task.requestBody.buffer])
  }

  function answer(id: number, reply: CountReply | null): void {
    const asked = waiting.get(id)
    waiting.delete(id)
    asked?.settle(usageOf(asked.ask, reply))
  }

  function finishRunning(reply: CountReply | null): void {
    if (running === null) return
    clearTimeout(running.timer)
    answer(running.id, reply)
    running = null
  }

  function endWorker(): void {
    worker?.terminate()
    worker = null
    finishRunning(null)
  }

  /** A worker that fails or falls silent takes with it only the text it had. */
  function replaceWorker(): void {
    endWorker()
    runNext()
  }

  function startWorker(): Worker {
    const started = new Worker(address)
    started.onmessage = ({ data }: MessageEvent<CountReply>) => {
      if (worker !== started) return
      finishRunning(data)
      runNext()
    }
    started.onerror = () => {
      if (worker === started) replaceWorker()
    }
    started.unref()
    return started
  }
}

/** The body is copied once, and the copy handed over: the caller's own may still be on its way to an upstream. */
function taskFor(id: number, { endpoint, requestBody, produced, tokenizer }: CountAsk): CountTask {
  return {
    id,
    endpoint,
    requestBody: copyOf(requestBody),
    produced: Buffer.byteLength(produced) > mostBytes ? null : produced,
    tokenizer,
  }
}

function usageOf({ requestBody, produced }: CountAsk, reply: CountReply | null): TokenUsage {
  return {
    input: reply?.input ?? roughPrompt(requestBody),
    cachedInput: 0,
    cacheWrite: 0,
    audioInput: 0,
    output: reply?.output ?? roughTokens(produced),
    reasoning: 0,
    audioOutput: 0,
  }
}

/** The worker's own copy; null where that would be too much. */
function copyOf(body: Uint8Array | Pieces): Uint8Array<ArrayBuffer> | null {
  const size = body instanceof Pieces ? body.size : body.length
  return size > mostBytes ? null : new Uint8Array(body instanceof Pieces ? body.whole() : body)
}

/** Piece by piece, because a body that is counted roughly is a large one, and joining it would take its size again. */
function roughPrompt(body: Uint8Array | Pieces): number {
  if (!(body instanceof Pieces)) return roughPromptTokens(body)
  return body.spliced([]).reduce((sum, piece) => sum + roughPromptTokens(piece), 0)
}
