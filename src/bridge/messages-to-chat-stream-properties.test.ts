import { expect, test } from "bun:test"
import fc from "fast-check"
import { asked } from "../../test/support/bridged-streams.ts"
import {
  callDeltas,
  chances,
  chunksOf,
  completions,
  cut,
  deltasOf,
  dice,
  interleave,
  wholeAnswer,
} from "../../test/support/cut-completions.ts"
import { checkBeginning, checkMessages, withoutMintedIds } from "../../test/support/messages-check.ts"
import { utf8 } from "../lib/bytes.ts"
import { BridgeTap } from "../relay/taps/bridge.ts"
import { messagesToChat } from "./messages-to-chat.ts"

/** What the caller receives for the upstream's bytes, cut anywhere. */
function translate(chunks: readonly string[], random: () => number): string {
  const tap = new BridgeTap(messagesToChat.stream(asked), () => utf8(""))
  const bytes = utf8(chunks.map((data) => `data: ${data}\n\n`).join(""))
  const passed = cut(bytes, 400, random).map((piece) => tap.push(piece))
  passed.push(tap.end())
  expect(tap.state).toBe("complete")
  return Buffer.concat([...passed.filter((part) => part !== null), tap.closing(null)]).toString()
}

test("however a completion is cut and mixed, the stream is valid and its message is that of the whole answer", () => {
  fc.assert(
    fc.property(completions, chances, (completion, seed) => {
      const random = dice(seed)
      const chunks = chunksOf(deltasOf(completion, random), completion, random)
      const { message } = checkMessages(translate(chunks, random))
      const answer = messagesToChat.answer(wholeAnswer(completion), asked)
      expect(withoutMintedIds(message)).toEqual(withoutMintedIds(answer))
    }),
    { numRuns: 500 },
  )
})

test("text, reasoning and calls all mixed: nothing is lost, and each kind keeps its order", () => {
  fc.assert(
    fc.property(completions, chances, (completion, seed) => {
      const random = dice(seed)
      // Marks instead of random words: a piece of white space alone, between two calls, would be dropped by design.
      const reasoning = Array.from(completion.reasoning, (_, at) => ({ reasoning: `r${at}` }))
      const text = Array.from(completion.text, (_, at) => ({ content: `t${at}` }))
      const manners = { ...completion.manners, interleaved: true }
      const mixed = interleave([reasoning, text, ...callDeltas({ ...completion, manners }, random)], random)
      const { message } = checkMessages(translate(chunksOf(mixed, completion, random), random))
      const said = (type: string) => message.content.filter((block) => block.type === type)
      const joined = (type: string) =>
        said(type)
          .map((block) => block[type])
          .join("")
      expect(joined("thinking")).toBe(reasoning.map((delta) => delta.reasoning).join(""))
      expect(joined("text")).toBe(text.map((delta) => delta.content).join(""))
      const byId = said("tool_use").map(({ id, name, input }) => ({ id, name, arguments: JSON.stringify(input) }))
      expect(byId.toSorted((a, b) => String(a.id).localeCompare(String(b.id)))).toEqual(
        completion.calls.map((call) => ({ ...call, arguments: JSON.stringify(JSON.parse(call.arguments)) })),
      )
    }),
    { numRuns: 300 },
  )
})

test("cut off anywhere, what was told so far is a valid beginning and no end", () => {
  fc.assert(
    fc.property(completions, chances, (completion, seed) => {
      const random = dice(seed)
      const stream = messagesToChat.stream(asked)
      let told = ""
      for (const delta of deltasOf(completion, random)) {
        told += stream.read(null, JSON.stringify({ choices: [{ delta }] }))
        expect([stream.complete, stream.begun]).toEqual([false, told !== ""])
      }
      checkBeginning(told)
    }),
    { numRuns: 100 },
  )
})

const fieldNames = [
  ...["choices", "delta", "message", "content", "reasoning", "reasoning_content", "refusal", "tool_calls", "error"],
  ...["function_call", "function", "name", "arguments", "id", "index", "finish_reason", "usage", "stop_reason"],
  ...["logprobs", "type", "prompt_tokens", "completion_tokens", "text", "thinking"],
]
const odd = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom<unknown>(null, true, 0, -1, 1.5, "", " ", "x", "stop", "error", "{", "}", '{"a":1}', "f", [], {}),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...fieldNames), tie("value"), { maxKeys: 5 }),
  ),
})).value
const some = <T>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(fields, { requiredKeys: [] })
const oddCall = some({ index: odd, id: odd, function: some({ name: odd, arguments: odd }) })
const oddDelta = some({ content: odd, tool_calls: odd, reasoning: odd, refusal: odd, function_call: odd })
const oddChoice = some({ delta: oddDelta, finish_reason: odd, logprobs: odd, index: odd, stop_reason: odd })
const oddData = fc.oneof(
  odd.map((value) => JSON.stringify(value)),
  fc.record({ choices: fc.array(oddChoice, { maxLength: 2 }), usage: odd }).map((value) => JSON.stringify(value)),
  fc.array(oddCall, { maxLength: 3 }).map((tool_calls) => JSON.stringify({ choices: [{ delta: { tool_calls } }] })),
  fc.string(),
)

test("chunks of any shape neither throw nor break the sequence", () => {
  fc.assert(
    fc.property(fc.array(oddData, { maxLength: 8 }), (chunks) => {
      const stream = messagesToChat.stream(asked)
      const told = chunks.map((data) => stream.read(null, data)).join("")
      const leniency = { brokenArguments: true }
      if (stream.error === null) checkMessages(told + stream.closing(null), leniency)
      else expect(checkBeginning(told, leniency).at(-1)?.type).toBe("error")
      expect(typeof stream.produced).toBe("string")
    }),
    { numRuns: 1500 },
  )
})
