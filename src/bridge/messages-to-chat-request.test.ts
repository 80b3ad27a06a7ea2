import { describe, expect, test } from "bun:test"
import { GatewayError } from "../core/errors.ts"
import type { JsonObject, JsonValue } from "../core/json.ts"
import { textOf, utf8 } from "../lib/bytes.ts"
import { scanJson, spliceBytes } from "../lib/json-bytes.ts"
import { messagesToChatRequest } from "./messages-to-chat-request.ts"
import type { BridgeOptions } from "./translator.ts"

const options: BridgeOptions = { upstreamModel: "up", stream: false, streamOptions: true }
const plain = { model: "m", messages: [{ role: "user", content: "hi" }] }
const spoken = { model: "up", messages: [{ role: "user", content: "hi" }] }

/** The request as it goes over the wire. */
function request(fields: JsonObject, more: Partial<BridgeOptions> = {}): JsonObject {
  return JSON.parse(JSON.stringify(messagesToChatRequest({ ...plain, ...fields }, { ...options, ...more })))
}

/** What a request has beside its model and messages. */
function beside(fields: JsonObject, settings: Record<string, JsonValue> = {}): JsonObject {
  const { model, messages, ...rest } = request(fields, { settings })
  return rest
}

const schema = { type: "object", properties: { strict: { type: "boolean" } }, required: ["strict"] }
const tool = (name: string, fields: JsonObject = {}) => ({ name, input_schema: schema, ...fields })
const chatTool = (name: string, more: JsonObject = {}) => ({
  type: "function",
  function: { name, ...more, parameters: schema },
})
const search = { type: "web_search_20250305", name: "web_search", max_uses: 5 }

describe("tools", () => {
  test("vector 30: are functions, without what is only for the vendor", () => {
    const given = tool("f", {
      description: "d",
      cache_control: { type: "ephemeral" },
      defer_loading: true,
      strict: true,
      eager_input_streaming: true,
      input_examples: [{}],
      allowed_callers: ["direct"],
    })
    expect(beside({ tools: [given] })).toEqual({ tools: [chatTool("f", { description: "d" })] })
  })

  test("vector 31: of the type custom, or of none, are kept", () => {
    const tools = [tool("a", { type: "custom" }), tool("b", { type: null }), tool("c")]
    expect(beside({ tools })).toEqual({ tools: ["a", "b", "c"].map((name) => chatTool(name)) })
  })

  test("vector 32: that the vendor runs are left out", () => {
    expect(beside({ tools: [search, tool("f")] })).toEqual({ tools: [chatTool("f")] })
  })

  test("vector 33: where none is left there is no choice either", () => {
    const choice = { type: "auto", disable_parallel_tool_use: true }
    expect(beside({ tools: [search], tool_choice: choice })).toEqual({})
    expect(beside({ tools: [], tool_choice: { type: "any" } })).toEqual({})
  })

  test("vector 34: have a schema that lists its properties", () => {
    const parameters = (input_schema?: JsonValue) => {
      const [made] = beside({ tools: [{ name: "f", ...(input_schema === undefined ? {} : { input_schema }) }] })
        .tools as [{ function: JsonObject }]
      return made.function.parameters
    }
    const empty: JsonObject = { type: "object", properties: {} }
    expect(parameters({ type: "object" })).toEqual(empty)
    expect(parameters({ type: "object", properties: null })).toEqual(empty)
    expect(parameters({})).toEqual(empty)
    expect(parameters()).toEqual(empty)
    expect(parameters({ type: "object", $defs: { a: {} } })).toEqual({ ...empty, $defs: { a: {} } })
    expect(parameters({ type: "array" })).toEqual({ type: "array" })
  })

  test("with one name: the first is kept", () => {
    const tools = [tool("f", { description: "1" }), tool("f", { description: "2" })]
    expect(beside({ tools })).toEqual({ tools: [chatTool("f", { description: "1" })] })
  })

  test("with names that upstreams refuse go by shorter ones everywhere", () => {
    const long = `mcp__${"x".repeat(80)}`
    const asked = {
      tools: [tool(long), tool("a.b")],
      tool_choice: { type: "tool", name: long },
      messages: [{ role: "assistant", content: [{ type: "tool_use", id: "t1", name: long, input: {} }] }],
    }
    const made = request(asked)
    const [first, second] = made.tools as [{ function: JsonObject }, { function: JsonObject }]
    const name = String(first.function.name)
    expect(name).toMatch(/^mcp__x{50}_[0-9a-f]{8}$/)
    expect(name).toHaveLength(64)
    expect(second.function.name).toMatch(/^a_b_[0-9a-f]{8}$/)
    expect(made.tool_choice).toEqual({ type: "function", function: { name } })
    expect(made.messages).toMatchObject([{ tool_calls: [{ function: { name } }] }, { role: "tool" }])

    const lengths = (limit: JsonValue) =>
      (beside(asked, { tool_name_limit: limit }).tools as { function: { name: string } }[]).map(
        (each) => each.function.name,
      )
    expect(lengths("none")).toEqual([long, "a.b"])
    expect(lengths(null)).toEqual([long, "a.b"])
    expect(lengths(128)[0]).toBe(long)
    expect(lengths("128")[0]).toBe(long)
    for (const odd of [true, 0, -1, "many", 1.5, {}]) expect(lengths(odd)[0]).toBe(name)
  })

  test.each([
    [{ tools: {} }, "tools: must be an array"],
    [{ tools: ["f"] }, "tools[0]: must be an object"],
    [{ tools: [{ input_schema: schema }] }, "tools[0].name: must be a non-empty string"],
    [{ tools: [{ name: "f", input_schema: "x" }] }, "tools[0].input_schema: must be an object"],
    [{ tool_choice: "auto" }, "tool_choice: must be an object"],
    [{ tool_choice: { type: "some" } }, 'tool_choice.type: "some" is none of "auto", "any", "tool", "none"'],
    [{ tools: [tool("f")], tool_choice: { type: "tool" } }, "tool_choice.name: must be a non-empty string"],
    [{ tools: [tool("f")], tool_choice: { type: "tool", name: "g" } }, 'tool_choice.name: there is no tool "g"'],
  ])("%j is refused", (fields, problem) => {
    expect(() => request(fields)).toThrow(new GatewayError("invalid_parameter", problem))
  })
})

