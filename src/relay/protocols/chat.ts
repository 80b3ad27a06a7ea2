import type { Ask } from "../../admission/ask.ts"
import { producedBy } from "../../billing/produced.ts"
import { chatToMessages } from "../../bridge/chat-to-messages.ts"
import { messagesErrorToChat } from "../../bridge/chat-to-messages-error.ts"
import type { Route } from "../../core/catalog.ts"
import { tokenReading } from "../../core/measured.ts"
import { readMessagesUsage } from "../../core/messages-usage.ts"
import { readChatUsage } from "../../core/usage.ts"
import { mebibyte, textOf, utf8 } from "../../lib/bytes.ts"
import { type Edit, type Field, scanJson } from "../../lib/json-bytes.ts"
import type { CallCarriage, Protocol } from "../protocol.ts"
import { ChatTap, chatErrorFrame } from "../taps/chat.ts"
import { overBridge } from "./bridged.ts"
import { disguisedError, fieldValue, spliced } from "./native.ts"

const native: CallCarriage = {
  kind: "call",
  endpoint: "chat",
  body: (ask, route, { streamOptions }) => spliced(ask, route, ask.stream && streamOptions ? askForUsage(ask) : []),
  tap: () => new ChatTap(),
  answer: {
    kind: "whole",
    fields: ["usage", "error", "choices"],
    read(body, shape) {
      const problem = disguisedError(shape, "choices")
      if (problem !== null) return { problem }
      const reading = tokenReading(readChatUsage(fieldValue(body, shape.fields.get("usage"))))
      return { body, reading, produced: () => producedBy("chat", JSON.parse(textOf(body))) }
    },
  },
}

const overMessages = overBridge("messages", chatToMessages, {
  readUsage: readMessagesUsage,
  errorFrame: chatErrorFrame,
  errorBody: (status, body) => messagesErrorToChat(status, body).body,
})

/** `POST /v1/chat/completions`. */
export const chat: Protocol = {
  endpoint: "chat",
  bodyLimit: 100 * mebibyte,
  bodies: ["json"],
  requestFields: ["stream_options"],
  carriage: (route: Route) => (route.upstream.vendor.paths.chat === undefined ? overMessages : native),
}

/** The smallest change that makes `stream_options.include_usage` true, whatever the caller wrote there. */
function askForUsage(ask: Ask): readonly Edit[] {
  const options = ask.shape!.fields.get("stream_options")
  if (options === undefined)
    return [insertBefore(ask.shape!.fields.get("model")!.key.start, '"stream_options":{"include_usage":true},')]
  if (options.kind === "null") return [{ at: options.value, put: utf8('{"include_usage":true}') }]
  // Anything else that is no object is the caller's mistake, and the upstream's to name.
  if (options.kind !== "object") return []
  return includeUsage(ask.body.part(options.value), options)
}

function includeUsage(inner: Uint8Array, options: Field): readonly Edit[] {
  const { start, end } = options.value
  const shape = scanJson(inner, ["include_usage"])
  const given = shape.fields.get("include_usage")
  if (given !== undefined && shape.duplicates.length === 0) {
    if (given.kind === "true") return []
    return [{ at: { start: start + given.value.start, end: start + given.value.end }, put: utf8("true") }]
  }
  // Readers take the last of two equal keys, so ours goes to the end.
  const empty = textOf(inner.subarray(1, -1)).trim() === ""
  return [insertBefore(end - 1, empty ? '"include_usage":true' : ',"include_usage":true')]
}

function insertBefore(at: number, text: string): Edit {
  return { at: { start: at, end: at }, put: utf8(text) }
}
