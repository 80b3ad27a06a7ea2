import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { postJson } from "../support/endpoints.ts"
import { eventually } from "../support/gateway.ts"
import { eventsOf, expectWellFormed, finalOf, typesOf } from "../support/responses-events.ts"
import {
  type Answer,
  chunk,
  done,
  expectError,
  finishChunk,
  readAnswer,
  roleChunk,
  scene,
  stopWithoutComplaint,
  usageChunk,
} from "../support/scene.ts"
import { ask, bridged, deepseek, expectCompleted, mistral } from "./bridged-responses.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

describe("what cannot be bridged", () => {
  const item = { role: "user", content: "x" }
  const refusals: [place: string, more: object][] = [
    ["previous_response_id", { previous_response_id: "resp_1" }],
    ["conversation", { conversation: "conv_1" }],
    ["prompt", { prompt: { id: "pmpt_1" } }],
    ["background", { background: true }],
    ["input", { input: 3 }],
    ["input", { input: [] }],
    ["input[1].type", { input: [item, { type: "item_reference", id: "msg_1" }] }],
    ["input[0].content[0].file_id", { input: [{ role: "user", content: [{ type: "input_image", file_id: "f" }] }] }],
    ["input[1]", { input: [item, { type: "function_call", call_id: "c", name: "f", arguments: "{}" }] }],
    ["input[1].call_id", { input: [item, { type: "function_call_output", call_id: "c", output: "x" }] }],
    ["tool_choice", { tool_choice: "required" }],
    ["tools[0].type", { tools: [{ type: "web_search" }] }],
    ["tools[0].type", { tools: [{ type: "file_search", vector_store_ids: ["v"] }] }],
    ["tools[0].type", { tools: [{ type: "code_interpreter", container: { type: "auto" } }] }],
    [
      "tools[1].type",
      {
        tools: [
          { type: "function", name: "f" },
          { type: "mcp", server_label: "x" },
        ],
      },
    ],
    ["tools[0].type", { tools: [{ type: "image_generation" }] }],
    ["tools[0].type", { tools: [{ type: "computer_use_preview" }] }],
    ["tools[0].type", { tools: [{ type: "custom", name: "x" }] }],
  ]
  test.each(refusals)("%s is a 400 that names it, and the upstream is not asked: %j", async (place, more) => {
    await using stage = await bridged(simulator)
    const answer = await ask(stage, more)
    const id = answer.headers.get("x-request-id")
    expect([answer.status, JSON.parse(answer.text)]).toEqual([
      400,
      {
        error: {
          type: "invalid_request_error",
          code: "invalid_parameter",
          message: expect.stringMatching(new RegExp(`^${RegExp.escape(place)}: .{10}`)),
          request_id: id,
        },
        request_id: id,
      },
    ])
    expect(stage.calls()).toEqual([0])
    expect(stage.gateway.inFlight).toBe(0)
    expect(stage.gateway.circuits).toEqual([])
  })

  test("goes to a route further down that speaks responses itself, with the caller's bytes", async () => {
    await using stage = await scene(simulator, ["a", "b"], { each: { a: mistral } })
    const body = '{"model":"m", "input":"x","previous_response_id":"resp_1","stream":true}'
    const answer = await readAnswer(stage.gateway, await postJson(stage.gateway, "/v1/responses", body))
    expectCompleted(answer)
    expect(answer.attempts).toEqual(["a:first:not_bridgeable", "b:next:answered"])
    expect(stage.calls()).toEqual([0, 1])
    expect(Buffer.from(stage.vendor("b").calls[0]!.body).toString()).toBe(body.replace('"m"', '"m-upstream"'))
  })

  test("does not hide why the route that could have carried it failed", async () => {
    await using stage = await scene(simulator, ["a", "b"], { each: { b: mistral } })
    stage.vendor("a").behave({ kind: "status", status: 500 })
    expectError(await ask(stage, { previous_response_id: "resp_1" }), 502, "api_error", "upstream_error")
    stage.vendor("a").behave({ kind: "status", status: 404, body: "no such response" })
    const answer = await ask(stage, { previous_response_id: "resp_1" })
    expect([answer.status, answer.text]).toEqual([404, "no such response"])
    expect(stage.calls()).toEqual([3, 0])
  })
})

