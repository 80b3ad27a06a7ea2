import type { JsonObject } from "../core/json.ts"
import { type Field, isAbsent, listAt, nameAt, objectAt, refuse, shown } from "./fields.ts"
import type { ToolNames } from "./messages-to-chat-parts.ts"

interface ToolBox {
  /** The caller's own tools, by name. */
  readonly kept: ReadonlyMap<string, JsonObject>
  /** Names of tools that only the vendor of messages runs; chat upstreams have no such thing. */
  readonly dropped: ReadonlySet<string>
}

/** `tools`, `tool_choice` and `parallel_tool_calls`, none of them without a tool: upstreams refuse a choice among none. */
export function chatTools(asked: JsonObject, names: ToolNames): JsonObject {
  const box = readTools(asked.tools, names)
  const choice = isAbsent(asked.tool_choice) ? null : objectAt(asked.tool_choice, "tool_choice")
  const chosen = choice === null ? undefined : readChoice(choice, box, names)
  if (box.kept.size === 0) return {}
  return {
    tools: [...box.kept.values()],
    ...(chosen === undefined ? {} : { tool_choice: chosen }),
    ...(choice?.disable_parallel_tool_use === true ? { parallel_tool_calls: false } : {}),
  }
}

function readTools(field: Field, names: ToolNames): ToolBox {
  const kept = new Map<string, JsonObject>()
  const dropped = new Set<string>()
  const list = isAbsent(field) ? [] : listAt(field, "tools")
  for (const [index, entry] of list.entries()) {
    const place = `tools[${index}]`
    const tool = objectAt(entry, place)
    if (!isAbsent(tool.type) && tool.type !== "custom") {
      dropped.add(typeof tool.name === "string" ? tool.name : shown(tool.type))
      continue
    }
    const name = nameAt(tool.name, `${place}.name`)
    if (!kept.has(name)) kept.set(name, chatTool(tool, names.toUpstream(name), `${place}.input_schema`))
  }
  return { kept, dropped }
}

function chatTool({ description, input_schema: schema }: JsonObject, name: string, place: string): JsonObject {
  const described = typeof description === "string" && description !== "" ? { description } : {}
  return { type: "function", function: { name, ...described, parameters: parametersOf(schema, place) } }
}

/** Upstreams want a schema even of a tool that takes nothing, and one that says its type and lists its properties. */
function parametersOf(field: Field, place: string): JsonObject {
  if (isAbsent(field)) return { type: "object", properties: {} }
  const schema = objectAt(field, place)
  const typed = isAbsent(schema.type) ? { ...schema, type: "object" } : schema
  return typed.type === "object" && isAbsent(typed.properties) ? { ...typed, properties: {} } : typed
}

/** A choice that leaves only a dropped tool is refused: without it the model would make up what the tool is to find. */
function readChoice(choice: JsonObject, { kept, dropped }: ToolBox, names: ToolNames): string | JsonObject {
  switch (choice.type) {
    case "auto":
    case "none":
      return choice.type
    case "any":
      if (kept.size === 0 && dropped.size > 0) refuseDropped([...dropped].join(", "))
      return "required"
    case "tool": {
      const name = nameAt(choice.name, "tool_choice.name")
      if (kept.has(name)) return { type: "function", function: { name: names.toUpstream(name) } }
      return dropped.has(name) ? refuseDropped(name) : refuse("tool_choice.name", `there is no tool ${shown(name)}`)
    }
    default:
      return refuse("tool_choice.type", `${shown(choice.type)} is none of "auto", "any", "tool", "none"`)
  }
}

function refuseDropped(name: string): never {
  return refuse(
    "tool_choice",
    `this model's upstream cannot run the server tool ${name}; only tools of your own can be forced`,
  )
}
