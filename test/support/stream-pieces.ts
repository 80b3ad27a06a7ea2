/** Pieces of a chat stream as a vendor writes them. */

export const facts = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1794700000, model: "up" }
export const reported = { prompt_tokens: 17, completion_tokens: 9, total_tokens: 26 }
export const read = { input: 17, cachedInput: 0, cacheWrite: 0, audioInput: 0, output: 9, reasoning: 0, audioOutput: 0 }
export const done = "data: [DONE]\n\n"

export function event(chunk: object): string {
  return `data: ${JSON.stringify(chunk)}\n\n`
}

export function delta(content: object, more: object = {}, index = 0): string {
  return event({ ...facts, choices: [{ index, delta: content, finish_reason: null }], ...more })
}

export function finish(more: object = {}, index = 0): string {
  return event({ ...facts, choices: [{ index, delta: {}, finish_reason: "stop" }], ...more })
}

export function usageChunk(usage: unknown, more: object = {}): string {
  return event({ ...facts, choices: [], usage, ...more })
}

export const role = delta({ role: "assistant", content: "" })
export const hello = delta({ content: "Hello" })
export const world = delta({ content: " world" })
