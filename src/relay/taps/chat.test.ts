import { describe, expect, test } from "bun:test"
import { delta, done, finish, frame, read, role, tokens, usageFrame } from "../../../test/support/chat-frames.ts"
import { GatewayError } from "../../core/errors.ts"
import { textOf, utf8 } from "../../lib/bytes.ts"
import { ChatTap } from "./chat.ts"

const dataOf = (text: string): unknown[] =>
  text
    .split("\n\n")
    .filter((block) => block.startsWith("data: {"))
    .map((block) => JSON.parse(block.slice(6)))

describe("the first token", () => {
  const firstTokens: Readonly<Record<string, string>> = {
    content: delta({ content: "Hi" }),
    "content that is only a space": delta({ content: " " }),
    reasoning_content: delta({ reasoning_content: "Hm" }),
    reasoning: delta({ reasoning: "Hm" }),
    refusal: delta({ refusal: "No" }),
    "a tool call": delta({
      tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "f", arguments: "" } }],
    }),
    "a function call": delta({ function_call: { name: "f", arguments: "" } }),
    audio: delta({ audio: { id: "audio_1", data: "AAAA" } }),
    "a finish without content": finish("content_filter"),
    "a finish of a later choice": finish("stop", 3),
  }
  test.each(Object.entries(firstTokens))("is %s", (_, event) => {
    expect(read([role]).tap.begun).toBe(false)
    expect(read([role, event]).tap.begun).toBe(true)
  })

  const preamble: Readonly<Record<string, string>> = {
    "a role-only chunk": delta({ role: "assistant" }),
    "a role with empty content": role,
    "content null": delta({ role: "assistant", content: null, refusal: null }),
    "an empty delta": delta({}),
    "an empty list of tool calls": delta({ tool_calls: [] }),
    "empty reasoning": delta({ reasoning_content: "", reasoning: "" }),
    "no delta at all": frame({ choices: [{ index: 0 }] }),
    "a choice that is no object": frame({ choices: [null, 1, "x"] }),
    "an empty finish": finish(""),
    "filter results without choices": frame({ choices: [], prompt_filter_results: [] }),
    "no choices": frame({}),
    "choices that are no list": frame({ choices: "x" }),
    usage: usageFrame,
    "a comment": ": ping\n\n",
    "an event of other fields": "event: ping\nid: 3\n\n",
    "text that is no JSON": "data: ping\n\n",
    "JSON that is no object": "data: [1]\n\ndata: null\n\ndata: 3\n\n",
    "the end marker": done,
  }
  test.each(Object.entries(preamble))("is not %s", (_, event) => {
    expect(read([event]).tap.begun).toBe(false)
  })
})

describe("progress", () => {
  test("grows with chunks, usage and errors; not with comments, pings or other text", () => {
    const { tap } = read([role, usageFrame, 'data: {"error":{"message":"x"}}\n\n'])
    expect(tap.progress).toBe(3)
    tap.push(utf8(": ping\n\n:\n\nevent: ping\n\ndata: ping\n\n"))
    expect(tap.progress).toBe(3)
  })
})

