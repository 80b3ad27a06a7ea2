import { countTokens } from "gpt-tokenizer/encoding/o200k_base"
import { isObject } from "../core/json.ts"

declare const self: Worker

/** What a chat message adds to the prompt besides its text, and what the answer's opening adds. */
const tokensPerMessage = 3
const tokensOfOpening = 3

/** Text like `<|endoftext|>` in a prompt is counted as ordinary text, never as the special token. */
const asPlainText = { disallowedSpecial: new Set<string>() }

/** The tokenizer's time grows with the square of a run without gaps, so text is cut: at a gap, or else at this length. */
const pieces = /[\s\S]{1,2000}(?=\s|$)|[\s\S]{1,2000}/gu

self.onmessage = (event: MessageEvent<{ id: number; requestBody: Uint8Array; produced: string }>) => {
  const { id, requestBody, produced } = event.data
  self.postMessage({ id, input: countPrompt(requestBody), output: countText(produced) })
}

function countText(text: string): number {
  let tokens = 0
  for (const [piece] of text.matchAll(pieces)) tokens += countTokens(piece, asPlainText)
  return tokens
}

function countPrompt(requestBody: Uint8Array): number {
  const text = Buffer.from(requestBody).toString("utf8")
  const request = parse(text)
  if (!isObject(request)) return countText(text)
  const messages = Array.isArray(request.messages) ? request.messages : []
  let tokens = tokensOfOpening
  for (const message of messages) {
    tokens += tokensPerMessage
    if (isObject(message)) tokens += countText(messageText(message))
  }
  if (Array.isArray(request.tools)) tokens += countText(JSON.stringify(request.tools))
  return tokens
}

/** The text of a message: its role, its content or the text parts of it, and the tool calls it repeats. */
function messageText(message: Record<string, unknown>): string {
  const pieces = [typeof message.role === "string" ? message.role : ""]
  if (typeof message.content === "string") pieces.push(message.content)
  if (Array.isArray(message.content)) {
    for (const part of message.content) if (isObject(part) && typeof part.text === "string") pieces.push(part.text)
  }
  if (Array.isArray(message.tool_calls)) pieces.push(JSON.stringify(message.tool_calls))
  return pieces.join("\n")
}

/** An error here would end the worker and leave every other caller waiting for it. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
