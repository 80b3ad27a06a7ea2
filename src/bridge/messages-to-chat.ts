import { chatToMessagesAnswer } from "./messages-to-chat-answer.ts"
import { messagesToChatRequest } from "./messages-to-chat-request.ts"
import { ChatStreamToMessages } from "./messages-to-chat-stream.ts"
import type { Bridge } from "./translator.ts"

/** For a caller that speaks messages and an upstream that speaks chat completions. */
export const messagesToChat: Bridge = {
  request: messagesToChatRequest,
  answer: chatToMessagesAnswer,
  stream: (asked) => new ChatStreamToMessages(asked),
}
