import { isObject, type JsonObject } from "../core/json.ts"
import { MessageFrames } from "./messages-frames.ts"
import { listOf, textOf } from "./responses-fields.ts"

/** The events of a whole message made by the bridge, for an upstream that answered JSON where a stream was asked for. */
export function messageEvents(message: JsonObject): string {
  const frames = new MessageFrames()
  frames.messageStart({ id: textOf(message.id), model: textOf(message.model) })
  for (const block of listOf(message.content)) if (isObject(block)) writeBlock(frames, block)
  frames.messageEnd({ stop_reason: message.stop_reason, stop_sequence: message.stop_sequence }, message.usage)
  return frames.take()
}

function writeBlock(frames: MessageFrames, block: JsonObject): void {
  switch (block.type) {
    case "text":
      frames.textStart("text")
      frames.delta(textOf(block.text))
      break
    case "thinking":
      frames.textStart("thinking")
      frames.delta(textOf(block.thinking))
      frames.signature()
      break
    case "tool_use":
      frames.toolStart(textOf(block.id), textOf(block.name))
      frames.delta(JSON.stringify(block.input))
      break
    default:
      return
  }
  frames.blockStop()
}
