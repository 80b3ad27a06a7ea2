import type { BehaviourOf } from "../../behaviour.ts"
import type { Reply } from "../../wire/reply.ts"
import { eventStreamReply, pacedJsonReply } from "../event-stream.ts"
import { openaiHeaders } from "../openai-headers.ts"
import type { Protocol, VendorRequest } from "../protocol.ts"
import { errorReply } from "../vendor-errors.ts"
import { decide, factsOf } from "./answer.ts"
import { errorOf, finalResponse } from "./ending.ts"
import { readResponsesAsk } from "./request.ts"
import { responseEvents } from "./stream.ts"

/** OpenAI responses. */
export const responses: Protocol = {
  method: "POST",
  ending: "/responses",
  answer: (request, step) => responsesReply(request, step.kind === "responses" ? step : { kind: "responses" }),
}

function responsesReply(request: VendorRequest, step: BehaviourOf<"responses">): Reply {
  const ask = readResponsesAsk(request.body)
  if ("problem" in ask) return errorReply(400, { message: ask.problem, param: ask.param })
  const [facts, answer] = [factsOf(ask, step), decide(ask, step)]
  if (ask.stream && step.ignoresStream !== true) {
    return eventStreamReply(responseEvents(facts, answer, step), step, { headers: openaiHeaders() })
  }
  if (step.ending === "error") return errorReply(500, errorOf(step))
  return pacedJsonReply(finalResponse(facts, answer, step), step, openaiHeaders())
}
