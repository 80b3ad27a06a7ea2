import { isObject } from "../../../src/core/json.ts"
import type { BehaviourOf } from "../../behaviour.ts"
import { blockBytes, blocksIn, repeated } from "../../bulk.ts"
import type { Piece, Reply } from "../../wire/reply.ts"
import { dataEvent, eventStreamReply, firstOf, headDelay, type StreamEvent } from "../event-stream.ts"
import { missing, noModel, notJson, readJson, type Unacceptable } from "../json-body.ts"
import { tokens } from "../model-voice.ts"
import { openaiHeaders } from "../openai-headers.ts"
import type { Protocol, VendorRequest } from "../protocol.ts"
import { errorBody, errorReply } from "../vendor-errors.ts"
import { contentTypes, soundOf } from "./sound.ts"

const usualPieces = 8
const usualGapMs = 5
const charactersPerSecond = 15
const maxUsualSeconds = 10
const audioTokensPerSecond = 20

type Step = BehaviourOf<"speech">

/** OpenAI speech: the sound itself, or events that carry it. */
export const speech: Protocol = {
  method: "POST",
  ending: "/audio/speech",
  answer: (request, step) => speechReply(request, step.kind === "speech" ? step : { kind: "speech" }),
}

interface SpeechAsk {
  readonly input: string
  readonly format: string
  readonly events: boolean
}

function speechReply(request: VendorRequest, step: Step): Reply {
  const ask = readSpeechAsk(request.body)
  if ("problem" in ask) return errorReply(400, { message: ask.problem, param: ask.param })
  if (ask.events && step.ignoresStream !== true) {
    return eventStreamReply(speechEvents(ask, step), step, { headers: openaiHeaders() })
  }
  if (step.ending === "error") return errorReply(500, step.error)
  const type = step.contentType ?? contentTypes[ask.format] ?? "application/octet-stream"
  const { cut } = step
  return {
    status: 200,
    headers: [["content-type", type], ...openaiHeaders()],
    framing: "chunked",
    pieces: cut === undefined ? soundPieces(ask, step) : firstOf(soundPieces(ask, step), cut.afterEvents),
    ...(cut === undefined ? {} : { end: cut.how }),
    ...headDelay((step.headDelayMs ?? 0) + (step.firstTokenDelayMs ?? 0)),
  }
}

function readSpeechAsk(bytes: Uint8Array): SpeechAsk | Unacceptable {
  const body = readJson(bytes)
  if (!isObject(body)) return notJson
  if (typeof body.model !== "string" || body.model === "") return noModel
  if (typeof body.input !== "string") return missing("input")
  if (body.voice === undefined) return missing("voice")
  const format = typeof body.response_format === "string" ? body.response_format : "mp3"
  if (contentTypes[format] === undefined) {
    const known = Object.keys(contentTypes).join(", ")
    return { problem: `Invalid value: '${format}'. Supported values are: ${known}.`, param: "response_format" }
  }
  return { input: body.input, format, events: body.stream_format === "sse" }
}

function secondsFor(ask: SpeechAsk, step: Step): number {
  return step.seconds ?? Math.min(maxUsualSeconds, Math.max(1, ask.input.length / charactersPerSecond))
}

function* soundPieces(ask: SpeechAsk, step: Step): Generator<Piece> {
  if (step.megabytes !== undefined) return yield* repeated(Buffer.alloc(blockBytes), blocksIn(step.megabytes))
  const afterMs = step.gapMs ?? usualGapMs
  for (const [index, bytes] of parts(soundOf(ask.format, secondsFor(ask, step)), step.chunks).entries()) {
    yield index === 0 ? { bytes } : { bytes, afterMs }
  }
}

function parts(sound: Buffer, chunks = usualPieces): Buffer[] {
  const size = Math.ceil(sound.length / Math.min(chunks, sound.length))
  return Array.from({ length: Math.ceil(sound.length / size) }, (_, index) =>
    sound.subarray(index * size, (index + 1) * size),
  )
}

function* speechEvents(ask: SpeechAsk, step: Step): Generator<StreamEvent> {
  const sound = soundOf(ask.format, secondsFor(ask, step))
  for (const [index, part] of parts(sound, step.chunks).entries()) {
    yield { text: dataEvent({ type: "speech.audio.delta", audio: part.toString("base64") }), content: index === 0 }
  }
  if (step.ending === "error") yield { text: dataEvent({ type: "error", ...errorBody(500, step.error) }) }
  else if (step.ending !== "none") yield { text: dataEvent({ type: "speech.audio.done", usage: usageOf(ask, step) }) }
}

function usageOf(ask: SpeechAsk, step: Step): object | undefined {
  if (step.usage !== undefined) return step.usage === "none" ? undefined : step.usage
  const [input, output] = [tokens(ask.input.length), Math.ceil(secondsFor(ask, step) * audioTokensPerSecond)]
  return { input_tokens: input, output_tokens: output, total_tokens: input + output }
}
