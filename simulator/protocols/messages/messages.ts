import type { BehaviourOf } from "../../behaviour.ts"
import { jsonReply, type Reply } from "../../wire/reply.ts"
import { eventStreamReply, pacedJsonReply } from "../event-stream.ts"
import type { Protocol, VendorRequest } from "../protocol.ts"
import { decide, inputTokens, messageBody } from "./answer.ts"
import { anthropicHeaders, messagesError, statusOf, usualErrorType } from "./errors.ts"
import { readMessagesAsk } from "./request.ts"
import { messageEvents, pingEvent } from "./stream.ts"

/** Anthropic messages. */
export const messages: Protocol = {
  method: "POST",
  ending: "/messages",
  answer: (request, step) => messagesReply(request, step.kind === "messages" ? step : { kind: "messages" }),
  refuse: messagesError,
}

export const countTokens: Protocol = {
  method: "POST",
  ending: "/messages/count_tokens",
  answer: countReply,
  refuse: messagesError,
}

function messagesReply(request: VendorRequest, step: BehaviourOf<"messages">): Reply {
  const ask = readMessagesAsk(request.body, false)
  if ("problem" in ask) return messagesError(400, ask.problem)
  const answer = decide(ask, step)
  if (ask.stream && step.ignoresStream !== true) {
    return eventStreamReply(messageEvents(answer, step), step, { headers: anthropicHeaders(), ping: pingEvent })
  }
  if (step.ending === "error") {
    const type = step.error?.code ?? usualErrorType
    return messagesError(statusOf(type), step.error?.message, type)
  }
  return pacedJsonReply(messageBody(answer), step, anthropicHeaders())
}

function countReply(request: VendorRequest): Reply {
  const ask = readMessagesAsk(request.body, true)
  if ("problem" in ask) return messagesError(400, ask.problem)
  return jsonReply(200, { input_tokens: inputTokens(ask) }, anthropicHeaders())
}
