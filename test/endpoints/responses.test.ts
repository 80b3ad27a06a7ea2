import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import fc from "fast-check"
import { startSimulator } from "../../simulator/simulator.ts"
import { rawClient } from "../../simulator/testing/raw-client.ts"
import { endpointScene, postJson } from "../support/endpoints.ts"
import { eventually, headerOf } from "../support/gateway.ts"
import { rawExchange, rawRequest } from "../support/raw-http.ts"
import { expectWellFormed, finalOf, typesOf } from "../support/responses-events.ts"
import {
  after,
  completed,
  delta,
  frame,
  place,
  preamble,
  response,
  usage,
  used,
  whole,
} from "../support/responses-frames.ts"
import { type Answer, expectError, portOf, readAnswer, type Scene } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(async () => {
  await simulator.stop()
  expect(simulator.complaints).toEqual([])
})

const path = "/v1/responses"

async function ask(stage: Scene, more: object = {}): Promise<Answer> {
  return readAnswer(stage.gateway, await postJson(stage.gateway, path, { model: "m", input: "Say hello", ...more }))
}

describe("the request", () => {
  const space = fc.string({ unit: fc.constantFrom(" ", "\n", "\t"), maxLength: 2 })
  const value = fc.oneof(
    fc.json({ maxDepth: 3 }),
    fc.constantFrom(
      "1.0",
      "-0",
      "1e400",
      "9".repeat(60),
      '"\\u00e9\\/"',
      '"\\uD800"',
      '{"model":"m","stream":false,"stream":1}',
      '"模型"',
    ),
  )
  const other = fc
    .tuple(
      space,
      fc.constantFrom('"input"', '"Stream"', '"models"', '"x\\u0079"', '""', '"stream "'),
      space,
      value,
      space,
    )
    .map(([a, key, b, given, c]) => `${a}${key}${b}:${given}${c}`)
  const asked = fc.record({
    lead: space,
    members: fc.array(other, { maxLength: 5 }),
    modelAt: fc.nat({ max: 5 }),
    modelKey: fc.constantFrom('"model"', '"mod\\u0065l"'),
    modelValue: fc.constantFrom('"m"', '"\\u006d"'),
    gap: space,
    streamAt: fc.nat({ max: 6 }),
    stream: fc.option(
      fc.record({
        key: fc.constantFrom('"stream"', '"str\\u0065am"'),
        value: fc.constantFrom("true", "false", "null", "0", '"false"', "[]", '{"a":[1]}'),
      }),
    ),
  })

  test("any body reaches the upstream with `stream` true and the model's name, every other byte unchanged", async () => {
    await using stage = await endpointScene(simulator, ["a"], { routes: [{ upstream: "a", model: 'their "型"' }] })
    stage.vendor("a").behave({ kind: "stream", body: whole.join("") })
    const runs = 200
    await fc.assert(
      fc.asyncProperty(asked, async (given) => {
        const text = (name: string, stream: string | null): string => {
          // Where the caller says nothing of it, it is put just before the model.
          const added = given.stream === null && stream !== null ? `"stream":${stream},` : ""
          const model = `${given.gap}${added}${given.modelKey}${given.gap}:${given.gap}${name}${given.gap}`
          let members = given.members.toSpliced(Math.min(given.modelAt, given.members.length), 0, model)
          if (given.stream !== null) {
            const member = `${given.stream.key}:${given.gap}${stream ?? given.stream.value}`
            members = members.toSpliced(Math.min(given.streamAt, members.length), 0, member)
          }
          return `${given.lead}{${members.join(",")}}${given.lead}`
        }
        const sent = await rawExchange(
          stage.gateway.url,
          rawRequest(path, [`Authorization: Bearer ${stage.gateway.key}`], text(given.modelValue, null)),
        )
        expect([sent.status, sent.text]).toEqual([200, whole.join("")])
        const call = stage.vendor("a").calls.at(-1)!
        expect(Buffer.from(call.body).toString()).toBe(text('"their \\"型\\""', "true"))
        expect(headerOf(call, "content-length")).toBe(String(call.bodyLength))
      }),
      { numRuns: runs },
    )
    expect(stage.calls()[0]).toBeGreaterThanOrEqual(runs)
  })

  test("`stream` or `model` given twice, however spelled, is refused", async () => {
    await using stage = await endpointScene(simulator, ["a"])
    for (const body of ['{"model":"m","stream":true,"str\\u0065am":false}', '{"model":"m","mod\\u0065l":"m"}']) {
      const answer = await postJson(stage.gateway, path, body)
      expect([answer.status, ((await answer.json()) as { error: object }).error]).toEqual([
        400,
        expect.objectContaining({ code: "duplicate_key" }),
      ])
    }
    expect(stage.calls()).toEqual([0])
  })

  test.each([{}, { stream: false }, { stream: true }, { stream: null }])("%j is answered as events", async (more) => {
    await using stage = await endpointScene(simulator, ["a"])
    const answer = await ask(stage, more)
    expect(answer.status).toBe(200)
    expect(answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8")
    expect(answer.headers.get("cache-control")).toBe("no-cache, no-transform")
    expect(answer.headers.get("x-accel-buffering")).toBe("no")
    expectWellFormed(answer.text)
    expect(typesOf(answer.text).at(-1)).toBe("response.completed")
    expect(answer.story).toMatchObject({ ending: "completed", stream: true, endpoint: "responses", estimated: false })
    expect(JSON.parse(Buffer.from(stage.vendor("a").calls[0]!.body).toString()).stream).toBeTrue()
  })
})

describe("a stream", () => {
  for (const [name, eol] of [
    ["LF", "\n"],
    ["CRLF", "\r\n"],
    ["CR", "\r"],
  ] as const) {
    test(`passes byte for byte with ${name}, however it is cut, and its usage is read`, async () => {
      await using stage = await endpointScene(simulator, ["a"])
      const body = [
        ": hi\n\n",
        ...whole.slice(0, 3),
        'event: keepalive\ndata: {"type":"keepalive"}\n\n',
        ...whole.slice(3),
      ]
        .join("")
        .replaceAll("\n", eol)
      for (const splitEvery of [1, 7, 100, 100_000]) {
        stage.vendor("a").behave({ kind: "stream", body, splitEvery, gapMs: 0 })
        const answer = await ask(stage)
        expect(answer.text).toBe(body)
        expect(answer.story).toMatchObject({ ending: "completed", usage: used, estimated: false })
      }
    })
  }

  test("what comes after its last event is left out, a [DONE] too", async () => {
    await using stage = await endpointScene(simulator, ["a"])
    stage.vendor("a").behave({ kind: "stream", frames: [...whole, "data: [DONE]\n\n", delta], gapMs: 1 })
    expect((await ask(stage)).text).toBe(whole.join(""))
  })

  test("ends for the caller with its last event, though the upstream never closes it", async () => {
    await using stage = await endpointScene(simulator, ["a"])
    stage.vendor("a").behave({ kind: "stream", body: whole.join(""), end: "stall" })
    expect((await ask(stage)).text).toBe(whole.join(""))
  })

  test.each(["failed", "incomplete"] as const)("response.%s passes as it is, with what was used", async (ending) => {
    await using stage = await endpointScene(simulator, ["a", "b"])
    const last = frame(`response.${ending}`, 5, { response: { ...response, status: ending, usage } })
    stage.vendor("a").behave({ kind: "stream", frames: [preamble.join("") + delta, last], gapMs: 300 })
    const answer = await ask(stage)
    expect(answer.text).toBe([...preamble, delta, last].join(""))
    expect(answer.story.usage).toEqual(used)
    expect(stage.calls()).toEqual([1, 0])
  })

  test("without usage it is counted here and marked", async () => {
    await using stage = await endpointScene(simulator, ["a"])
    const last = frame("response.completed", 7, { response: { ...response, status: "completed" } })
    stage.vendor("a").behave({ kind: "stream", body: [...preamble, delta, ...after, last].join("") })
    const answer = await ask(stage)
    expect(answer.text).toEndWith(last)
    expect(answer.story).toMatchObject({ ending: "completed", estimated: true })
    expect(answer.story.usage!.output).toBeGreaterThan(0)
    expect(answer.story.usage!.input).toBeGreaterThan(0)
  })

  test("an explicit zero is a usage", async () => {
    await using stage = await endpointScene(simulator, ["a"])
    stage.vendor("a").behave({ kind: "responses", usage: { input_tokens: 0, output_tokens: 0 }, gapMs: 0 })
    expect((await ask(stage)).story).toMatchObject({ usage: { input: 0, output: 0 }, estimated: false })
  })

  test("nothing, not even a header, reaches the caller before the first delta", async () => {
    await using stage = await endpointScene(simulator, ["a"])
    const pings = [": ping\n\n", 'event: keepalive\ndata: {"type":"keepalive","sequence_number":9}\n\n']
    const empty = frame("response.output_text.delta", 4, { ...place, delta: "" })
    const held = [...preamble, ...pings, empty].join("")
    stage.vendor("a").behave({ kind: "stream", frames: [held, delta, completed], gapMs: 900 })
    const client = await rawClient(portOf(stage.gateway))
    client.send(rawRequest(path, [`Authorization: Bearer ${stage.gateway.key}`], '{"model":"m","input":"x"}'))
    await eventually(() => (stage.vendor("a").calls[0]?.bytesSent ?? 0) >= Buffer.byteLength(held))
    await Bun.sleep(200)
    expect(client.reads).toEqual([])
    await client.until("response.completed")
    expect(Buffer.concat(client.reads).toString()).toContain(held + delta)
    client.leave()
  })

  test("a client that leaves: the upstream is let go, what was produced is counted", async () => {
    await using stage = await endpointScene(simulator, ["a"])
    stage.vendor("a").behave({ kind: "stream", frames: [...preamble, delta], end: "stall" })
    const client = await rawClient(portOf(stage.gateway))
    client.send(rawRequest(path, [`Authorization: Bearer ${stage.gateway.key}`], '{"model":"m","input":"x"}'))
    await client.until("output_text.delta")
    client.leave()
    await eventually(() => stage.vendor("a").calls[0]!.closedByPeer, 2500)
    const story = await eventually(() => stage.gateway.stories[0])
    expect(story).toMatchObject({ ending: "client_gone", estimated: true })
    expect(story.usage!.output).toBeGreaterThan(0)
    await eventually(() => stage.gateway.inFlight === 0)
  })
})

describe("an upstream that answers JSON all the same", () => {
  const output = [
    { id: "rs_1", type: "reasoning", summary: [{ type: "summary_text", text: "Hm" }] },
    { id: "ws_1", type: "web_search_call", status: "completed", action: { query: "x" } },
    {
      id: "msg_1",
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: "Hi 👋", annotations: [], logprobs: [] }],
    },
    { id: "fc_1", type: "function_call", status: "completed", call_id: "call_1", name: "f", arguments: '{"a":1}' },
  ]
  const json = { ...response, status: "completed", output, usage, odd_field: [1, { x: null }] }

  test("is told as the standard events, the last of which has the whole response", async () => {
    await using stage = await endpointScene(simulator, ["a", "b"])
    stage.vendor("a").behave({ kind: "status", status: 200, json, headers: { "x-request-id": "theirs" } })
    const answer = await ask(stage, { stream: false })
    expect(answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8")
    expect(answer.headers.get("cache-control")).toBe("no-cache, no-transform")
    expect(answer.headers.get("x-upstream-request-id")).toBe("theirs")
    expectWellFormed(answer.text)
    expect(typesOf(answer.text)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.reasoning_summary_part.added",
      "response.reasoning_summary_text.delta",
      "response.reasoning_summary_text.done",
      "response.reasoning_summary_part.done",
      "response.output_item.done",
      "response.output_item.added",
      "response.output_item.done",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.output_item.added",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.output_item.done",
      "response.completed",
    ])
    expect(finalOf(answer.text)).toEqual(json)
    expect(answer.story).toMatchObject({ ending: "completed", usage: used, estimated: false })
    expect(stage.calls()).toEqual([1, 0])
  })

  test.each(["incomplete", "failed"])("with the status %s it ends so", async (status) => {
    await using stage = await endpointScene(simulator, ["a"])
    stage.vendor("a").behave({ kind: "status", status: 200, json: { ...json, status } })
    const answer = await ask(stage)
    expect(typesOf(answer.text).at(-1)).toBe(`response.${status}`)
    expect(finalOf(answer.text)).toEqual({ ...json, status })
  })

  const useless = ['{"error":{"message":"overloaded"}}', "[]", '{"id":"x"}', '{"output":', '{"choices":[]}']
  test.concurrent.each(useless)("%s is no response: the next route is asked", async (body) => {
    await using stage = await endpointScene(simulator, ["a", "b"])
    stage.vendor("a").behave({ kind: "status", status: 200, body })
    const answer = await ask(stage)
    expect(typesOf(answer.text).at(-1)).toBe("response.completed")
    expect(stage.calls()).toEqual([2, 1])
    expectError(await ask(stage, { model: "solo" }), 502, "api_error", "upstream_invalid_response")
  })
})
