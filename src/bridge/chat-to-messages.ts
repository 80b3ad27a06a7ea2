import { chatAnswer } from "./chat-to-messages-answer.ts"
import { messagesRequest } from "./chat-to-messages-request.ts"
import { MessagesStreamToChat } from "./chat-to-messages-stream.ts"
import type { Bridge } from "./translator.ts"

/** For a caller that speaks chat completions and an upstream that speaks messages. */
export const chatToMessages: Bridge = {
  request: messagesRequest,
  answer: chatAnswer,
  stream: (asked) => new MessagesStreamToChat(asked),
}
