import { producedBy } from "../../billing/produced.ts"
import type { Bridge } from "../../bridge/translator.ts"
import type { Endpoint } from "../../core/endpoints.ts"
import type { JsonObject } from "../../core/json.ts"
import { parseObject } from "../../core/json.ts"
import { tokenReading } from "../../core/measured.ts"
import type { TokenUsage, UsageReading } from "../../core/usage.ts"
import { textOf, utf8 } from "../../lib/bytes.ts"
import type { CallCarriage } from "../protocol.ts"
import { BridgeTap, type ErrorFrame } from "../taps/bridge.ts"

type ReadUsage = (usage: unknown) => UsageReading
type ErrorBody = (status: number, body: unknown, requestId: string) => JsonObject

/** A carriage that translates: the caller's dialect on this side, the upstream's on the other. */
export function overBridge(
  endpoint: Endpoint,
  bridge: Bridge,
  parts: {
    readUsage: ReadUsage
    errorFrame: ErrorFrame
    errorBody?: ErrorBody
    present?: Presentation
    ping?: Uint8Array
  },
): CallCarriage {
  const { readUsage, errorFrame, errorBody, present = asJson, ping } = parts
  return {
    kind: "call",
    endpoint,
    contentType: "application/json",
    body: (ask, route, { streamOptions }) =>
      utf8(
        JSON.stringify(
          bridge.request(ask.json(), {
            upstreamModel: route.upstreamModel,
            stream: ask.stream,
            streamOptions,
            settings: route.upstream.settings,
          }),
        ),
      ),
    tap: (ask) => new BridgeTap(bridge.stream(ask.json()), errorFrame, ping),
    answer: {
      kind: "whole",
      fields: [],
      read(body, _shape, ask) {
        const answered = parseObject(textOf(body))
        if (answered === null) return { problem: "the answer is not a JSON object" }
        if (answered.error !== undefined && answered.error !== null)
          return { problem: "the answer is an error under status 200" }
        const usage = readUsage(answered.usage)
        const told = (counted: TokenUsage | null) =>
          present(bridge.answer(answered as JsonObject, ask.json(), counted), ask.stream)
        return {
          ...told(null),
          ...(usage === null || usage === "invalid" ? { counted: (tokens: TokenUsage) => told(tokens).body } : {}),
          reading: tokenReading(usage),
          produced: () => producedBy(endpoint, answered as JsonObject),
        }
      },
    },
    ...(errorBody === undefined
      ? {}
      : { errorBody: (status, body, id) => utf8(JSON.stringify(errorBody(status, parsedOrText(body), id))) }),
  }
}

/** Proxies before an upstream refuse in plain words; those are worth telling too. */
function parsedOrText(body: Uint8Array): unknown {
  const text = textOf(body)
  return parseObject(text) ?? text
}

/** How a whole answer is written for the caller, who may have asked for a stream. */
export type Presentation = (
  answer: JsonObject,
  stream: boolean,
) => { readonly body: Uint8Array; readonly contentType: string }

export const asJson: Presentation = (answer) => ({
  body: utf8(JSON.stringify(answer)),
  contentType: "application/json",
})
