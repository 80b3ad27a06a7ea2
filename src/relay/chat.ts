import { readChatUsage } from "../core/usage.ts"
import { textOf, utf8 } from "../lib/bytes.ts"
import { type Field, scanJson } from "../lib/json-bytes.ts"
import { ChatTap } from "./chat-tap.ts"
import type { Ask, Edit, Protocol } from "./protocol.ts"

const mebibyte = 1024 * 1024

/** `POST /v1/chat/completions`. */
export const chat: Protocol = {
  endpoint: "chat",
  bodyLimit: 100 * mebibyte,
  requestFields: ["stream_options"],
  edits: (ask, _route, options) => (ask.stream && options.streamOptions ? askForUsage(ask) : []),
  tap: () => new ChatTap(),
  answerFields: ["usage", "error", "choices"],
  answerProblem(shape) {
    if (shape.root !== "object") return "the answer is not a JSON object"
    const error = shape.fields.get("error")
    return error !== undefined && error.kind !== "null" && !shape.fields.has("choices")
      ? "the answer is an error under status 200"
      : null
  },
  answerUsage(body, shape) {
    const field = shape.fields.get("usage")
    return field === undefined
      ? null
      : readChatUsage(JSON.parse(textOf(body.subarray(field.value.start, field.value.end))))
  },
}

/** The smallest change that makes `stream_options.include_usage` true, whatever the caller wrote there. */
function askForUsage(ask: Ask): readonly Edit[] {
  const options = ask.shape.fields.get("stream_options")
  if (options === undefined) return [insertBefore(ask.modelField.key.start, '"stream_options":{"include_usage":true},')]
  if (options.kind === "null") return [{ at: options.value, put: utf8('{"include_usage":true}') }]
  // Anything else that is no object is the caller's mistake, and the upstream's to name.
  if (options.kind !== "object") return []
  return includeUsage(ask.bytes, options)
}

function includeUsage(bytes: Uint8Array, options: Field): readonly Edit[] {
  const { start, end } = options.value
  const inner = bytes.subarray(start, end)
  const shape = scanJson(inner, ["include_usage"])
  const given = shape.fields.get("include_usage")
  if (given !== undefined && shape.duplicates.length === 0) {
    if (given.kind === "true") return []
    return [{ at: { start: start + given.value.start, end: start + given.value.end }, put: utf8("true") }]
  }
  // Readers take the last of two equal keys, so ours goes to the end.
  const empty = textOf(inner.subarray(1, -1)).trim() === ""
  return [insertBefore(end - 1, empty ? '"include_usage":true' : ',"include_usage":true')]
}

function insertBefore(at: number, text: string): Edit {
  return { at: { start: at, end: at }, put: utf8(text) }
}
