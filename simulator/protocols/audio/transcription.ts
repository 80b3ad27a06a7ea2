import type { BehaviourOf } from "../../behaviour.ts"
import { type Reply, wholeReply } from "../../wire/reply.ts"
import { dataEvent, eventStreamReply, pacedJsonReply, pacedWhole, type StreamEvent } from "../event-stream.ts"
import { missing, type Unacceptable } from "../json-body.ts"
import { spoken } from "../model-voice.ts"
import { readForm } from "../multipart.ts"
import { openaiHeaders } from "../openai-headers.ts"
import type { Protocol, VendorRequest } from "../protocol.ts"
import { errorBody, errorReply } from "../vendor-errors.ts"
import { secondsOf } from "./sound.ts"
import { type Heard, textFormats, usageOf, verbose } from "./transcript.ts"

type Step = BehaviourOf<"transcription">

/** OpenAI transcriptions and translations: a form with a file comes in, the words in it go out. */
export const transcriptions = transcriptionProtocol("/audio/transcriptions", "transcribe")
export const translations = transcriptionProtocol("/audio/translations", "translate")

function transcriptionProtocol(ending: string, task: Heard["task"]): Protocol {
  return {
    method: "POST",
    ending,
    answer: (request, step) =>
      transcriptionReply(request, task, step.kind === "transcription" ? step : { kind: "transcription" }),
  }
}

interface TranscriptionAsk {
  readonly heard: Heard
  readonly format: string
  readonly stream: boolean
}

function transcriptionReply(request: VendorRequest, task: Heard["task"], step: Step): Reply {
  const ask = readAsk(request, task, step)
  if ("problem" in ask) return errorReply(400, { message: ask.problem, param: ask.param })
  const { heard, format } = ask
  if (ask.stream && step.ignoresStream !== true) {
    return eventStreamReply(transcriptEvents(heard, step), step, { headers: openaiHeaders() })
  }
  if (step.ending === "error") return errorReply(500, step.error)
  const asText = textFormats[format]
  if (asText !== undefined) {
    const headers = [["content-type", "text/plain; charset=utf-8"], ...openaiHeaders()] as const
    return pacedWhole(wholeReply(200, asText(heard), headers), step)
  }
  const usage = usageOf(heard, step.usage)
  const body = format === "verbose_json" ? { ...verbose(heard), usage } : { text: heard.text, usage }
  return pacedJsonReply(body, step, openaiHeaders())
}

function readAsk(request: VendorRequest, task: Heard["task"], step: Step): TranscriptionAsk | Unacceptable {
  const form = readForm(request.headers, request.body)
  if ("problem" in form) return { problem: form.problem, param: null }
  const model = form.fields.get("model")
  const file = form.files.find(({ name }) => name === "file")
  if (model === undefined || model === "") return missing("model")
  if (file === undefined) return missing("file")
  const usual = `This is what ${model} hears in ${file.fileName}, ${file.bytes.length} bytes long.`
  return {
    heard: {
      task,
      model,
      text: step.text ?? usual,
      seconds: step.seconds ?? secondsOf(file.bytes),
      language: step.language ?? form.fields.get("language") ?? "english",
    },
    format: form.fields.get("response_format") ?? "json",
    // The vendor ignores the wish for a stream where the model cannot, and does not translate in streams.
    stream: form.fields.get("stream") === "true" && task === "transcribe" && !model.startsWith("whisper"),
  }
}

function* transcriptEvents(heard: Heard, step: Step): Generator<StreamEvent> {
  for (const [index, delta] of spoken(heard.text, step.chunks).entries()) {
    yield { text: dataEvent({ type: "transcript.text.delta", delta }), content: index === 0 }
  }
  if (step.ending === "error") yield { text: dataEvent({ type: "error", ...errorBody(500, step.error) }) }
  else if (step.ending !== "none") {
    yield { text: dataEvent({ type: "transcript.text.done", text: heard.text, usage: usageOf(heard, step.usage) }) }
  }
}
