import type { BehaviourOf } from "../../behaviour.ts"
import { tokens } from "../model-voice.ts"

const audioTokensPerSecond = 10

/** What was heard. */
export interface Heard {
  readonly task: "transcribe" | "translate"
  readonly model: string
  readonly text: string
  readonly seconds: number
  readonly language: string
}

/** The formats that are no JSON. */
export const textFormats: Readonly<Record<string, (heard: Heard) => string>> = {
  text: ({ text }) => `${text}\n`,
  srt: ({ text, seconds }) => `1\n${stamp(0, ",")} --> ${stamp(seconds, ",")}\n${text}\n\n\n`,
  vtt: ({ text, seconds }) => `WEBVTT\n\n${stamp(0, ".")} --> ${stamp(seconds, ".")}\n${text}\n\n`,
}

/** `00:00:01,500`; what stands before the milliseconds differs. */
function stamp(seconds: number, point: string): string {
  const whole = Math.floor(seconds)
  const two = (value: number): string => String(value).padStart(2, "0")
  const clock = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60].map(two).join(":")
  return `${clock}${point}${String(Math.floor((seconds - whole) * 1000)).padStart(3, "0")}`
}

export function verbose({ task, language, seconds, text }: Heard): object {
  const segment = {
    id: 0,
    seek: 0,
    start: 0,
    end: seconds,
    text,
    tokens: [],
    temperature: 0,
    avg_logprob: -0.2,
    compression_ratio: 1.1,
    no_speech_prob: 0.01,
  }
  return { task, language, duration: seconds, text, segments: [segment] }
}

/** Whisper models count seconds, begun ones as whole; all others tokens. */
export function usageOf(heard: Heard, told: BehaviourOf<"transcription">["usage"]): object | undefined {
  if (typeof told === "object") return told
  if (told === "none") return undefined
  const unit = told ?? (heard.model.startsWith("whisper") ? "duration" : "tokens")
  if (unit === "duration") return { type: "duration", seconds: Math.ceil(heard.seconds) }
  const [input, output] = [Math.ceil(heard.seconds * audioTokensPerSecond), tokens(heard.text.length)]
  return {
    type: "tokens",
    input_tokens: input,
    input_token_details: { text_tokens: 0, audio_tokens: input },
    output_tokens: output,
    total_tokens: input + output,
  }
}
