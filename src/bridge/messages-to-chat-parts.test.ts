import { describe, expect, test } from "bun:test"
import type { JsonObject } from "../core/json.ts"
import {
  finishReasonOf,
  isBreakdown,
  messagesUsage,
  mintMessageId,
  mintToolId,
  stopReasonOf,
  toolIdsFor,
  toolNames,
} from "./messages-to-chat-parts.ts"

describe("tool names", () => {
  const long = `mcp__server__${"a".repeat(70)}`
  const twin = `${long}b`
  const asked: JsonObject = {
    tools: [{ name: long }, { name: "plain_1" }, { name: "dotted.name" }, 7],
    messages: [
      { role: "assistant", content: [{ type: "tool_use", name: twin }] },
      { role: "user", content: "x" },
    ],
  }

  test.each([[64], [30], [9], [1]])("go within %d characters there and come back", (limit) => {
    const names = toolNames(asked, limit)
    const sent = [long, twin, "dotted.name"].map(names.toUpstream)
    expect(new Set(sent).size).toBe(3)
    for (const name of sent) {
      expect(name).toMatch(/^[A-Za-z0-9_-]+$/)
      expect(name.length).toBeLessThanOrEqual(Math.max(limit, 9))
    }
    expect(sent.map(names.toCaller)).toEqual([long, twin, "dotted.name"])
    // The way back does not need to know the limit.
    expect(sent.map(toolNames(asked, null).toCaller)).toEqual([long, twin, "dotted.name"])
  })

  test("that any upstream takes, or that nobody shortened, stay", () => {
    const names = toolNames(asked, 64)
    for (const name of ["plain_1", "unknown", "ends_in_deadbeef", "", "constructor"])
      expect(names.toCaller(name)).toBe(name)
    expect(names.toUpstream("plain_1")).toBe("plain_1")
    expect(names.toUpstream("a".repeat(64))).toBe("a".repeat(64))
    expect(toolNames(asked, null).toUpstream(long)).toBe(long)
  })

  test("of the caller's own that look shortened are the caller's", () => {
    const lookalike = toolNames({}, 64).toUpstream(long)
    expect(toolNames({ tools: [{ name: long }, { name: lookalike }] }, 64).toCaller(lookalike)).toBe(lookalike)
  })
})

describe("ids", () => {
  test("are recognisable and new each time", () => {
    expect(mintMessageId()).toMatch(/^msg_[0-9a-f]{32}$/)
    expect(mintToolId()).toMatch(/^toolu_[0-9a-f]{32}$/)
    expect(mintMessageId()).not.toBe(mintMessageId())
  })

  test("of calls are the upstream's, unless the caller could not answer by them", () => {
    const used = { type: "tool_use", id: "call_0", name: "f", input: {} }
    const idFor = toolIdsFor({ messages: [{ role: "assistant", content: [used] }] })
    expect(idFor("call_1#odd/☃")).toBe("call_1#odd/☃")
    for (const odd of ["call_0", "call_1#odd/☃", "", null, undefined, 7]) expect(idFor(odd)).toMatch(/^toolu_/)
  })
})

describe("stop reasons", () => {
  const ending = { finishReason: "stop", refused: false, toolBlocks: 0, matchedStop: undefined, stopSequences: ["A"] }

  test.each([
    ["stop", {}, "end_turn"],
    ["eos", {}, "end_turn"],
    ["constructor", {}, "end_turn"],
    [null, {}, "end_turn"],
    ["length", {}, "max_tokens"],
    ["length", { toolBlocks: 1 }, "max_tokens"],
    ["content_filter", {}, "refusal"],
    ["content_filter", { toolBlocks: 1 }, "refusal"],
    ["stop", { refused: true }, "refusal"],
    ["length", { refused: true }, "refusal"],
    ["tool_calls", { toolBlocks: 1 }, "tool_use"],
    ["tool_calls", {}, "end_turn"],
    ["function_call", { toolBlocks: 1 }, "tool_use"],
    ["stop", { toolBlocks: 2 }, "tool_use"],
    ["a new one", { toolBlocks: 1 }, "tool_use"],
    [null, { toolBlocks: 1 }, "tool_use"],
    ["stop", { toolBlocks: 1, matchedStop: "A" }, "tool_use"],
    ["stop", { matchedStop: "B" }, "end_turn"],
    ["stop", { matchedStop: 128009 }, "end_turn"],
    ["stop", { matchedStop: "A", stopSequences: null }, "end_turn"],
  ] as const)("%p with %j is %s", (finishReason, more, expected) => {
    expect(stopReasonOf({ ...ending, finishReason, ...more })).toEqual({ stop_reason: expected, stop_sequence: null })
  })

  test("name the stop sequence that was met", () => {
    expect(stopReasonOf({ ...ending, matchedStop: "A" })).toEqual({ stop_reason: "stop_sequence", stop_sequence: "A" })
  })

  test("blank ones are none", () => {
    for (const blank of ["", " ", "null", null, undefined, 7]) expect(finishReasonOf(blank)).toBeNull()
    expect(finishReasonOf(" stop ")).toBe("stop")
  })

  test("some are breakdowns", () => {
    expect(isBreakdown("insufficient_system_resource")).toBe(true)
    expect(isBreakdown("stop")).toBe(false)
    expect(isBreakdown(null)).toBe(false)
  })
})

test("usage is zeros where nobody counted", () => {
  expect(messagesUsage(null)).toEqual({
    input_tokens: 0,
    output_tokens: 0,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
  })
})