describe("the choice of a tool", () => {
  test.each([
    [{ type: "any" }, "required"],
    [
      { type: "tool", name: "f" },
      { type: "function", function: { name: "f" } },
    ],
    [{ type: "none" }, "none"],
    [{ type: "auto" }, "auto"],
  ])("vector 35: %j is %j", (tool_choice, expected) => {
    expect(beside({ tools: [tool("f"), search], tool_choice })).toEqual({
      tools: [chatTool("f")],
      tool_choice: expected,
    } as JsonObject)
  })

  test("vector 36: of one at a time is told only with tools", () => {
    const choice = (disable: JsonValue) => ({ tool_choice: { type: "auto", disable_parallel_tool_use: disable } })
    const tools = [tool("f")]
    expect(beside({ tools, ...choice(true) })).toMatchObject({ parallel_tool_calls: false })
    for (const disable of [false, null]) {
      expect(beside({ tools, ...choice(disable) })).not.toHaveProperty("parallel_tool_calls")
    }
    expect(beside(choice(true))).toEqual({})
  })

  test("that forces a tool which only the vendor runs is refused", () => {
    for (const fields of [
      { tools: [tool("f"), search], tool_choice: { type: "tool", name: "web_search" } },
      { tools: [search], tool_choice: { type: "any" } },
    ]) {
      expect(() => request(fields)).toThrow(
        expect.objectContaining({
          code: "invalid_parameter",
          status: 400,
          type: "invalid_request_error",
          message: expect.stringContaining("web_search"),
        }),
      )
    }
  })
})