describe("usage", () => {
  test("in a chunk of its own is held and leaves once, unchanged, before the end marker", () => {
    const spelled =
      'data:  {"choices":[] ,"id":"chatcmpl-1","usage":{"completion_tokens":4,"prompt_tokens":9.0e0}}\r\n\r\n'
    const { tap, passed } = read([delta({ content: "Hi" }), finish(), spelled, done])
    expect(passed).toBe(delta({ content: "Hi" }) + finish())
    expect(tap.usage).toEqual({
      input: 9,
      cachedInput: 0,
      cacheWrite: 0,
      audioInput: 0,
      output: 4,
      reasoning: 0,
      audioOutput: 0,
    })
    expect(tap.wantsCount).toBe(false)
    expect(textOf(tap.closing(null))).toBe(spelled + done)
  })

  test("in the finish chunk is read; a usage chunk of ours carries it on as the upstream wrote it", () => {
    const rich = { ...tokens, cost: 0.25, prompt_tokens_details: { cached_tokens: 3 } }
    const last = frame({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage: rich })
    const { tap, passed } = read([delta({ content: "Hi" }), last, done])
    expect(passed).toBe(delta({ content: "Hi" }) + last)
    expect(tap.usage?.cachedInput).toBe(3)
    const closing = textOf(tap.closing(null))
    expect(closing.endsWith(done)).toBe(true)
    expect(dataOf(closing)).toEqual([
      { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage: rich },
    ])
  })

  test("in every chunk: the last one counts", () => {
    const growing = (count: number) =>
      frame({ choices: [{ index: 0, delta: { content: "x" } }], usage: { ...tokens, completion_tokens: count } })
    const { tap } = read([growing(1), growing(2), growing(3), finish(), done])
    expect(tap.usage?.output).toBe(3)
    expect(dataOf(textOf(tap.closing(null)))).toMatchObject([{ choices: [], usage: { completion_tokens: 3 } }])
  })

  test("told twice in chunks of its own: the last one is delivered, alone", () => {
    const final = frame({ choices: [], usage: { ...tokens, completion_tokens: 7 } })
    const { tap, passed } = read([delta({ content: "Hi" }), usageFrame, finish(), final, done])
    expect(passed).toBe(delta({ content: "Hi" }) + finish())
    expect(tap.usage?.output).toBe(7)
    expect(textOf(tap.closing(null))).toBe(final + done)
  })

  test("corrected by a later chunk with choices: what is delivered is what is charged", () => {
    const corrected = frame({
      choices: [{ index: 0, delta: {}, finish_reason: "stop" }],
      usage: { ...tokens, completion_tokens: 8 },
    })
    const { tap } = read([delta({ content: "Hi" }), usageFrame, corrected, done])
    expect(tap.usage?.output).toBe(8)
    expect(dataOf(textOf(tap.closing(null)))).toMatchObject([{ choices: [], usage: { completion_tokens: 8 } }])
  })

  test.each([
    ["under a foreign id", frame({ id: "other", choices: [], usage: tokens })],
    ["without an id", frame({ id: undefined, choices: [], usage: tokens })],
    ["without choices", frame({ usage: tokens })],
    ["with choices null", frame({ choices: null, usage: tokens })],
  ])("%s is replaced by a chunk with the stream's own id", (_, odd) => {
    const { tap, passed } = read([delta({ content: "Hi" }), finish(), odd, done])
    expect(passed).toBe(delta({ content: "Hi" }) + finish())
    expect(dataOf(textOf(tap.closing(null)))).toEqual([
      { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage: tokens },
    ])
  })

  test.each([
    ["a usage of another dialect", { input_tokens: 3, output_tokens: 4 }],
    ["a usage without numbers", { prompt_tokens: null, completion_tokens: null }],
  ])("%s is none: it gives way to the counted one", (_, usage) => {
    const { tap, passed } = read([delta({ content: "Hi" }), finish(), frame({ choices: [], usage }), done])
    expect(tap.wantsCount).toBe(true)
    expect(passed).toBe(delta({ content: "Hi" }) + finish())
    const counted = { input: 2, cachedInput: 0, cacheWrite: 0, audioInput: 0, output: 1, reasoning: 0, audioOutput: 0 }
    expect(dataOf(textOf(tap.closing(counted)))).toMatchObject([
      { usage: { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 } },
    ])
  })

  test("usage null in each chunk is none", () => {
    const { tap, passed } = read([
      frame({ choices: [{ index: 0, delta: { content: "x" } }], usage: null }),
      finish(),
      done,
    ])
    expect(tap.wantsCount).toBe(true)
    expect(dataOf(passed)).toHaveLength(2)
  })

  test("an explicit zero is a usage", () => {
    const { tap } = read([finish(), frame({ choices: [], usage: { prompt_tokens: 0, completion_tokens: 0 } }), done])
    expect(tap.wantsCount).toBe(false)
    expect(tap.usage).toEqual({
      input: 0,
      cachedInput: 0,
      cacheWrite: 0,
      audioInput: 0,
      output: 0,
      reasoning: 0,
      audioOutput: 0,
    })
  })

  test("a counted one is delivered under the stream's id, model and fingerprint", () => {
    const { tap } = read([
      frame({ system_fingerprint: "fp_1", choices: [{ index: 0, delta: { content: "Hi" } }] }),
      finish(),
      done,
    ])
    expect(tap.wantsCount).toBe(true)
    const closing = textOf(
      tap.closing({ input: 5, cachedInput: 0, cacheWrite: 0, audioInput: 0, output: 2, reasoning: 0, audioOutput: 0 }),
    )
    expect(closing).toBe(
      'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_1",' +
        `"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}\n\n${done}`,
    )
  })

  test("comments between the usage chunk and the end marker stay where they stood", () => {
    const { tap, passed } = read([delta({ content: "Hi" }), finish(), usageFrame, ": cost 3\n\n: bye\n\n", done])
    expect(passed + textOf(tap.closing(null))).toBe(
      `${delta({ content: "Hi" })}${finish()}${usageFrame}: cost 3\n\n: bye\n\n${done}`,
    )
  })

  test("comments before it are not held", () => {
    expect(read([": open\n\n", role]).passed).toBe(`: open\n\n${role}`)
  })
})

