import type { BehaviourOf } from "../../behaviour.ts"
import { type EventData, namedEvent, type StreamEvent } from "../event-stream.ts"
import { picture } from "../pictures.ts"
import { errorBody } from "../vendor-errors.ts"
import { settings, usageOf } from "./answer.ts"
import type { ImagesAsk, ImageTask } from "./request.ts"

type Step = BehaviourOf<"images">

/** The events of streamed pictures: sketches of each, then the picture itself. */
export function* imageEvents(ask: ImagesAsk, task: ImageTask, step: Step): Generator<StreamEvent> {
  const prefix = task === "edit" ? "image_edit" : "image_generation"
  let isFirst = true
  for (const data of dataOf(ask, prefix, step)) {
    yield { text: namedEvent(data), content: isFirst }
    isFirst = false
  }
}

function* dataOf(ask: ImagesAsk, prefix: string, step: Step): Generator<EventData> {
  const common = { created_at: Math.floor(Date.now() / 1000), ...settings(ask) }
  const ending = step.ending ?? "completed"
  for (let number = 0; number < (step.images ?? ask.count); number++) {
    const b64_json = picture(number).toString("base64")
    for (let sketch = 0; sketch < (step.partialImages ?? ask.partialImages); sketch++) {
      yield { type: `${prefix}.partial_image`, ...common, b64_json, partial_image_index: sketch }
    }
    if (ending === "completed") {
      yield { type: `${prefix}.completed`, ...common, b64_json, usage: usageOf(ask, step, 1) }
    }
  }
  if (ending === "error") yield { type: "error", ...errorBody(500, step.error) }
}
