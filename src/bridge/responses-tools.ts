import { isObject, type JsonObject } from "../core/json.ts"
import { type Field, isAbsent, listAt, nameAt, objectAt, refuse, shown } from "./fields.ts"

interface ChatTool extends JsonObject {
  readonly type: "function"
  readonly function: JsonObject & { readonly name: string }
}

interface Choice {
  /** The chat request's `tool_choice`; null: left out. */
  readonly choice: string | JsonObject | null
  /** The only tools that may be called; null: all of them. */
  readonly allowed: ReadonlySet<string> | null
  readonly isForced: boolean
}

/** `tools`, `tool_choice` and `parallel_tool_calls`, none of them without a tool: upstreams refuse a choice among none. */
export function chatTools(asked: JsonObject): JsonObject {
  const declared = isAbsent(asked.tools) ? [] : listAt(asked.tools, "tools").map(chatTool)
  const { choice, allowed, isForced } = chatChoice(asked.tool_choice)
  const tools = allowed === null ? declared : declared.filter((tool) => allowed.has(tool.function.name))
  if (tools.length === 0) {
    if (isForced) refuse("tool_choice", "asks for a tool to be called, but there is none in tools")
    return {}
  }
  const { parallel_tool_calls: parallel } = asked
  return {
    tools,
    ...(choice === null ? {} : { tool_choice: choice }),
    ...(typeof parallel === "boolean" ? { parallel_tool_calls: parallel } : {}),
  }
}

function chatTool(field: Field, index: number): ChatTool {
  const place = `tools[${index}]`
  const tool = objectAt(field, place)
  if (tool.type !== "function") {
    refuse(`${place}.type`, `this model's upstream has tools of type "function" only, not ${shown(tool.type)}`)
  }
  const { description, strict } = tool
  return {
    type: "function",
    function: {
      name: nameAt(tool.name, `${place}.name`),
      ...(isAbsent(description) ? {} : { description }),
      parameters: parametersOf(tool.parameters, `${place}.parameters`),
      ...(isAbsent(strict) ? {} : { strict }),
    },
  }
}

/** Upstreams want a schema even of a function that takes nothing, and one that lists its properties. */
function parametersOf(field: Field, place: string): JsonObject {
  if (isAbsent(field)) return { type: "object", properties: {} }
  const schema = objectAt(field, place)
  return schema.type === "object" && schema.properties === undefined ? { ...schema, properties: {} } : schema
}

function chatChoice(field: Field): Choice {
  if (isAbsent(field)) return { choice: null, allowed: null, isForced: false }
  if (field === "auto" || field === "none" || field === "required") {
    return { choice: field, allowed: null, isForced: field === "required" }
  }
  if (!isObject(field)) refuse("tool_choice", `must be "auto", "none", "required" or an object, not ${shown(field)}`)
  if (field.type === "function") {
    const name = nameAt(field.name, "tool_choice.name")
    return { choice: { type: "function", function: { name } }, allowed: null, isForced: true }
  }
  if (field.type === "allowed_tools") return allowedTools(field)
  return refuse(
    "tool_choice.type",
    `this model's upstream can be made to call functions only, not ${shown(field.type)}`,
  )
}

/** Few chat upstreams know a list of allowed tools; leaving the others out says the same to all of them. */
function allowedTools(field: JsonObject): Choice {
  const { mode } = field
  if (mode !== "auto" && mode !== "required") refuse("tool_choice.mode", 'must be "auto" or "required"')
  const names = listAt(field.tools, "tool_choice.tools").map((entry, index) => {
    const place = `tool_choice.tools[${index}]`
    const tool = objectAt(entry, place)
    if (tool.type !== "function") refuse(`${place}.type`, `must be "function", not ${shown(tool.type)}`)
    return nameAt(tool.name, `${place}.name`)
  })
  return { choice: mode, allowed: new Set(names), isForced: mode === "required" }
}
