type Fields = Readonly<Record<string, unknown>>

/** One event of a messages stream, read apart from the code that writes it. */
export interface MessagesEvent {
  readonly type: string
  readonly index?: number
  readonly message?: Fields
  readonly content_block?: Fields
  readonly delta?: Fields
  readonly usage?: Fields
  readonly error?: Fields
  readonly [name: string]: unknown
}

export interface CheckedMessage {
  readonly events: readonly MessagesEvent[]
  /** The message that the events add up to. */
  readonly message: Fields & { readonly content: readonly Fields[] }
}

export interface Leniency {
  /** A model may write arguments that are no JSON; their text then stands for the input. */
  readonly brokenArguments?: boolean
}

const stopReasons: readonly unknown[] = ["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"]
const deltaFields: Readonly<Record<string, readonly [delta: string, field: string]>> = {
  text: ["text_delta", "text"],
  thinking: ["thinking_delta", "thinking"],
  tool_use: ["input_json_delta", "partial_json"],
}
const noUsage = { input_tokens: 0, output_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }

function demand(condition: boolean, rule: string, event: unknown): asserts condition {
  if (!condition) throw new Error(`${rule}: ${JSON.stringify(event)}`)
}

/** The events of a stream, or of its beginning: two lines each, the event line naming the type. */
export function messagesEvents(text: string): readonly MessagesEvent[] {
  if (text === "") return []
  demand(text.endsWith("\n\n"), "a stream ends with a blank line", text.slice(-40))
  return text
    .slice(0, -2)
    .split("\n\n")
    .map((frame) => {
      const [name, data, ...more] = frame.split(/[\n\r\u0085\u2028\u2029]/)
      demand(name!.startsWith("event: ") && data!.startsWith("data: ") && more.length === 0, "two lines a frame", frame)
      const event = JSON.parse(data!.slice("data: ".length)) as MessagesEvent
      demand(name === `event: ${event.type}`, "the event line names the type", frame)
      return event
    })
}

/** What the events of the open block have said so far. */
class OpenBlock {
  readonly #block: Fields
  readonly #deltaType: string
  readonly #field: string
  readonly #pieces: string[] = []
  #signature: string | null = null

