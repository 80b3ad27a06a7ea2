import { chatRequest } from "./responses-request.ts"
import { ChatToResponsesStream, wholeResponse } from "./responses-stream.ts"
import type { Bridge } from "./translator.ts"

/** For a caller who speaks responses and an upstream that speaks chat completions. */
export const responsesToChat = {
  request: chatRequest,
  answer: wholeResponse,
  stream: (asked) => new ChatToResponsesStream(asked),
} as const satisfies Bridge
