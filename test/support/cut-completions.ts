import fc from "fast-check"
import type { JsonObject } from "../../src/core/json.ts"
import { called, chunk, fragment, tokens, usage } from "./bridged-streams.ts"

/** What a model made, and the ways of its upstream to tell of it. */
export interface Completion {
  readonly reasoning: string
  readonly text: string
  readonly refusal: string
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[]
  readonly finish: "stop" | "length" | "tool_calls" | "content_filter"
  readonly manners: Manners
}

export interface Manners {
  /** Which index a call's pieces bear: its own, always 0, or none. */
  readonly index: "own" | "zero" | "none"
  readonly interleaved: boolean
  readonly name: "once" | "always" | "split"
  readonly repeatsArguments: boolean
  readonly reasoningField: "reasoning" | "reasoning_content"
  readonly usage: "alone" | "with the finish" | "always"
}

const words = fc.oneof(fc.constant(""), fc.string({ unit: "grapheme", maxLength: 30 }))
const inputs = fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 3 })

export const completions: fc.Arbitrary<Completion> = fc.record({
  reasoning: words,
  text: words,
  refusal: fc.oneof({ weight: 4, arbitrary: fc.constant("") }, words),
  calls: fc
    .array(fc.tuple(fc.constantFrom("f", "weather", "weather_now", "unheard_of"), inputs), { maxLength: 4 })
    .map((all) => all.map(([name, input], at) => ({ id: `call_${at}`, name, arguments: JSON.stringify(input) }))),
  finish: fc.constantFrom("stop", "length", "tool_calls", "content_filter"),
  manners: fc.record({
    index: fc.constantFrom("own", "zero", "none"),
    interleaved: fc.boolean(),
    name: fc.constantFrom("once", "always", "split"),
    repeatsArguments: fc.boolean(),
    reasoningField: fc.constantFrom("reasoning", "reasoning_content"),
    usage: fc.constantFrom("alone", "with the finish", "always"),
  }),
})

export const chances = fc.integer()

/** Numbers from 0 to 1 that a seed decides, evenly spread: fast-check's own favour the smallest, which cut into single bytes. */
export function dice(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Cuts at random places, between the halves of a character pair too. */
export function cut<Whole extends string | Uint8Array>(whole: Whole, most: number, random: () => number): Whole[] {
  const pieces: Whole[] = []
  for (let at = 0; at < whole.length; ) {
    const size = 1 + Math.floor(random() * most)
    pieces.push(whole.slice(at, at + size) as Whole)
    at += size
  }
  return pieces
}

/** Takes from the lists in random turns, each list in its own order. */
export function interleave<T>(lists: readonly (readonly T[])[], random: () => number): T[] {
  const rest = lists.map((list) => [...list]).filter((list) => list.length > 0)
  const mixed: T[] = []
  while (rest.length > 0) {
    const at = Math.floor(random() * rest.length)
    mixed.push(rest[at]!.shift()!)
    if (rest[at]!.length === 0) rest.splice(at, 1)
  }
  return mixed
}

/** The deltas of each call. Where the index does not tell calls apart, the id in every piece must. */
export function callDeltas({ calls, manners }: Completion, random: () => number): JsonObject[][] {
  return calls.map(({ id, name, arguments: args }, place) => {
    const index = manners.index === "own" ? place : manners.index === "zero" ? 0 : null
    const needsId = manners.interleaved || manners.name === "always"
    const everyId = manners.index !== "own" && needsId ? id : null
    const everyName = manners.name === "always" ? name : null
    const at =
      manners.name === "split" && manners.index === "own" ? 1 + Math.floor(random() * name.length) : name.length
    const pieces = [
      fragment(index, id, name.slice(0, at), ""),
      ...(at === name.length ? [] : [fragment(index, everyId, name.slice(at), "")]),
      ...cut(args, 6, random).map((piece) => fragment(index, everyId, everyName, piece)),
      ...(manners.repeatsArguments ? [fragment(index, id, name, args)] : []),
    ]
    return pieces.map((piece) => called(piece))
  })
}

/** The first pieces of the calls come in the calls' order; nothing else has to be in order. */
function mixedCalls(completion: Completion, random: () => number): JsonObject[] {
  const deltas = callDeltas(completion, random)
  if (!completion.manners.interleaved) return deltas.flat()
  const firsts = deltas.map(([first]) => first!)
  const rests = deltas.map(([, ...rest]) => rest)
  const until = Math.floor(random() * (firsts.length + 1))
  const early = interleave(rests.slice(0, until), random)
  return [...firsts.slice(0, until), ...early, ...firsts.slice(until), ...interleave(rests.slice(until), random)]
}

export function deltasOf(completion: Completion, random: () => number): JsonObject[] {
  const { reasoning, text, refusal, manners } = completion
  return [
    ...cut(reasoning, 6, random).map((piece) => ({ [manners.reasoningField]: piece })),
    ...cut(text, 6, random).map((content) => ({ content })),
    ...cut(refusal, 6, random).map((piece) => ({ refusal: piece })),
    ...mixedCalls(completion, random),
  ]
}

const noise = [{ role: "assistant" }, { content: "" }, { content: null, tool_calls: [] }, {}]

/** Packs deltas into chunks with noise in between; the finish rides with the last one, or comes alone. */
export function chunksOf(
  deltas: readonly JsonObject[],
  { finish, manners }: Completion,
  random: () => number,
): string[] {
  const noisy = deltas.flatMap((delta) =>
    random() < 0.2 ? [noise[Math.floor(random() * noise.length)]!, delta] : [delta],
  )
  const last = random() < 0.5 ? noisy.pop() : undefined
  const running = manners.usage === "always" ? { usage: tokens(3, 1) } : { usage: null }
  const final = manners.usage === "alone" ? { usage: null } : { usage: tokens(3, 4) }
  return [
    ...noisy.map((delta) => chunk(delta, random() < 0.1 ? "" : null, running)),
    chunk(last ?? {}, finish, final),
    ...(manners.usage === "alone" ? [usage(3, 4)] : []),
    ...(random() < 0.5 ? ["[DONE]"] : []),
  ]
}

export function wholeAnswer({ reasoning, text, refusal, calls, finish, manners }: Completion): JsonObject {
  const message = {
    role: "assistant",
    content: text === "" ? null : text,
    refusal: refusal === "" ? null : refusal,
    [manners.reasoningField]: reasoning,
    tool_calls: calls.map(({ id, ...called }) => ({ id, type: "function", function: called })),
  }
  return { choices: [{ index: 0, message, finish_reason: finish }], usage: tokens(3, 4) }
}