  constructor(event: MessagesEvent) {
    this.#block = event.content_block!
    const fields = deltaFields[String(this.#block.type)]
    demand(fields !== undefined, "a block is text, thinking or tool_use", event)
    ;[this.#deltaType, this.#field] = fields
    const { type, id, name } = this.#block
    const empty = { text: { text: "" }, thinking: { thinking: "", signature: "" }, tool_use: { id, name, input: {} } }
    const expected = { type, ...empty[type as keyof typeof empty] }
    demand(Bun.deepEquals(this.#block, expected, true), "a block starts empty", event)
    if (type !== "tool_use") return
    demand(typeof id === "string" && id !== "" && typeof name === "string" && name !== "", "a call has a name", event)
  }

  get id(): unknown {
    return this.#block.id
  }

  see(event: MessagesEvent): void {
    const delta = event.delta!
    demand(this.#signature === null, "nothing follows the signature", event)
    if (delta.type === "signature_delta") {
      demand(this.#block.type === "thinking" && delta.signature !== "", "only thinking is signed", event)
      this.#signature = String(delta.signature)
      return
    }
    demand(delta.type === this.#deltaType, "a delta is of its block's kind", event)
    const piece = delta[this.#field]
    demand(typeof piece === "string" && piece !== "", "a delta says something", event)
    this.#pieces.push(piece)
  }

  close(event: MessagesEvent, { brokenArguments = false }: Leniency): Fields {
    const said = this.#pieces.join("")
    switch (this.#block.type) {
      case "text":
        demand(said.trim() !== "", "text is not blank", event)
        return { ...this.#block, text: said }
      case "thinking":
        demand(this.#signature !== null && said !== "", "thinking is signed", event)
        return { ...this.#block, thinking: said, signature: this.#signature }
      default: {
        const input = parsed(said)
        demand(brokenArguments || input !== null, "arguments are a JSON object", said)
        return { ...this.#block, input: input ?? said }
      }
    }
  }
}

function parsed(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null
  } catch {
    return null
  }
}

/** Fails on the first event that breaks the rules of a whole, successful stream. */
export function checkMessages(text: string, leniency: Leniency = {}): CheckedMessage {
  const events = messagesEvents(text)
  const [start] = events
  demand(start?.type === "message_start", "message_start comes first", start)
  checkStart(start)
  demand(events.at(-2)?.type === "message_delta", "message_delta closes the message", events.at(-2))
  demand(events.at(-1)?.type === "message_stop", "message_stop comes last", events.at(-1))
  const content = checkBlocks(events.slice(1, -2), leniency)
  const { delta, usage } = events.at(-2)!
  checkEnd(events.at(-2)!)
  const { stop_reason, stop_sequence } = delta!
  return { events, message: { ...start.message, content, stop_reason, stop_sequence, usage } }
}

/** Fails on the first event that breaks the rules of a stream that was cut, or failed. */
export function checkBeginning(text: string, leniency: Leniency = {}): readonly MessagesEvent[] {
  const events = messagesEvents(text)
  const [start, ...rest] = events.at(-1)?.type === "error" ? events.slice(0, -1) : events
  if (start === undefined) return events
  demand(start.type === "message_start", "message_start comes first", start)
  checkStart(start)
  checkBlocks(rest, leniency, true)
  return events
}

function checkStart(start: MessagesEvent): void {
  const { id, model, ...rest } = start.message ?? {}
  demand(/^msg_\w{8,}$/.test(String(id)) && typeof model === "string", "the message is named", start)
  const expected = {
    type: "message",
    role: "assistant",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: noUsage,
  }
  demand(Bun.deepEquals(rest, expected, true), "the message starts empty, its usage zero", start)
}

function checkEnd(event: MessagesEvent): void {
  const { stop_reason, stop_sequence, ...others } = event.delta ?? {}
  demand(stopReasons.includes(stop_reason) && Object.keys(others).length === 0, "a stop reason is told", event)
  const isNamed = stop_reason === "stop_sequence" ? typeof stop_sequence === "string" : stop_sequence === null
  demand(isNamed, "a stop sequence is named where it was one", event)
  const { output_tokens_details: _, ...counts } = event.usage ?? {}
  demand(Bun.deepEquals(Object.keys(counts).sort(), Object.keys(noUsage).sort()), "usage has its four counts", event)
  const areCounts = Object.values(counts).every((count) => Number.isSafeInteger(count) && Number(count) >= 0)
  demand(areCounts, "counts are counts", event)
}

function checkBlocks(events: readonly MessagesEvent[], leniency: Leniency, cut = false): Fields[] {
  const content: Fields[] = []
  const ids = new Set<unknown>()
  let open: OpenBlock | null = null
  for (const event of events) {
    demand(event.index === content.length, "blocks are numbered 0, 1, 2 …", event)
    if (event.type === "content_block_start") {
      demand(open === null, "one block after another", event)
      open = new OpenBlock(event)
      demand(open.id === undefined || !ids.has(open.id), "a call's id is its own", event)
      ids.add(open.id)
      continue
    }
    demand(open !== null, "a delta or stop belongs to an open block", event)
    if (event.type === "content_block_stop") {
      content.push(open.close(event, leniency))
      open = null
    } else {
      demand(event.type === "content_block_delta", "no other events are known", event)
      open.see(event)
    }
  }
  demand(cut || open === null, "every block is closed", events.at(-1))
  return content
}

/** The message without what differs from one run to the next: the ids that were made here. */
export function withoutMintedIds(message: Fields): Fields {
  const content = (message.content as readonly Fields[]).map((block) =>
    String(block.id).startsWith("toolu_") ? { ...block, id: "minted" } : block,
  )
  return { ...message, id: "minted", content }
}
