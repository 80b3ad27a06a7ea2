import { isObject, type JsonObject } from "../core/json.ts"
import type { Turn } from "./chat-to-messages-pairing.ts"
import { type Field, isAbsent, listAt, nameAt, objectAt, refuse } from "./fields.ts"

/** Whether the caller speaks the form before tools, and so can read one `function_call` but no `tool_calls`. */
export function speaksOfFunctions(asked: JsonObject): boolean {
  return isAbsent(asked.tools) && Array.isArray(asked.functions)
}

/** The fields `tools` and `tool_choice`; neither without a tool, which the vendor would refuse. */
export function toolFields(asked: JsonObject, turns: readonly Turn[]): JsonObject {
  const legacy = speaksOfFunctions(asked)
  const tools = legacy ? readFunctions(asked.functions) : readTools(asked.tools)
  if (tools.length === 0) return toolsOfHistory(turns)
  const choice = legacy
    ? readChoice(asked.function_call, "function_call", (named) => named.name, "function_call.name")
    : readChoice(asked.tool_choice, "tool_choice", functionNameOf, "tool_choice.function.name")
  return { tools, tool_choice: legacy || asked.parallel_tool_calls === false ? oneCallOnly(choice) : choice }
}

function readTools(tools: Field): readonly JsonObject[] {
  if (isAbsent(tools)) return []
  return listAt(tools, "tools").map((entry, index) => {
    const tool = objectAt(entry, `tools[${index}]`)
    if (tool.type !== "function") {
      return refuse(`tools[${index}].type`, `this model can use tools of the type "function" only`)
    }
    return readFunction(tool.function, `tools[${index}].function`)
  })
}

function readFunctions(functions: Field): readonly JsonObject[] {
  return listAt(functions, "functions").map((entry, index) => readFunction(entry, `functions[${index}]`))
}

function readFunction(entry: Field, place: string): JsonObject {
  const { name, description, parameters } = objectAt(entry, place)
  const schema = isAbsent(parameters) ? {} : objectAt(parameters, `${place}.parameters`)
  return {
    name: nameAt(name, `${place}.name`),
    description: typeof description === "string" ? description : undefined,
    // The vendor demands the type, chat completions does not.
    input_schema: isAbsent(schema.type) ? { ...schema, type: "object", properties: schema.properties ?? {} } : schema,
  }
}

function functionNameOf(choice: JsonObject): Field {
  if (choice.type === "function") return isObject(choice.function) ? choice.function.name : undefined
  return refuse("tool_choice.type", `${JSON.stringify(choice.type)} cannot be asked of this model`)
}

function readChoice(
  choice: Field,
  place: string,
  nameOf: (choice: JsonObject) => Field,
  namePlace: string,
): JsonObject | undefined {
  if (isAbsent(choice)) return undefined
  if (isObject(choice)) return { type: "tool", name: nameAt(nameOf(choice), namePlace) }
  switch (choice) {
    case "auto":
      return { type: "auto" }
    case "required":
      return { type: "any" }
    case "none":
      return { type: "none" }
    default:
      return refuse(place, `${JSON.stringify(choice)} is none of "auto", "required", "none" and an object`)
  }
}

function oneCallOnly(choice: JsonObject = { type: "auto" }): JsonObject {
  return choice.type === "none" ? choice : { ...choice, disable_parallel_tool_use: true }
}

/** The vendor refuses calls in a conversation whose request defines no tools, so those seen are defined and forbidden. */
function toolsOfHistory(turns: readonly Turn[]): JsonObject {
  const calls = turns.flatMap(({ blocks }) => blocks).filter(({ type }) => type === "tool_use")
  if (calls.length === 0) return {}
  const names = new Set(calls.map(({ name }) => name))
  return {
    tools: [...names].map((name) => ({ name, input_schema: { type: "object", properties: {} } })),
    tool_choice: { type: "none" },
  }
}