describe("failover", () => {
  test("from an upstream that speaks responses to one that speaks chat", async () => {
    await using stage = await scene(simulator, ["a", "b"], { each: { b: deepseek } })
    stage.vendor("a").behave({ kind: "responses", ending: "error", endAfterEvents: 2, gapMs: 1 })
    stage.vendor("b").behave({ kind: "chat", text: "from b", gapMs: 1 })
    const answer = await ask(stage)
    expectCompleted(answer)
    expect(finalOf(answer.text).output).toMatchObject([{ content: [{ text: "from b" }] }])
    expect(stage.calls()).toEqual([2, 1])
  })

  const troubles: Record<string, Behaviour> = {
    "an error first": { kind: "stream", frames: [roleChunk, 'data: {"error":{"message":"overloaded"}}\n\n'], gapMs: 5 },
    "nothing but a role": { kind: "stream", body: roleChunk },
    "status 503": { kind: "status", status: 503 },
    "JSON without choices": { kind: "status", status: 200, json: { id: "x", choices: [] } },
  }
  test.concurrent.each(Object.keys(troubles))(
    "from an upstream that speaks chat to one that speaks responses: %s",
    async (about) => {
      await using stage = await scene(simulator, ["a", "b"], { each: { a: deepseek } })
      stage.vendor("a").behave(troubles[about]!)
      stage.vendor("b").behave({ kind: "responses", text: "from b", gapMs: 1 })
      const answer = await ask(stage)
      expectCompleted(answer)
      expect(finalOf(answer.text).output).toMatchObject([{ content: [{ text: "from b" }] }])
      expect(stage.calls()).toEqual([2, 1])
    },
  )
})

describe("trouble after the first token", () => {
  const said = chunk({ content: "Once upon " }, null, { usage: { prompt_tokens: 3, completion_tokens: 4 } })

  /** Everything before our error event is a sound beginning, numbered through to it. */
  function expectInBand(answer: Answer, code: string): void {
    expect(answer.status).toBe(200)
    const events = eventsOf(answer.text)
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
    expect(events.slice(0, -1).map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
    ])
    expect(events.at(-1)).toEqual({
      type: "error",
      code,
      message: expect.any(String),
      param: null,
      sequence_number: 5,
      request_id: answer.headers.get("x-request-id"),
    })
    expect(answer.story).toMatchObject({ ending: "failed", error: code, usage: { input: 3, output: 4 } })
  }

  for (const end of ["clean", "fin", "rst"] as const) {
    test.concurrent(`a stream cut by ${end} ends with an error event`, async () => {
      await using stage = await scene(simulator, ["a", "b"], { each: { a: deepseek } })
      stage
        .vendor("a")
        .behave({ kind: "stream", frames: [roleChunk + said, finishChunk.slice(0, 40)], gapMs: 300, end })
      expectInBand(await ask(stage), "upstream_stream_truncated")
      expect(stage.calls()).toEqual([1, 0])
    })
  }

  test.concurrent("silence", async () => {
    await using stage = await bridged(simulator, { timeouts: { silence: 400 } })
    stage.vendor("a").behave({ kind: "stream", frames: [roleChunk, said], end: "stall", pingEveryMs: 50 })
    expectInBand(await ask(stage), "stream_silence_timeout")
    await eventually(() => stage.vendor("a").calls[0]!.closedByPeer)
  })

  test.concurrent("the end of a stream's time", async () => {
    await using stage = await bridged(simulator, { timeouts: { total: 700 } })
    stage.vendor("a").behave({ kind: "stream", frames: [roleChunk, said], end: "stall" })
    expectInBand(await ask(stage), "stream_total_timeout")
  })

  test.concurrent("no first token in time is a 504", async () => {
    await using stage = await bridged(simulator, { timeouts: { firstToken: 400 } })
    stage.vendor("a").behave({ kind: "stream", body: roleChunk, end: "stall", pingEveryMs: 50 })
    expectError(await ask(stage), 504, "timeout_error", "first_token_timeout")
  })

  test.concurrent("an error event of the upstream is response.failed, and the end", async () => {
    await using stage = await bridged(simulator)
    const error = 'data: {"error":{"message":"no luck","code":"server_error"}}\n\n'
    stage.vendor("a").behave({ kind: "stream", frames: [roleChunk + said, error], gapMs: 300 })
    const answer = await ask(stage)
    expectWellFormed(answer.text)
    expect(typesOf(answer.text).at(-1)).toBe("response.failed")
    expect(finalOf(answer.text)).toMatchObject({
      status: "failed",
      error: { code: "server_error", message: "no luck" },
    })
    expect(answer.story).toMatchObject({ ending: "failed", error: "upstream_error" })
  })

  test.concurrent("a finish without [DONE] is a success", async () => {
    await using stage = await bridged(simulator)
    stage.vendor("a").behave({ kind: "stream", body: roleChunk + said + finishChunk + usageChunk })
    const answer = await ask(stage)
    expectCompleted(answer)
    expect(answer.story).toMatchObject({ usage: { input: 7, output: 5 }, estimated: false })
    stage.vendor("a").behave({ kind: "stream", body: roleChunk + said + finishChunk + usageChunk + done })
    expect(typesOf((await ask(stage)).text)).toEqual(typesOf(answer.text))
  })
})
