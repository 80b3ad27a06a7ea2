import type { Endpoint } from "../core/endpoints.ts"
import { parseObject } from "../core/json.ts"
import type { Tokenizer } from "../core/tokenizer.ts"
import { textOf } from "../lib/bytes.ts"
import { type Prompt, promptOf } from "./prompt.ts"

declare const self: Worker

/** A text to count; null where it is too long to be handed over. */
export interface CountTask {
  readonly id: number
  readonly endpoint: Endpoint
  readonly requestBody: Uint8Array<ArrayBuffer> | null
  readonly produced: string | null
  readonly tokenizer: Tokenizer
}

/** Tokens on each side; null where they were not counted. */
export interface CountReply {
  readonly id: number
  readonly input: number | null
  readonly output: number | null
}

type CountPiece = (text: string, options: typeof asPlainText) => number

/** Text like `<|endoftext|>` in a prompt is counted as ordinary text, never as the special token. */
const asPlainText = { disallowedSpecial: new Set<string>() }

/** The tokenizer's time grows with the square of a run without gaps, so text is cut: at a gap, or else at this length. */
const pieces = /[\s\S]{1,2000}(?=\s|$)|[\s\S]{1,2000}/gu

/** Counting more than this, in UTF-16 units, would let others wait for seconds: the rest counts in proportion. */
const mostCounted = 1_000_000

/** A vocabulary takes tens of megabytes, so each waits for the first text that needs it. */
const vocabularies: Readonly<Record<Tokenizer, () => Promise<CountPiece>>> = {
  o200k_base: async () => (await import("gpt-tokenizer/encoding/o200k_base")).countTokens,
  cl100k_base: async () => (await import("gpt-tokenizer/encoding/cl100k_base")).countTokens,
}

self.onmessage = async ({ data }: MessageEvent<CountTask>) => {
  self.postMessage(await reply(data))
}

async function reply({ id, endpoint, requestBody, produced, tokenizer }: CountTask): Promise<CountReply> {
  try {
    const countPiece = await vocabularies[tokenizer]()
    const input = requestBody === null ? null : countPrompt(readPrompt(endpoint, requestBody), countPiece)
    return { id, input, output: produced === null ? null : countTexts([produced], countPiece) }
  } catch {
    // An error would end the worker, and with it what others wait for.
    return { id, input: null, output: null }
  }
}

function readPrompt(endpoint: Endpoint, requestBody: Uint8Array): Prompt {
  const text = textOf(requestBody)
  const request = parseObject(text)
  return request === null ? { texts: [text], extra: 0 } : promptOf(endpoint, request)
}

function countPrompt({ texts, extra }: Prompt, countPiece: CountPiece): number {
  return extra + countTexts(texts, countPiece)
}

function countTexts(texts: readonly string[], countPiece: CountPiece): number {
  let tokens = 0
  let counted = 0
  let uncounted = 0
  for (const text of texts) {
    for (const [piece] of text.matchAll(pieces)) {
      if (counted >= mostCounted) {
        uncounted += piece.length
        continue
      }
      tokens += countPiece(piece, asPlainText)
      counted += piece.length
    }
  }
  return uncounted === 0 ? tokens : Math.round((tokens * (counted + uncounted)) / counted)
}
