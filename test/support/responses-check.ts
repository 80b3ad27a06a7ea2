import type { JsonObject } from "../../src/core/json.ts"

/** One event of a Responses stream, read apart from the code that writes it. */
export interface StreamEvent {
  readonly type: string
  readonly sequence_number: number
  readonly response?: Record<string, unknown>
  readonly item?: Record<string, unknown>
  readonly part?: Record<string, unknown>
  readonly item_id?: string
  readonly output_index?: number
  readonly content_index?: number
  readonly summary_index?: number
  readonly delta?: string
  readonly [name: string]: unknown
}

export interface CheckedStream {
  readonly events: readonly StreamEvent[]
  /** The object of the last event. */
  readonly response: Record<string, unknown> & { readonly output: readonly Record<string, unknown>[] }
}

const lastEvents = ["response.completed", "response.incomplete", "response.failed"]

function demand(condition: boolean, rule: string, event: unknown): asserts condition {
  if (!condition) throw new Error(`${rule}: ${JSON.stringify(event)}`)
}

function readFrames(text: string): readonly StreamEvent[] {
  demand(text.endsWith("\n\n"), "a stream ends with a blank line", text.slice(-40))
  return text
    .slice(0, -2)
    .split("\n\n")
    .map((frame) => {
      const [name, data, ...more] = frame.split("\n")
      demand(name!.startsWith("event: ") && data!.startsWith("data: ") && more.length === 0, "two lines a frame", frame)
      const event = JSON.parse(data!.slice("data: ".length)) as StreamEvent
      demand(name === `event: ${event.type}`, "the event line names the type", frame)
      return event
    })
}

/** What the events of one item have said so far. */
class OpenItem {
  readonly index: number
  readonly id: unknown
  readonly #added: string
  readonly #type: unknown
  readonly #summary: unknown[] = []
  readonly #content: unknown[] = []
  #texts: string[] = []
  #openPart: string | null = null
  #closedText: unknown = null

  constructor(event: StreamEvent) {
    this.index = event.output_index!
    this.id = event.item!.id
    this.#type = event.item!.type
    this.#added = JSON.stringify(event.item)
  }

  see(event: StreamEvent): void {
    demand(event.output_index === this.index && event.item_id === this.id, "an event belongs to the open item", event)
    const step = event.type.slice(event.type.lastIndexOf(".") + 1)
    if (this.#type === "function_call") this.#seeArguments(event, step)
    else if (event.type.includes("_part.")) this.#seePart(event, step)
    else if (!event.type.includes("annotation")) this.#seeText(event, step)
  }

  close(item: Record<string, unknown>): void {
    // An item may come whole, without any event in between.
    if (JSON.stringify(item) === this.#added) return
    demand(this.#openPart === null, "parts are done before their item", item)
    if (item.type === "function_call") demand(item.arguments === this.#closedText, "arguments add up", item)
    const said = [list(item.summary), list(item.content)]
    demand(JSON.stringify(said) === JSON.stringify([this.#summary, this.#content]), "an item is its parts", item)
  }

  #seeArguments(event: StreamEvent, step: string): void {
    demand(event.type === `response.function_call_arguments.${step}`, "a call has arguments only", event)
    demand(this.#closedText === null, "arguments are done once", event)
    if (step === "delta") this.#texts.push(event.delta!)
    else this.#closedText = event.arguments
    if (step === "done") demand(this.#texts.join("") === event.arguments, "the deltas add up", event)
  }

  #seePart(event: StreamEvent, step: string): void {
    const parts = event.type.includes("summary") ? this.#summary : this.#content
    demand((event.summary_index ?? event.content_index) === parts.length, "no gap between parts", event)
    if (step === "added") {
      demand(this.#openPart === null, "one part after another", event)
      this.#openPart = String(event.part!.type)
      this.#texts = []
      this.#closedText = null
      return
    }
    demand(this.#openPart === event.part!.type, "a part that is done was added", event)
    demand(this.#closedText === (event.part!.text ?? event.part!.refusal), "a part holds its text", event)
    this.#openPart = null
    parts.push(event.part)
  }

  #seeText(event: StreamEvent, step: string): void {
    demand(this.#openPart !== null, "text belongs to a part", event)
    demand(this.#closedText === null, "nothing follows the whole text", event)
    if (step === "delta") {
      demand(event.delta !== "", "a delta says something", event)
      this.#texts.push(event.delta!)
      return
    }
    this.#closedText = event.text ?? event.refusal
    demand(this.#texts.join("") === this.#closedText, "the deltas add up", event)
  }
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Fails on the first event that breaks the rules of the standard sequence. */
export function checkStream(text: string): CheckedStream {
  const events = readFrames(text)
  const [created, running] = events
  demand(created?.type === "response.created", "response.created comes first", created)
  demand(
    list(created.response!.output).length === 0 && created.response!.status === "in_progress",
    "it starts empty",
    created,
  )
  demand(running?.type === "response.in_progress", "response.in_progress comes second", running)
  const last = events.at(-1)!
  demand(lastEvents.includes(last.type), "the stream has its end", last)
  demand(last.response!.id === created.response!.id, "the response keeps its id", last)
  const done: unknown[] = []
  let open: OpenItem | null = null
  for (const [number, event] of events.entries()) {
    demand(event.sequence_number === number, "events are numbered 0, 1, 2 …", event)
    if (number < 2 || event === last) continue
    if (event.type === "response.output_item.added") {
      demand(open === null && event.output_index === done.length, "one item after another", event)
      open = new OpenItem(event)
    } else if (event.type === "response.output_item.done") {
      demand(open !== null && open.index === event.output_index && open.id === event.item!.id, "it was added", event)
      open.close(event.item!)
      open = null
      done.push(event.item)
    } else {
      demand(open !== null, "every other event belongs to an item", event)
      open.see(event)
    }
  }
  if (last.type !== "response.failed") {
    demand(open === null, "every item is done", last)
    demand(JSON.stringify(last.response!.output) === JSON.stringify(done), "the response holds the items", last)
  }
  return { events, response: last.response as CheckedStream["response"] }
}

/** The response without what differs from one run to the next. */
export function withoutIds(response: JsonObject | Record<string, unknown>): Record<string, unknown> {
  const output = list(response.output).map((item) => ({ ...(item as object), id: "an id" }))
  return { ...response, id: "an id", completed_at: 0, output }
}
