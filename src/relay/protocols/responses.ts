import type { Ask } from "../../admission/ask.ts"
import { producedBy } from "../../billing/produced.ts"
import { responseEvents } from "../../bridge/responses-events.ts"
import { responsesToChat } from "../../bridge/responses-to-chat.ts"
import { type JsonObject, parseObject } from "../../core/json.ts"
import { tokenReading } from "../../core/measured.ts"
import { readResponsesUsage } from "../../core/responses-usage.ts"
import { readChatUsage } from "../../core/usage.ts"
import { mebibyte, textOf, utf8 } from "../../lib/bytes.ts"
import type { Edit } from "../../lib/json-bytes.ts"
import type { CallCarriage, Protocol } from "../protocol.ts"
import { ResponsesTap, responsesErrorFrame } from "../taps/responses.ts"
import { overBridge } from "./bridged.ts"
import { spliced } from "./native.ts"

const eventStream = "text/event-stream; charset=utf-8"

/** The answer is a stream always, so a whole one is told as the events it would have been. */
const asEvents = (response: JsonObject) => ({ body: utf8(responseEvents(response)), contentType: eventStream })

const native: CallCarriage = {
  kind: "call",
  endpoint: "responses",
  body: (ask, route) => spliced(ask, route, askForStream(ask)),
  tap: () => new ResponsesTap(),
  answer: {
    kind: "whole",
    fields: [],
    read(body) {
      const response = parseObject(textOf(body))
      if (response === null || !Array.isArray(response.output)) return { problem: "the answer is no response object" }
      return {
        ...asEvents(response as JsonObject),
        reading: tokenReading(readResponsesUsage(response.usage)),
        produced: () => producedBy("responses", response as JsonObject),
      }
    },
  },
}

const overChat = overBridge("chat", responsesToChat, {
  readUsage: readChatUsage,
  errorFrame: (error, requestId, _dialect, sequence) => responsesErrorFrame(error, requestId, sequence),
  present: asEvents,
})

/** `POST /v1/responses`: always server-sent events. */
export const responses: Protocol = {
  endpoint: "responses",
  bodyLimit: 100 * mebibyte,
  bodies: ["json"],
  requestFields: [],
  alwaysStreams: true,
  carriage: ({ upstream }) => (upstream.vendor.paths.responses === undefined ? overChat : native),
}

/** The smallest change that makes `stream` true. */
function askForStream(ask: Ask): readonly Edit[] {
  const given = ask.shape?.fields.get("stream")
  if (given?.kind === "true") return []
  if (given !== undefined) return [{ at: given.value, put: utf8("true") }]
  const at = ask.shape!.fields.get("model")!.key.start
  return [{ at: { start: at, end: at }, put: utf8('"stream":true,') }]
}
