/** What goes over the wire, the same for every target: two requests, the two right answers, byte for byte. */

export const CHUNKS_PER_STREAM = 250
const REQUEST_BYTES = 1024
const ANSWER_BYTES = 1536
const CREATED = 1_760_000_000
const UPSTREAM_MODEL = "bench-upstream-model"

export const ANSWER_MODEL = "bench-answer"
export const STREAM_MODEL = "bench-stream"
/** Long enough to be accepted as an API key; every target gets it, so that all read the same number of bytes. */
export const BENCH_KEY = "sk-tg-bench-0123456789abcdefghijklmnopqrstuvwxyz"

const usage = { prompt_tokens: 180, completion_tokens: 240, total_tokens: 420 }

/** Letters and spaces only: the text passes through nginx's config, where `$`, `'` and `\` have meanings. */
function filler(length: number): string {
  return "the quick brown fox jumps over the lazy dog and counts tokens "
    .repeat(Math.ceil(length / 62))
    .slice(0, length)
}

function padded(build: (text: string) => unknown, bytes: number): string {
  const bare = JSON.stringify(build("")).length
  return JSON.stringify(build(filler(bytes - bare)))
}

export const answerJson = padded(
  (content) => ({
    id: "chatcmpl-bench",
    object: "chat.completion",
    created: CREATED,
    model: UPSTREAM_MODEL,
    choices: [{ index: 0, message: { role: "assistant", content }, logprobs: null, finish_reason: "stop" }],
    usage,
  }),
  ANSWER_BYTES,
)

function event(choices: readonly unknown[], more: object = {}): string {
  const head = { id: "chatcmpl-bench", object: "chat.completion.chunk", created: CREATED, model: UPSTREAM_MODEL }
  return `data: ${JSON.stringify({ ...head, system_fingerprint: "fp_0123456789", choices, ...more })}\n\n`
}

function choice(delta: object, finish_reason: string | null): object {
  return { index: 0, delta, logprobs: null, finish_reason }
}

/** One entry is one network chunk of the upstream: role, contents, finish, usage, [DONE]. */
export const streamEvents: readonly string[] = [
  event([choice({ role: "assistant", content: "" }, null)]),
  ...Array.from({ length: CHUNKS_PER_STREAM - 4 }, () => event([choice({ content: " token" }, null)])),
  event([choice({}, "stop")]),
  event([], { usage }),
  "data: [DONE]\n\n",
]

/** The request as it stands on the wire; `path` differs, because a plain proxy chooses its upstream by path alone. */
export function requestBytes(path: string, model: string, stream: boolean): Uint8Array {
  const streaming = stream ? { stream: true, stream_options: { include_usage: true } } : {}
  const body = padded((content) => ({ model, ...streaming, messages: [{ role: "user", content }] }), REQUEST_BYTES)
  const head = [
    `POST ${path} HTTP/1.1`,
    "host: 127.0.0.1",
    `authorization: Bearer ${BENCH_KEY}`,
    "content-type: application/json",
    `accept: ${stream ? "text/event-stream" : "application/json"}`,
    "user-agent: tollgate-bench",
    `content-length: ${body.length}`,
  ]
  return Buffer.from(`${head.join("\r\n")}\r\n\r\n${body}`)
}
