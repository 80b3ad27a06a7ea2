import { producedBy } from "../../billing/produced.ts"
import { messageEvents } from "../../bridge/messages-events.ts"
import { messagesToChat } from "../../bridge/messages-to-chat.ts"
import { chatErrorToMessages } from "../../bridge/messages-to-chat-error.ts"
import type { Route } from "../../core/catalog.ts"
import { type JsonObject, parseObject } from "../../core/json.ts"
import { nothingRead, tokenReading } from "../../core/measured.ts"
import { readMessagesUsage } from "../../core/messages-usage.ts"
import { readChatUsage } from "../../core/usage.ts"
import { mebibyte, textOf, utf8 } from "../../lib/bytes.ts"
import type { CallCarriage, Protocol, WholeReader } from "../protocol.ts"
import { MessagesTap, messagesErrorFrame } from "../taps/messages.ts"
import { asJson, overBridge } from "./bridged.ts"
import { disguisedError, fieldValue, passBody } from "./native.ts"

const native: CallCarriage = {
  kind: "call",
  endpoint: "messages",
  body: passBody,
  tap: () => new MessagesTap(),
  errorBody: inTheDialect,
  answer: {
    kind: "whole",
    fields: ["usage", "error", "content"],
    read(body, shape) {
      const problem = disguisedError(shape, "content")
      if (problem !== null) return { problem }
      const reading = tokenReading(readMessagesUsage(fieldValue(body, shape.fields.get("usage"))))
      return { body, reading, produced: () => producedBy("messages", JSON.parse(textOf(body))) }
    },
  },
}

/** The vendor's own words pass as they are; those of a proxy before it, a web page perhaps, no client could read. */
function inTheDialect(status: number, body: Uint8Array, requestId: string): Uint8Array {
  const text = textOf(body)
  return parseObject(text) === null ? utf8(JSON.stringify(chatErrorToMessages(status, text, requestId).body)) : body
}

/** For an upstream that answers JSON where a stream was asked for. */
const asEvents = (message: JsonObject) => ({
  body: utf8(messageEvents(message)),
  contentType: "text/event-stream; charset=utf-8",
})

/** The vendor of this dialect sends one into its own streams whenever nothing else is to be sent. */
const ping = utf8('event: ping\ndata: {"type":"ping"}\n\n')

const overChat = overBridge("chat", messagesToChat, {
  ping,
  readUsage: readChatUsage,
  errorFrame: messagesErrorFrame,
  errorBody: (status, body, requestId) => chatErrorToMessages(status, body, requestId).body,
  present: (message, stream) => (stream ? asEvents(message) : asJson(message, stream)),
})

const shape = { endpoint: "messages", bodyLimit: 100 * mebibyte, bodies: ["json"], requestFields: [] } as const

function isNative({ upstream }: Route): boolean {
  return upstream.vendor.paths.messages !== undefined
}

/** `POST /compat/v1/messages`. */
export const messages: Protocol = { ...shape, carriage: (route) => (isNative(route) ? native : overChat) }

const countAnswer: WholeReader = {
  kind: "whole",
  fields: ["input_tokens", "error"],
  read(body, found) {
    const problem = disguisedError(found, "input_tokens")
    return problem === null ? { body, reading: nothingRead, produced: () => "" } : { problem }
  },
}

const nativeCount: CallCarriage = { ...native, pathEnd: "/count_tokens", answer: countAnswer }

/** `POST /compat/v1/messages/count_tokens`: asked of an upstream that can count, else counted here. Never charged. */
export const countTokens: Protocol = {
  ...shape,
  waived: true,
  answersHere: (route) => !isNative(route),
  carriage: () => nativeCount,
}
