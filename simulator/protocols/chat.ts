import type { BehaviourOf } from "../behaviour.ts"
import { healthy } from "../behaviour.ts"
import type { Reply } from "../wire/reply.ts"
import { completion, decide, facts } from "./chat-answer.ts"
import { type ChatAsk, readChatAsk } from "./chat-request.ts"
import { chatEvents } from "./chat-stream.ts"
import { eventStreamReply, pacedJsonReply } from "./event-stream.ts"
import { openaiHeaders } from "./openai-headers.ts"
import type { Protocol, VendorRequest } from "./protocol.ts"
import { errorReply } from "./vendor-errors.ts"

/** OpenAI chat completions. */
export const chat: Protocol = {
  method: "POST",
  ending: "/chat/completions",
  answer: (request, step) => chatReply(request, step.kind === "chat" ? step : healthy),
}

function chatReply(request: VendorRequest, step: BehaviourOf<"chat">): Reply {
  const ask = readChatAsk(request.body)
  if ("problem" in ask) return errorReply(400, { message: ask.problem, param: ask.param })
  return ask.stream && step.ignoresStream !== true ? streamed(ask, step) : whole(ask, step)
}

function streamed(ask: ChatAsk, step: BehaviourOf<"chat">): Reply {
  return eventStreamReply(chatEvents(facts(ask, step), decide(ask, step), step), step, { headers: openaiHeaders() })
}

function whole(ask: ChatAsk, step: BehaviourOf<"chat">): Reply {
  const answer = decide(ask, step)
  const usage = step.usage === "none" ? undefined : answer.usage
  return pacedJsonReply(completion(facts(ask, step), { ...answer, usage }), step, openaiHeaders())
}

/** The refusal of a vendor that does not know `stream_options`, or null if the request has none. */
export function echoStreamOptionsError(request: VendorRequest): Reply | null {
  const ask = readChatAsk(request.body)
  if ("problem" in ask || !ask.hasStreamOptions) return null
  return errorReply(400, { message: "unknown parameter: stream_options", param: "stream_options" })
}
