import type { BehaviourOf } from "../../behaviour.ts"
import type { EventData } from "../event-stream.ts"
import { type Answer, itemBody, type ResponseFacts, responseBody } from "./answer.ts"

type Step = BehaviourOf<"responses">

const usualCode = "server_error"
const usualMessage = "The model had an error while it was answering. Please try again."

/** What the error of a step says. */
export function errorOf({ error }: Step): { readonly code: string; readonly message: string } {
  return { code: error?.code ?? usualCode, message: error?.message ?? usualMessage }
}

/** The last event of a stream. */
export function endingEvent(facts: ResponseFacts, answer: Answer, step: Step): EventData {
  if (step.ending === "error") return { type: "error", ...errorOf(step), param: null }
  return { type: `response.${step.ending ?? "completed"}`, response: finalResponse(facts, answer, step) }
}

/** The whole answer as it stands in the end; a failed one has neither output nor, unless told, usage. */
export function finalResponse(facts: ResponseFacts, { items, usage }: Answer, step: Step): object {
  switch (step.ending) {
    case "failed":
      return responseBody(facts, {
        status: "failed",
        error: errorOf(step),
        usage: typeof step.usage === "object" ? step.usage : null,
      })
    case "incomplete":
      return responseBody(facts, {
        status: "incomplete",
        incomplete_details: { reason: step.incompleteReason ?? "max_output_tokens" },
        output: items.map((item, index) => itemBody(item, index === items.length - 1 ? "incomplete" : "completed")),
        usage,
      })
    default:
      return responseBody(facts, {
        status: "completed",
        completed_at: Math.floor(Date.now() / 1000),
        output: items.map((item) => itemBody(item, "completed")),
        usage,
      })
  }
}