describe("the end", () => {
  test("what follows the end marker is dropped, in the same chunk and in later ones", () => {
    const { tap, passed } = read([
      `${delta({ content: "Hi" })}${done}${delta({ content: "more" })}`,
      delta({ content: "x" }),
    ])
    expect(passed).toBe(delta({ content: "Hi" }))
    expect(tap.ended).toBe(true)
    expect(tap.produced).toBe("Hi")
    expect(tap.end()).toBeNull()
  })

  test("the upstream's own spelling of the end marker is kept", () => {
    const { tap } = read([finish(), usageFrame, "data:[DONE]\r\n\r\n"])
    expect(textOf(tap.closing(null))).toBe(`${usageFrame}data:[DONE]\r\n\r\n`)
  })

  test("a finish without the end marker is complete, and gets one", () => {
    const { tap } = read([delta({ content: "Hi" }), finish(), usageFrame], "ended")
    expect(tap.ended).toBe(false)
    expect(tap.state).toBe("complete")
    expect(textOf(tap.closing(null))).toBe(usageFrame + done)
  })

  test("content without a finish or an end marker is open", () => {
    expect(read([delta({ content: "Hi" })], "ended").tap.state).toBe("open")
    expect(read([], "ended").tap.state).toBe("open")
  })

  test("an end marker without a finish is complete", () => {
    expect(read([delta({ content: "Hi" }), done]).tap.state).toBe("complete")
  })

  test("of several choices all that were seen must have finished", () => {
    const both = [delta({ content: "a" }, 0), delta({ content: "b" }, 1)]
    expect(read([...both, finish("stop", 1)], "ended").tap.state).toBe("open")
    expect(read([...both, finish("stop", 1), finish("stop", 0)], "ended").tap.state).toBe("complete")
  })

  test("several choices in one chunk are told apart", () => {
    const chunk = frame({
      choices: [
        { index: 0, delta: { content: "a" }, finish_reason: "stop" },
        { index: 1, delta: { content: "b" }, finish_reason: null },
      ],
    })
    expect(read([chunk], "ended").tap.state).toBe("open")
    expect(read([chunk, finish("length", 1)], "ended").tap.state).toBe("complete")
  })

  test("a choice that says more after its finish stays finished", () => {
    expect(read([finish(), delta({ content: "late" })], "ended").tap.state).toBe("complete")
  })

  test("an event that was cut in its middle does not reach the caller", () => {
    const whole = delta({ content: "Hi" })
    const { tap, passed } = read([whole, delta({ content: "lost" }).slice(0, -12)], "ended")
    expect(passed).toBe(whole)
    expect(tap.produced).toBe("Hi")
    expect(tap.state).toBe("open")
  })

  test("a last event without its blank line is whole if its JSON is", () => {
    for (const missing of [1, 2]) {
      const { tap, passed } = read([delta({ content: "Hi" }), finish().slice(0, -missing)], "ended")
      expect(dataOf(passed)).toHaveLength(2)
      expect(passed.endsWith("\n\n")).toBe(true)
      expect(tap.state).toBe("complete")
    }
  })

  test("an end marker without its blank line is one, and leaves with it", () => {
    const { tap, passed } = read([finish(), usageFrame, "data: [DONE]"], "ended")
    expect(passed).toBe(finish())
    expect(tap.ended).toBe(true)
    expect(textOf(tap.closing(null))).toBe(usageFrame + done)
  })

  test("a usage chunk without its blank line is read and leaves with it", () => {
    const { tap } = read([finish(), usageFrame.trimEnd()], "ended")
    expect(tap.usage?.output).toBe(4)
    expect(textOf(tap.closing(null))).toBe(usageFrame + done)
  })

  test("a comment cut in its middle is dropped", () => {
    expect(read([finish(), ": keep-ali"], "ended").passed).toBe(finish())
  })

  test("a stream without an id still closes", () => {
    const { tap } = read(['data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'], "ended")
    const counted = { input: 1, cachedInput: 0, cacheWrite: 0, audioInput: 0, output: 1, reasoning: 0, audioOutput: 0 }
    expect(dataOf(textOf(tap.closing(counted)))).toMatchObject([{ id: "", choices: [], usage: { total_tokens: 2 } }])
  })
})

