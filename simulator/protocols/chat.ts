import type { BehaviourOf } from "../behaviour.ts"
import { healthy } from "../behaviour.ts"
import { jsonReply, type Reply } from "../wire/reply.ts"
import type { HeaderPair } from "../wire/request-parser.ts"
import { completion, decide, facts } from "./chat-answer.ts"
import { type ChatAsk, readChatAsk } from "./chat-request.ts"
import { chatPieces, eventStreamHeaders } from "./chat-stream.ts"
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
  return ask.stream ? streamed(ask, step) : whole(ask, step)
}

function streamed(ask: ChatAsk, step: BehaviourOf<"chat">): Reply {
  return {
    status: 200,
    headers: [...eventStreamHeaders, ...vendorHeaders()],
    framing: "chunked",
    pieces: chatPieces(facts(ask, step), decide(ask, step), step),
    ...delay(step.headDelayMs ?? 0),
  }
}

/** Not streamed, the first token comes with all the others: both delays are before the head. */
function whole(ask: ChatAsk, step: BehaviourOf<"chat">): Reply {
  const answer = decide(ask, step)
  const usage = step.usage === "none" ? undefined : answer.usage
  const reply = jsonReply(200, completion(facts(ask, step), { ...answer, usage }), vendorHeaders())
  return { ...reply, ...delay((step.headDelayMs ?? 0) + (step.firstTokenDelayMs ?? 0)) }
}

function delay(ms: number): { headDelayMs?: number } {
  return ms === 0 ? {} : { headDelayMs: ms }
}

/** Headers the real vendor sends and a gateway must pick from. */
function vendorHeaders(): HeaderPair[] {
  return [
    ["x-request-id", `req_${Bun.randomUUIDv7("hex").replaceAll("-", "")}`],
    ["openai-organization", "simulated"],
    ["openai-version", "2020-10-01"],
  ]
}

/** The refusal of a vendor that does not know `stream_options`, or null if the request has none. */
export function echoStreamOptionsError(request: VendorRequest): Reply | null {
  const ask = readChatAsk(request.body)
  if ("problem" in ask || !ask.hasStreamOptions) return null
  return errorReply(400, { message: "unknown parameter: stream_options", param: "stream_options" })
}
