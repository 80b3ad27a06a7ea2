import { isObject, type JsonObject } from "../core/json.ts"
import type { MessageFrames, TextKind } from "./messages-frames.ts"
import { inputOf } from "./messages-to-chat-answer.ts"
import { defaultToolNameLimit, type ToolNames, toolIdsFor, toolNames } from "./messages-to-chat-parts.ts"
import { CallDraft, type CallFragment, draftFor } from "./responses-calls.ts"
import { listOf } from "./responses-fields.ts"

/** A refusal is told as text, but as a block of its own. */
export type SaidKind = TextKind | "refusal"

interface TextDraft {
  readonly kind: SaidKind
  /** What is still to be delivered. */
  pending: string
  /** Nothing but white space has come so far. */
  isBlank: boolean
  isOpen: boolean
}

type Draft = TextDraft | CallDraft

/**
 * The blocks of one message while it is made. Exactly one is open at a time, since clients lose what overlaps: a later one
 * waits until those before it are whole, so calls whose pieces come interleaved still come out one after another.
 */
export class MessageBlocks {
  /** How many calls the caller was told of. */
  toolBlocks = 0

  readonly #frames: MessageFrames
  readonly #asked: JsonObject
  readonly #names: ToolNames
  readonly #idFor: (upstreamId: unknown) => string
  readonly #drafts: Draft[] = []
  readonly #calls: CallDraft[] = []
  /** The draft that is being delivered. */
  #current = 0
  /** Whether the arguments of the open call may go on as they come; null until their first character tells. */
  #isLive: boolean | null = null
  #offered: ReadonlySet<string> | null = null

  constructor(frames: MessageFrames, asked: JsonObject) {
    this.#frames = frames
    this.#asked = asked
    this.#names = toolNames(asked, defaultToolNameLimit)
    this.#idFor = toolIdsFor(asked)
  }

  addText(kind: SaidKind, text: string): void {
    if (text === "") return
    let draft = this.#drafts.at(-1)
    if (draft?.kind !== kind) {
      draft = { kind, pending: "", isBlank: true, isOpen: false }
      this.#drafts.push(draft)
    }
    draft.pending += text
    // Each piece is looked at once: a model that has nothing left to say may go on with line ends for long.
    draft.isBlank &&= text.trim() === ""
  }

  addCall(fragment: CallFragment): void {
    this.#offered ??= offeredNames(this.#asked, this.#names)
    let call = draftFor(fragment, this.#calls, this.#offered)
    if (call === null) {
      // A call that never comes to anything would hold up everything behind it.
      if (fragment.id + fragment.name + fragment.arguments === "") return
      call = new CallDraft(fragment.index)
      this.#calls.push(call)
      this.#drafts.push(call)
    }
    call.absorb(fragment)
  }

  /** Writes what can be told by now. */
  deliver(): void {
    while (this.#current < this.#drafts.length) {
      const draft = this.#drafts[this.#current]!
      this.#write(draft, false)
      const isLast = this.#current === this.#drafts.length - 1
      if (isLast || (draft.kind === "call" && !draft.complete)) return
      this.#close(draft)
    }
  }

  /** Writes the rest. */
  finish(): void {
    while (this.#current < this.#drafts.length) {
      const draft = this.#drafts[this.#current]!
      this.#write(draft, true)
      this.#close(draft)
    }
  }

  #write(draft: Draft, isWhole: boolean): void {
    if (draft.kind === "call") this.#writeCall(draft, isWhole)
    else writeText(this.#frames, draft)
  }

  #close(draft: Draft): void {
    this.#current += 1
    // Text of nothing but space was never opened, nor was a call without a name.
    if (!draft.isOpen) return
    if (draft.kind === "thinking") this.#frames.signature()
    if (draft.kind === "call" && this.#isLive !== true) this.#frames.delta(JSON.stringify(inputOf(draft.arguments)))
    this.#isLive = null
    this.#frames.blockStop()
  }

  #writeCall(call: CallDraft, isWhole: boolean): void {
    if (!call.isOpen) {
      if (!this.#mayOpen(call, isWhole)) return
      call.callId = this.#idFor(call.id)
      this.toolBlocks += 1
      this.#frames.toolStart(call.callId, this.#names.toCaller(call.name))
    }
    if (call.pending === "") return
    // Arguments that are no object would break the caller's parser: they wait, and are mended as in a whole answer.
    this.#isLive ??= startsObject(call.pending)
    if (this.#isLive !== true) return
    this.#frames.delta(call.pending)
    call.pending = ""
  }

  /** The name and the id cannot be changed once they are told, so they must be whole. */
  #mayOpen(call: CallDraft, isWhole: boolean): boolean {
    if (call.name === "") return false
    if (isWhole || call.complete || call.arguments !== "") return true
    const offered = this.#offered
    if (call.id === "" || offered === null || !offered.has(call.name)) return false
    return ![...offered].some((tool) => tool !== call.name && tool.startsWith(call.name))
  }
}

function writeText(frames: MessageFrames, draft: TextDraft): void {
  if (draft.pending === "") return
  if (!draft.isOpen) {
    // The vendor refuses blank text when it is sent back, so it waits for something to go with.
    if (draft.kind !== "thinking" && draft.isBlank) return
    draft.isOpen = true
    frames.textStart(draft.kind === "thinking" ? "thinking" : "text")
  }
  frames.delta(draft.pending)
  draft.pending = ""
}

/** Null for white space, which does not tell yet. */
function startsObject(text: string): boolean | null {
  const start = text.trimStart()
  return start === "" ? null : start.startsWith("{")
}

/** The names that the model may have been given; which limit cut them is not known here, so they are there as asked for too. */
function offeredNames(asked: JsonObject, names: ToolNames): ReadonlySet<string> {
  const offered = new Set<string>()
  for (const tool of listOf(asked.tools)) {
    if (!isObject(tool) || typeof tool.name !== "string" || tool.name === "") continue
    offered.add(tool.name)
    offered.add(names.toUpstream(tool.name))
  }
  return offered
}