describe("other fields", () => {
  test("vector 37: stop sequences", () => {
    expect(beside({ stop_sequences: ["A", "", "B"] })).toEqual({ stop: ["A", "B"] })
    for (const none of [[], [""], null]) expect(beside({ stop_sequences: none })).toEqual({})
  })

  test("vector 38: temperature and top_p are forwarded exactly", () => {
    expect(beside({ temperature: 0, top_p: 1 })).toEqual({ temperature: 0, top_p: 1 })
    expect(beside({ temperature: null, top_p: null })).toEqual({})
  })

  test("vector 39: max_tokens only above zero", () => {
    for (const none of [undefined, null, 0, -1]) expect(beside({ max_tokens: none })).toEqual({})
    expect(beside({ max_tokens: 1 })).toEqual({ max_tokens: 1 })
    expect(beside({ max_tokens: 1 }, { max_completion_tokens: true })).toEqual({ max_completion_tokens: 1 })
  })

  test("vector 40: the user's id, a long one as its digest", () => {
    expect(beside({ metadata: { user_id: "u", team: "t" } })).toEqual({ user: "u" })
    expect(beside({ metadata: { user_id: "u".repeat(64) } })).toEqual({ user: "u".repeat(64) })
    expect(beside({ metadata: { user_id: "u".repeat(200) } })).toEqual({
      user: new Bun.CryptoHasher("sha256").update("u".repeat(200)).digest("hex"),
    })
    for (const metadata of [{}, null, { user_id: "" }, { user_id: null }, { user_id: 7 }, "x"]) {
      expect(beside({ metadata })).toEqual({})
    }
  })

  test("vector 41: all others are dropped", () => {
    expect(
      request({
        top_k: 5,
        thinking: { type: "enabled", budget_tokens: 1024 },
        output_config: { effort: "high" },
        context_management: { edits: [] },
        service_tier: "auto",
        container: "c",
        mcp_servers: [],
        unknown_x: 1,
        n: 2,
        user: "someone",
        stop: ["x"],
      }),
    ).toEqual(spoken)
  })

  test("vector 42: a stream asks for its usage, where the upstream can be asked", () => {
    expect(request({ stream: true }, { stream: true })).toEqual({
      ...spoken,
      stream: true,
      stream_options: { include_usage: true },
    })
    expect(request({ stream: true }, { stream: true, streamOptions: false })).toEqual({ ...spoken, stream: true })
    expect(request({ stream: false })).toEqual(spoken)
  })

  test.each([
    [{ max_tokens: "9" }, "max_tokens: must be a number"],
    [{ temperature: "0" }, "temperature: must be a number"],
    [{ stop_sequences: "A" }, "stop_sequences: must be an array of strings"],
    [{ stop_sequences: [1] }, "stop_sequences[0]: must be a string"],
  ])("%j is refused", (fields, problem) => {
    expect(() => request(fields)).toThrow(new GatewayError("invalid_parameter", problem))
  })
})

test("vector 43: a body without a model, or without messages, is refused", () => {
  const made = (body: JsonObject) => () => messagesToChatRequest(body, options)
  const refusal = (code: string) => expect.objectContaining({ code, status: 400, type: "invalid_request_error" })
  expect(made({})).toThrow(refusal("missing_model"))
  expect(made({ model: 7, messages: plain.messages })).toThrow(refusal("missing_model"))
  for (const messages of [undefined, null, {}, "hi", []]) {
    expect(made({ model: "m", messages })).toThrow(refusal("invalid_parameter"))
  }
  // What is no JSON object never gets here.
  const list = [] as unknown as JsonObject
  expect(made(list)).toThrow(refusal("missing_model"))
})

test("vector 45: on the native path only the model's own value changes", () => {
  const body = (model: string) =>
    `{ "big":12345678901234567890,\t"x":1,"x":2 , "messages":[{"role":"user","content":"\\"model\\":\\"m\\""}],"model" : "${model}" }`
  const bytes = utf8(body("m"))
  const { value } = scanJson(bytes, ["model"]).fields.get("model")!
  expect(textOf(spliceBytes(bytes, [{ at: value, put: utf8('"up"') }]))).toBe(body("up"))
})
