import { isObject, type JsonObject, type JsonValue } from "../core/json.ts"
import { type Field, isAbsent, listAt, nameAt, objectAt, refuse, shown, stringAt } from "./fields.ts"
import { assistantText, outputContent, systemText, userContent } from "./responses-content.ts"

/** What a tool answered, and where in the input it stands. */
interface ToolOutput {
  readonly place: string
  readonly text: string
  /** Images and files, which a tool message cannot hold. */
  readonly media: readonly JsonObject[]
}

/** One turn of the assistant: its texts and its calls are one chat message. */
interface Turn {
  readonly texts: string[]
  readonly calls: { readonly place: string; readonly id: string; readonly call: JsonObject }[]
}

/** The chat messages for `instructions` and `input`. */
export function chatMessages(asked: JsonObject): readonly JsonObject[] {
  const conversation = new Conversation()
  if (!isAbsent(asked.instructions)) conversation.addSystem(stringAt(asked.instructions, "instructions"))
  const { input } = asked
  if (typeof input === "string") conversation.addUser(input)
  else conversation.addItems(listAt(input, "input", "must be a string or an array of items"))
  const messages = conversation.end()
  return messages.length === 0 ? refuse("input", "must not be empty") : messages
}

/** Chat completions want a tool's answer directly after the message that called it, wherever the input had it. */
class Conversation {
  readonly #messages: JsonObject[] = []
  readonly #outputs = new Map<string, ToolOutput[]>()
  #turn: Turn | null = null

  addSystem(text: string): void {
    if (text.trim() === "") return
    this.#endTurn()
    const last = this.#messages.at(-1)
    // Many chat templates take one system message, at the start.
    if (last?.role === "system") this.#messages.pop()
    this.#messages.push({ role: "system", content: last?.role === "system" ? `${last.content}\n\n${text}` : text })
  }

  addUser(content: string | readonly JsonObject[]): void {
    this.#endTurn()
    if (content.length > 0) this.#messages.push({ role: "user", content })
  }

  addItems(items: readonly JsonValue[]): void {
    for (const [index, item] of items.entries()) this.#collectOutput(item, `input[${index}]`)
    for (const [index, item] of items.entries()) this.#addItem(objectAt(item, `input[${index}]`), `input[${index}]`)
  }

  end(): readonly JsonObject[] {
    this.#endTurn()
    for (const [id, outputs] of this.#outputs) {
      if (outputs[0] !== undefined) refuse(`${outputs[0].place}.call_id`, `there is no function_call ${shown(id)}`)
    }
    return this.#messages
  }

  #collectOutput(item: Field, place: string): void {
    if (!isObject(item) || item.type !== "function_call_output") return
    const id = nameAt(item.call_id, `${place}.call_id`)
    const output = { place, ...outputContent(item.output, `${place}.output`) }
    this.#outputs.set(id, [...(this.#outputs.get(id) ?? []), output])
  }

  #addItem(item: JsonObject, place: string): void {
    const type = item.type ?? (item.role === undefined ? undefined : "message")
    if (type === "message") this.#addMessage(item, place)
    else if (type === "function_call") this.#addCall(item, place)
    else if (type === "function_call_output") this.#endTurn()
    // A chat upstream has no place for the reasoning of earlier turns.
    else if (type !== "reasoning") {
      refuse(`${place}.type`, `items of type ${shown(type)} cannot be sent to this model's upstream`)
    }
  }

  #addMessage(item: JsonObject, place: string): void {
    const { role, content } = item
    const inside = `${place}.content`
    if (role === "user") this.addUser(userContent(content, inside))
    else if (role === "assistant") this.#openTurn().texts.push(assistantText(content, inside))
    else if (role === "system" || role === "developer") this.addSystem(systemText(content, inside))
    else refuse(`${place}.role`, `must be "user", "assistant", "system" or "developer", not ${shown(role)}`)
  }

  #addCall(item: JsonObject, place: string): void {
    const id = nameAt(item.call_id, `${place}.call_id`)
    const name = nameAt(item.name, `${place}.name`)
    const given = item.arguments
    if (!isAbsent(given) && typeof given !== "string") refuse(`${place}.arguments`, "must be a string of JSON")
    const called = { name, arguments: given || "{}" }
    this.#openTurn().calls.push({ place, id, call: { id, type: "function", function: called } })
  }

  #openTurn(): Turn {
    this.#turn ??= { texts: [], calls: [] }
    return this.#turn
  }

  #endTurn(): void {
    const turn = this.#turn
    this.#turn = null
    if (turn === null) return
    const text = turn.texts.filter((each) => each !== "").join("\n\n")
    const calls = turn.calls.map(({ call }) => call)
    if (text === "" && calls.length === 0) return
    const content = text === "" ? null : text
    this.#messages.push({ role: "assistant", content, ...(calls.length === 0 ? {} : { tool_calls: calls }) })
    this.#answer(turn)
  }

  #answer(turn: Turn): void {
    const media: JsonObject[] = []
    for (const { place, id } of turn.calls) {
      const output = this.#outputs.get(id)?.shift()
      if (output === undefined) refuse(place, `there is no function_call_output for ${shown(id)}`)
      this.#messages.push({ role: "tool", tool_call_id: id, content: output.text })
      media.push(...output.media)
    }
    if (media.length > 0) this.#messages.push({ role: "user", content: media })
  }
}
