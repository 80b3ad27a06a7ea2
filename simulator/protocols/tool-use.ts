import { isObject } from "../../src/core/json.ts"
import type { BehaviourOf } from "../behaviour.ts"
import type { Conversation, Tool, ToolCall } from "./conversation.ts"
import { shortId } from "./ids.ts"

type Saying = Pick<BehaviourOf<"chat">, "text" | "toolCalls">

/** The calls the step asks for, or the one that a lively model would make; ids begin as the protocol's do. */
export function toolCallsOf(ask: Conversation, step: Saying, idPrefix: string): ToolCall[] {
  if (step.toolCalls !== undefined) return step.toolCalls.map((call) => ({ id: idPrefix + shortId(), ...call }))
  const tool = step.text === undefined ? toolToCall(ask) : undefined
  return tool === undefined ? [] : [{ id: idPrefix + shortId(), name: tool.name, arguments: sampleArguments(tool) }]
}

/** The tool a lively model would call: the one it is told to, or one that the user's words mention. */
function toolToCall(ask: Conversation): Tool | undefined {
  if (ask.lastRole === "tool" || ask.toolChoice === "none") return undefined
  if (ask.toolChoice === "required") return mentioned(ask) ?? ask.tools[0]
  return ask.tools.find(({ name }) => name === ask.toolChoice) ?? mentioned(ask)
}

function mentioned({ tools, lastUserText }: Conversation): Tool | undefined {
  const words = plain(lastUserText)
  return tools.find(({ name }) => words.includes(plain(name)))
}

/** `get_weather`, `get-weather` and `Get weather` are one mention. */
function plain(text: string): string {
  return text.toLowerCase().replaceAll(/[\s_-]+/g, " ")
}

/** Arguments that fit the tool's schema at a glance: a sample for each property. */
function sampleArguments(tool: Tool): string {
  return JSON.stringify(sampleObject(tool.parameters))
}

function sampleObject(schema: Record<string, unknown>): Record<string, unknown> {
  const properties = isObject(schema.properties) ? schema.properties : {}
  return Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, sample(name, property)]))
}

function sample(name: string, schema: unknown): unknown {
  if (!isObject(schema)) return name
  if (schema.default !== undefined) return schema.default
  if (Array.isArray(schema.enum)) return schema.enum[0]
  switch (schema.type) {
    case "integer":
    case "number":
      return 1
    case "boolean":
      return true
    case "array":
      return [sample(name, schema.items)]
    case "object":
      return sampleObject(schema)
    case "null":
      return null
    default:
      return /city|place|location/i.test(name) ? "Paris" : `a ${name.replaceAll("_", " ")}`
  }
}
