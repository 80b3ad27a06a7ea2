import { mintId } from "./responses-fields.ts"

/** What one chunk says about a tool call; whatever it leaves out is null or "". */
export interface CallFragment {
  readonly index: number | null
  readonly id: string
  readonly name: string
  readonly arguments: string
}

/** Finds where the JSON object or array that arrives in pieces ends. */
class JsonEnd {
  complete = false
  #depth = 0
  #inString = false
  #escaped = false
  #unreadable = false

  /** How many characters of the piece still belong to the value. */
  take(piece: string): number {
    if (this.#unreadable) return piece.length
    for (let at = 0; at < piece.length; at += 1) {
      this.#see(piece[at]!)
      if (this.complete) return at + 1
      if (this.#unreadable) break
    }
    return piece.length
  }

  #see(character: string): void {
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false
      else if (character === "\\") this.#escaped = true
      else if (character === '"') this.#inString = false
    } else if (character === "{" || character === "[") {
      this.#depth += 1
    } else if (this.#depth === 0) {
      // Arguments that are no object have no end that could be told.
      this.#unreadable = character.trim() !== ""
    } else if (character === '"') {
      this.#inString = true
    } else if (character === "}" || character === "]") {
      this.#depth -= 1
      this.complete = this.#depth === 0
    }
  }
}

/** One tool call while its fragments arrive. */
export class CallDraft {
  readonly kind = "call"
  readonly itemId = mintId("fc")
  readonly index: number | null
  /** As the upstream wrote it; "" until it does. */
  id = ""
  name = ""
  arguments = ""
  /** What the caller was told; "" until the call is opened. */
  callId = ""
  /** The end of the arguments that is still to be delivered. */
  pending = ""
  readonly #end = new JsonEnd()

  constructor(index: number | null) {
    this.index = index
  }

  get complete(): boolean {
    return this.#end.complete
  }

  get isOpen(): boolean {
    return this.callId !== ""
  }

  absorb(fragment: CallFragment): void {
    const unargued = this.arguments === ""
    if (this.id === "" && !this.isOpen && unargued) this.id = fragment.id
    // A name that is said again is the same name; anything else is its next piece.
    if (!this.isOpen && (unargued || this.name === "") && fragment.name !== this.name) this.name += fragment.name
    // Some upstreams repeat the whole arguments at the end: what follows a complete value is no part of it.
    if (!this.complete) this.#argue(fragment.arguments.slice(0, this.#end.take(fragment.arguments)))
  }

  /** Clients parse the arguments, so a call that was named but given none gets an empty object of them. */
  complement(): void {
    if (this.name !== "" && this.arguments.trim() === "") this.#argue("{}")
  }

  #argue(piece: string): void {
    this.arguments += piece
    this.pending += piece
  }
}

/** The draft that a fragment continues; null when it starts a call of its own. */
export function draftFor(
  fragment: CallFragment,
  calls: readonly CallDraft[],
  tools: ReadonlySet<string>,
): CallDraft | null {
  const candidate = fragment.index === null ? byIdOrLast(fragment, calls, tools) : byIndex(fragment, calls)
  return candidate === null || startsAnother(fragment, candidate) ? null : candidate
}

function byIndex({ index, id }: CallFragment, calls: readonly CallDraft[]): CallDraft | null {
  const same = calls.filter((call) => call.index === index)
  return (id === "" ? undefined : same.findLast((call) => call.id === id)) ?? same.at(-1) ?? null
}

function byIdOrLast({ id, name }: CallFragment, calls: readonly CallDraft[], tools: ReadonlySet<string>) {
  const last = calls.at(-1) ?? null
  if (id !== "") {
    const known = calls.findLast((call) => call.id === id)
    if (known !== undefined) return known
    const comesLate = name === "" && last !== null && last.id === "" && last.arguments === ""
    return comesLate ? last : null
  }
  if (last === null || name === "") return last
  if (last.arguments !== "") return !last.complete && last.name === name ? last : null
  return isNextPieceOfName(last.name, name, tools) ? last : null
}

function isNextPieceOfName(name: string, piece: string, tools: ReadonlySet<string>): boolean {
  return !tools.has(name) && [...tools].some((tool) => tool.startsWith(name + piece))
}

/** True for upstreams that give every call the same index, or the same id. */
function startsAnother(fragment: CallFragment, call: CallDraft): boolean {
  if (fragment.id !== "" && call.id !== "" && fragment.id !== call.id) return true
  if (!call.complete || fragment.name === "" || call.name === "") return false
  if (fragment.name !== call.name) return true
  return /^\s*\{/.test(fragment.arguments) && fragment.arguments.trim() !== call.arguments.trim()
}
