import { countTokens } from "gpt-tokenizer/encoding/o200k_base"
import { isObject } from "../core/json.ts"

declare const self: Worker

/** What a chat message adds to the prompt besides its text, and what the answer's opening adds. */
const tokensPerMessage = 3
const tokensOfOpening = 3

/** Text like `<|endoftext|>` in a prompt is counted as ordinary text, never as the special token. */
const asPlainText = { disallowedSpecial: new Set<string>() }

self.onmessage = (event: MessageEvent<{ id: number; requestBody: Uint8Array; produced: string }>) => {
  const { id, requestBody, produced } = event.data
  self.postMessage({ id, input: countPrompt(requestBody), output: countTokens(produced, asPlainText) })
}

function countPrompt(requestBody: Uint8Array): number {
  const request: unknown = JSON.parse(Buffer.from(requestBody).toString("utf8"))
  if (!isObject(request)) return 0
  const messages = Array.isArray(request.messages) ? request.messages : []
  let tokens = tokensOfOpening
  for (const message of messages) {
    tokens += tokensPerMessage
    if (isObject(message)) tokens += countTokens(messageText(message), asPlainText)
  }
  if (Array.isArray(request.tools)) tokens += countTokens(JSON.stringify(request.tools), asPlainText)
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
