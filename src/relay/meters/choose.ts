import type { Endpoint } from "../../core/endpoints.ts"
import type { Meter } from "../meter.ts"
import { imagesMeter, pictureMeter } from "./images.ts"
import { plainTranscriptMeter, transcriptMeter } from "./transcript.ts"

/** The meter for an answer that is no event stream; null where it says nothing to charge by, as sound does. */
export function meterFor(endpoint: Endpoint, contentType: string): Meter | null {
  switch (endpoint) {
    case "image_generations":
    case "image_edits":
    case "image_variations":
      return /^\s*image\//i.test(contentType) ? pictureMeter() : imagesMeter()
    case "transcriptions":
    case "translations":
      return isJson(contentType) ? transcriptMeter() : plainTranscriptMeter()
    default:
      return null
  }
}

function isJson(contentType: string): boolean {
  return /^\s*application\/([\w.-]+\+)?json\s*(;|$)/i.test(contentType)
}
