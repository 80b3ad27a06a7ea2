import type { JsonObject, JsonValue } from "../core/json.ts"
import { CallDraft, type CallFragment, draftFor } from "./responses-calls.ts"
import { mintId } from "./responses-fields.ts"
import { type PartKind, type PartPlace, partOf, type ResponseFrames } from "./responses-frames.ts"

interface PartDraft {
  readonly kind: PartKind
  text: string
  readonly logprobs: JsonValue[]
  /** What of either is still to be delivered; kept apart, for cutting it from a long text would copy that each time. */
  pending: string
  pendingLogprobs: JsonValue[]
  isOpen: boolean
}

interface TextDraft {
  readonly kind: "message" | "reasoning"
  readonly itemId: string
  readonly parts: PartDraft[]
  isOpen: boolean
}

type Draft = TextDraft | CallDraft

/**
 * The output of one response while it is made. Items are delivered one after another, as the real API does: a later
 * one waits until those before it are whole, so calls whose pieces come interleaved still come out in order.
 */
export class OutputItems {
  readonly #frames: ResponseFrames
  readonly #tools: ReadonlySet<string>
  readonly #usedCallIds: Set<string>
  readonly #drafts: Draft[] = []
  readonly #calls: CallDraft[] = []
  /** The items that are done. */
  readonly #done: JsonObject[] = []
  /** The draft that is being delivered. */
  #current = 0

  /** `earlierCallIds` are those of the conversation so far; a call id that is said twice could not be answered. */
  constructor(frames: ResponseFrames, tools: ReadonlySet<string>, earlierCallIds: Iterable<string>) {
    this.#frames = frames
    this.#tools = tools
    this.#usedCallIds = new Set(earlierCallIds)
  }

  addText(kind: "output_text" | "refusal" | "summary_text", text: string, logprobs: readonly JsonValue[] = []): void {
    if (text === "") return
    const draft = this.#textDraft(kind === "summary_text" ? "reasoning" : "message")
    let part = draft.parts.at(-1)
    if (part?.kind !== kind) {
      part = { kind, text: "", logprobs: [], pending: "", pendingLogprobs: [], isOpen: false }
      draft.parts.push(part)
    }
    part.text += text
    part.pending += text
    part.logprobs.push(...logprobs)
    part.pendingLogprobs.push(...logprobs)
  }

  addCall(fragment: CallFragment): void {
    let call = draftFor(fragment, this.#calls, this.#tools)
    if (call === null) {
      call = new CallDraft(fragment.index)
      this.#calls.push(call)
      this.#drafts.push(call)
    }
    call.absorb(fragment)
  }

  /** Delivers what can be delivered by now. */
  deliver(): void {
    while (this.#current < this.#drafts.length) {
      const draft = this.#drafts[this.#current]!
      this.#write(draft, false)
      const isLast = this.#current === this.#drafts.length - 1
      if (isLast || (draft.kind === "call" && !draft.complete)) return
      this.#close(draft, "completed")
    }
  }

  /** Delivers the rest. `truncated`: the model was cut off, so its last item is not whole. */
  finish(truncated: boolean): void {
    while (this.#current < this.#drafts.length) {
      const draft = this.#drafts[this.#current]!
      const isLast = this.#current === this.#drafts.length - 1
      const cut = truncated && (isLast || (draft.kind === "call" && !draft.complete))
      if (draft.kind === "call" && !cut) draft.complement()
      this.#write(draft, true)
      this.#close(draft, cut ? "incomplete" : "completed")
    }
  }

  /** The items so far, the unfinished one included. */
  list(): readonly JsonObject[] {
    const open = this.#drafts[this.#current]
    return open?.isOpen ? [...this.#done, itemOf(open, "incomplete")] : this.#done
  }

  #textDraft(kind: TextDraft["kind"]): TextDraft {
    const last = this.#drafts.at(-1)
    if (last?.kind === kind) return last
    const draft: TextDraft = { kind, itemId: mintId(kind === "message" ? "msg" : "rs"), parts: [], isOpen: false }
    this.#drafts.push(draft)
    return draft
  }

  #write(draft: Draft, isWhole: boolean): void {
    if (draft.kind === "call") this.#writeCall(draft, isWhole)
    else this.#writeText(draft)
  }

