import { ANY_BYTE } from "./answer-reader.ts"
import { CHUNKS_PER_STREAM, STREAM_MODEL } from "./traffic.ts"

/** What goes over the wire to and from callers who speak messages. */

export const MESSAGES_MODEL = "bench-messages"

/** Everything of a stream but its deltas: the message's and the block's start and stop, and the message's delta. */
const OTHER_EVENTS = 5
/** The first chunk of the chat stream is a role, the last three the finish, the usage and the end marker. */
const CHAT_TEXTS = CHUNKS_PER_STREAM - 4
const ID_LENGTH = 32

const noUsage = { input_tokens: 0, output_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }
const usage = { ...noUsage, input_tokens: 180, output_tokens: 240 }

function event(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
}

function messageStream(id: string, model: string, deltas: number): readonly string[] {
  const delta = event("content_block_delta", { index: 0, delta: { type: "text_delta", text: " token" } })
  const message = {
    id,
    type: "message",
    role: "assistant",
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: noUsage,
  }
  return [
    event("message_start", { message }),
    event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    ...Array.from({ length: deltas }, () => delta),
    event("content_block_stop", { index: 0 }),
    event("message_delta", { delta: { stop_reason: "end_turn", stop_sequence: null }, usage }),
    event("message_stop", {}),
  ]
}

/** What a vendor of messages sends, one network chunk each. */
export const messagesEvents = messageStream("msg_bench", "bench-upstream-model", CHUNKS_PER_STREAM - OTHER_EVENTS)

/** What the chat stream becomes over the bridge; the id is made for each answer. */
export const bridgedStream = anyId(messageStream(`msg_${"?".repeat(ID_LENGTH)}`, STREAM_MODEL, CHAT_TEXTS).join(""))

function anyId(text: string): Buffer {
  const bytes = Buffer.from(text)
  const start = text.indexOf("?")
  return bytes.fill(ANY_BYTE, start, start + ID_LENGTH)
}