describe("an error of the upstream", () => {
  const errors: Readonly<Record<string, string>> = {
    "as an object": 'data: {"error":{"message":"overloaded","code":529}}\n\n',
    "as text": 'data: {"error":"overloaded"}\n\n',
    "as a named event": 'event: error\ndata: {"message":"overloaded"}\n\n',
    "as a named event with plain text": "event: error\ndata: overloaded\n\n",
    "beside choices": frame({
      error: { message: "overloaded" },
      choices: [{ index: 0, delta: {}, finish_reason: "error" }],
    }),
  }
  test.each(Object.entries(errors))("%s is kept as it was written, and passed on", (_, event) => {
    const { tap, passed } = read([delta({ content: "Hi" }), event])
    expect(tap.error).toContain("overloaded")
    expect(passed).toBe(delta({ content: "Hi" }) + event)
    expect(tap.state).toBe("error_sent")
  })

  test("an end marker after it does not make it a success", () => {
    const { tap } = read([delta({ content: "Hi" }), finish(), 'data: {"error":{"message":"x"}}\n\n', done])
    expect(tap.state).toBe("error_sent")
  })

  test("error null is none", () => {
    expect(read([frame({ error: null, choices: [] })]).tap.error).toBeNull()
  })

  test("is not the first token: another upstream may take over", () => {
    expect(read([role, 'data: {"error":{"message":"x"}}\n\n']).tap.begun).toBe(false)
  })
})

test("our own error in mid-stream is one data frame in the dialect's envelope", () => {
  const error = new GatewayError("stream_silence_timeout", "the upstream fell silent")
  expect(textOf(new ChatTap().errorFrame(error, "req_1", "unified"))).toBe(
    'data: {"error":{"type":"timeout_error","code":"stream_silence_timeout","message":"the upstream fell silent","request_id":"req_1"},"request_id":"req_1"}\n\n',
  )
})

test("what the model produced is collected for counting: text of every kind, names and arguments of calls", () => {
  const { tap } = read([
    role,
    delta({ reasoning_content: "think " }),
    delta({ reasoning: "more " }),
    delta({ content: "Hello" }),
    delta({ content: " there" }, 1),
    delta({ refusal: " no" }),
    delta({ tool_calls: [{ function: { name: "look", arguments: "" } }, { function: { arguments: '{"q":' } }] }),
    delta({ tool_calls: [{ function: { arguments: "1}" } }, null, { function: null }] }),
    delta({ function_call: { name: "old", arguments: "{}" } }),
    delta({ content: ["not", "text"], audio: { data: "AAAA" } }),
  ])
  expect(tap.produced).toBe('think more Hello there nolook{"q":1}old{}')
})
