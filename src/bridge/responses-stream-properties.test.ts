import { expect, test } from "bun:test"
import fc from "fast-check"
import { readWithOpenAi } from "../../test/support/openai-reader.ts"
import { checkStream, withoutIds } from "../../test/support/responses-check.ts"
import type { JsonObject } from "../core/json.ts"
import { ChatToResponsesStream } from "./responses-stream.ts"
import { responsesToChat } from "./responses-to-chat.ts"

const asked: JsonObject = { model: "m", input: "hi", tools: [{ type: "function", name: "f" }] }
const created = 1_700_000_000
const usage = { prompt_tokens: 3, completion_tokens: 4 }

interface Completion {
  readonly reasoning: string
  readonly text: string
  readonly calls: readonly { readonly id: string; readonly arguments: string }[]
  readonly finish: "stop" | "length"
}

// White space at the seams must survive, but a text of nothing else is dropped by design.
const words = fc.oneof(
  fc.constant(""),
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 30 }).map((text) => `${text}.`),
)
const completions: fc.Arbitrary<Completion> = fc.record({
  reasoning: words,
  text: words,
  calls: fc
    .array(fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 3 }), { maxLength: 4 })
    .map((all) => all.map((args, index) => ({ id: `call_${index}`, arguments: JSON.stringify(args) }))),
  finish: fc.constantFrom("stop", "length"),
})

/** Cuts a text at random places, between the halves of a character pair too. */
function cut(text: string, random: () => number): string[] {
  const pieces: string[] = []
  for (let at = 0; at < text.length; ) {
    const size = 1 + Math.floor(random() * 6)
    pieces.push(text.slice(at, at + size))
    at += size
  }
  return pieces
}

/** Takes from the lists in random turns, each list in its own order. */
function interleave<T>(lists: readonly (readonly T[])[], random: () => number): T[] {
  const rest = lists.map((list) => [...list]).filter((list) => list.length > 0)
  const mixed: T[] = []
  while (rest.length > 0) {
    const at = Math.floor(random() * rest.length)
    mixed.push(rest[at]!.shift()!)
    if (rest[at]!.length === 0) rest.splice(at, 1)
  }
  return mixed
}

function callDeltas(completion: Completion, random: () => number): JsonObject[][] {
  return completion.calls.map((call, index) => [
    { tool_calls: [{ index, id: call.id, type: "function", function: { name: "f", arguments: "" } }] },
    ...cut(call.arguments, random).map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
  ])
}

/** The first pieces of the calls come in the calls' order; nothing else is in order. */
function mixedCalls(completion: Completion, random: () => number): JsonObject[] {
  const deltas = callDeltas(completion, random)
  const firsts = deltas.map(([first]) => first!)
  const rests = deltas.map(([, ...rest]) => rest)
  const until = Math.floor(random() * (firsts.length + 1))
  const early = interleave(rests.slice(0, until), random)
  return [...firsts.slice(0, until), ...early, ...firsts.slice(until), ...interleave(rests.slice(until), random)]
}

function deltasOf(completion: Completion, random: () => number): JsonObject[] {
  return [
    ...cut(completion.reasoning, random).map((piece) => ({ reasoning_content: piece })),
    ...cut(completion.text, random).map((piece) => ({ content: piece })),
    ...mixedCalls(completion, random),
  ]
}

/** Packs deltas into chunks with noise in between; the finish rides with the last one, or comes alone. */
function chunksOf(deltas: readonly JsonObject[], finish: string, random: () => number): string[] {
  const noise = [{ role: "assistant" }, { content: "" }, { tool_calls: [] }, {}]
  const noisy = deltas.flatMap((delta) =>
    random() < 0.2 ? [noise[Math.floor(random() * noise.length)]!, delta] : [delta],
  )
  const last = random() < 0.5 ? noisy.pop() : undefined
  const chunk = (delta: JsonObject, finish_reason: string | null) =>
    JSON.stringify({ created, choices: [{ index: 0, delta, finish_reason }] })
  const end =
    random() < 0.5 ? [JSON.stringify({ choices: [], usage }), "[DONE]"] : [JSON.stringify({ choices: [], usage })]
  return [...noisy.map((delta) => chunk(delta, null)), chunk(last ?? {}, finish), ...end]
}

function translate(chunks: readonly string[]): string {
  const stream = new ChatToResponsesStream(asked)
  return chunks.map((data) => stream.read(null, data)).join("") + stream.closing(null)
}

function wholeAnswer({ reasoning, text, calls, finish }: Completion): JsonObject {
  const tool_calls = calls.map((call) => ({
    id: call.id,
    type: "function",
    function: { name: "f", arguments: call.arguments },
  }))
  const message = { role: "assistant", content: text === "" ? null : text, reasoning_content: reasoning, tool_calls }
  return { created, choices: [{ index: 0, message, finish_reason: finish }], usage }
}