  #close(draft: Draft, status: "completed" | "incomplete"): void {
    this.#current += 1
    // An item that never came to anything, like white space between two calls, is left out.
    if (!draft.isOpen) return
    const item = itemOf(draft, status)
    const index = this.#done.length
    if (draft.kind === "call") this.#frames.argumentsDone(draft.itemId, index, item)
    else this.#closePart(draft, draft.parts.length - 1)
    this.#frames.itemDone(index, item)
    this.#done.push(item)
  }

  #writeText(draft: TextDraft): void {
    if (!draft.isOpen) {
      if (draft.parts.every((part) => part.text.trim() === "")) return
      draft.isOpen = true
      this.#frames.itemAdded(this.#done.length, emptyItem(draft))
    }
    for (const [index, part] of draft.parts.entries()) this.#writePart(draft, part, index)
  }

  #writePart(draft: TextDraft, part: PartDraft, index: number): void {
    const place = this.#placeOf(draft, index)
    if (!part.isOpen) {
      if (index > 0) this.#closePart(draft, index - 1)
      part.isOpen = true
      this.#frames.partAdded(part.kind, place, partOf(part.kind, "", []))
    }
    if (part.pending === "") return
    this.#frames.partDelta(part.kind, place, part.pending, part.pendingLogprobs)
    part.pending = ""
    part.pendingLogprobs = []
  }

  #closePart(draft: TextDraft, index: number): void {
    const part = draft.parts[index]
    if (part === undefined) return
    this.#frames.partDone(part.kind, this.#placeOf(draft, index), partOf(part.kind, part.text, part.logprobs))
  }

  #placeOf(draft: TextDraft, partIndex: number): PartPlace {
    return { itemId: draft.itemId, outputIndex: this.#done.length, partIndex }
  }

  #writeCall(call: CallDraft, isWhole: boolean): void {
    if (!call.isOpen) {
      if (!this.#mayOpen(call, isWhole)) return
      call.callId = call.id === "" || this.#usedCallIds.has(call.id) ? mintId("call") : call.id
      this.#usedCallIds.add(call.callId)
      this.#frames.itemAdded(this.#done.length, emptyItem(call))
    }
    if (call.pending === "") return
    this.#frames.argumentsDelta(call.itemId, this.#done.length, call.pending)
    call.pending = ""
  }

  /** The name and the id cannot be changed once they are told, so they must be whole. */
  #mayOpen(call: CallDraft, isWhole: boolean): boolean {
    if (isWhole) return call.name !== "" || call.arguments !== ""
    if (call.name === "") return false
    if (call.arguments !== "") return true
    if (call.id === "" || !this.#tools.has(call.name)) return false
    return ![...this.#tools].some((tool) => tool !== call.name && tool.startsWith(call.name))
  }
}

function emptyItem(draft: Draft): JsonObject {
  if (draft.kind === "call") return { ...itemOf(draft, "in_progress"), arguments: "" }
  return itemOf({ ...draft, parts: [] }, "in_progress")
}

function itemOf(draft: Draft, status: "in_progress" | "completed" | "incomplete"): JsonObject {
  if (draft.kind === "call") {
    const { itemId, callId, name } = draft
    return { id: itemId, type: "function_call", status, arguments: draft.arguments, call_id: callId, name }
  }
  const parts = draft.parts.map((part) => partOf(part.kind, part.text, [...part.logprobs]))
  if (draft.kind === "reasoning") return { id: draft.itemId, type: "reasoning", summary: parts }
  return { id: draft.itemId, type: "message", status, role: "assistant", content: parts }
}