const seeds = fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }))

function dice(stream: fc.Stream<number>): () => number {
  return () => stream.next().value as number
}

test("however a completion is cut and mixed, the stream is valid and its response is that of the whole answer", () => {
  fc.assert(
    fc.property(completions, seeds, (completion, stream) => {
      const random = dice(stream)
      const chunks = chunksOf(deltasOf(completion, random), completion.finish, random)
      const { response } = checkStream(translate(chunks))
      expect(withoutIds(response)).toEqual(withoutIds(responsesToChat.answer(wholeAnswer(completion), asked)))
    }),
    { numRuns: 300 },
  )
})

test("text, reasoning and calls all mixed: nothing is lost, and each kind keeps its order", () => {
  fc.assert(
    fc.property(completions, seeds, (completion, stream) => {
      const random = dice(stream)
      // Marks instead of random words: a piece of white space alone, between two calls, would be dropped by design.
      const reasoning = Array.from(completion.reasoning, (_, at) => ({ reasoning: `r${at}` }))
      const text = Array.from(completion.text, (_, at) => ({ content: `t${at}` }))
      const deltas = interleave([reasoning, text, ...callDeltas(completion, random)], random)
      const { response } = checkStream(translate(chunksOf(deltas, "stop", random)))
      const said = (type: string, field: string) =>
        response.output
          .filter((item) => item.type === type)
          .flatMap((item) => item[field] as { text: string }[])
          .map((part) => part.text)
          .join("")
      expect(said("reasoning", "summary")).toBe(reasoning.map((delta) => delta.reasoning).join(""))
      expect(said("message", "content")).toBe(text.map((delta) => delta.content).join(""))
      const calls = response.output.filter((item) => item.type === "function_call")
      const byId = calls.map((call) => ({ id: call.call_id, arguments: call.arguments }))
      expect(byId.toSorted((a, b) => String(a.id).localeCompare(String(b.id)))).toEqual([...completion.calls])
    }),
    { numRuns: 300 },
  )
})

test("the openai package reads mixed streams as well", async () => {
  await fc.assert(
    fc.asyncProperty(completions, seeds, async (completion, stream) => {
      const random = dice(stream)
      const read = await readWithOpenAi(translate(chunksOf(deltasOf(completion, random), completion.finish, random)))
      expect(read.output_text).toBe(completion.text)
      expect(read.usage?.total_tokens).toBe(7)
      const calls = read.output.filter((item) => item.type === "function_call")
      expect(calls.map((call) => call.arguments)).toEqual(completion.calls.map((call) => call.arguments))
    }),
    { numRuns: 25 },
  )
})

const oddChunk = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom<unknown>(null, true, 0, -1, 1.5, "", "x", "stop", "length", "{", "}", "f", [], {}),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(
      fc.constantFrom(
        ...[
          "choices",
          "delta",
          "message",
          "content",
          "reasoning",
          "refusal",
          "tool_calls",
          "function_call",
          "function",
        ],
        ...[
          "name",
          "arguments",
          "id",
          "index",
          "finish_reason",
          "usage",
          "logprobs",
          "top_logprobs",
          "created",
          "type",
        ],
        ...["prompt_tokens", "completion_tokens", "text", "thinking", "service_tier", "error"],
      ),
      tie("value"),
      { maxKeys: 5 },
    ),
  ),
})).value

const oddDelta = fc.record(
  { content: oddChunk, tool_calls: oddChunk, reasoning: oddChunk, function_call: oddChunk },
  { requiredKeys: [] },
)
const oddChoice = fc.record(
  { delta: oddDelta, finish_reason: oddChunk, logprobs: oddChunk, index: oddChunk },
  { requiredKeys: [] },
)
const oddCall = fc.record(
  { index: oddChunk, id: oddChunk, function: fc.record({ name: oddChunk, arguments: oddChunk }, { requiredKeys: [] }) },
  { requiredKeys: [] },
)

test("chunks of any shape neither throw nor break the sequence", () => {
  const shapes = fc.oneof(
    oddChunk,
    fc.record({ choices: fc.array(oddChoice, { maxLength: 2 }), usage: oddChunk }),
    fc.record({
      choices: fc.tuple(fc.record({ delta: fc.record({ tool_calls: fc.array(oddCall, { maxLength: 3 }) }) })),
    }),
  )
  const data = fc.oneof(
    shapes.map((value) => JSON.stringify(value)),
    fc.string(),
  )
  fc.assert(
    fc.property(fc.array(data, { maxLength: 8 }), (chunks) => {
      const stream = new ChatToResponsesStream(asked)
      const text = chunks.map((each) => stream.read(null, each)).join("") + stream.closing(null)
      checkStream(text)
    }),
    { numRuns: 1500 },
  )
})
