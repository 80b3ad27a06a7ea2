import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { headerOf } from "../support/gateway.ts"
import { askMessages, messagesPath, modes, over } from "../support/messages-scene.ts"
import { stopWithoutComplaint } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

/** What a parser would not keep: spacing, number spelling, escapes, keys that stand twice, a model's name elsewhere. */
function oddBody(model: string, stream: boolean): string {
  return `\t{ "system" : [ {"type":"text","text":"x-anthropic-billing-header: v=1","cache_control":{"type":"ephemeral"}} ] ,
  "max_tokens":16,"seed":12345678901234567890, "ratio":1.50e+2,"mo\\u0064elling":1, "extra":{"a":1,"a":2,"model":"m"},
  "thinking":{"type":"adaptive"},"top_k":5,"model" : "${model}",
  "messages":[{"role":"user","content":"the \\"model\\":\\"m\\" says \\u00e9 é 👋"}] , "stream":${stream}}\r\n`
}

describe.each(modes)("%s", (_, stream) => {
  test("the bytes go as they came but for the model's value, and so does the query", async () => {
    await using stage = await over("native", simulator)
    const answer = await askMessages(stage, oddBody("m", stream), { path: `${messagesPath}?beta=true&x=%20` })
    expect(answer.status).toBe(200)
    const [call] = stage.vendor("a").calls
    expect(Buffer.from(call!.body).toString()).toBe(oddBody("m-upstream", stream))
    expect(call!.path).toEndWith("/v1/messages?beta=true&x=%20")
  })

  test("the answer's bytes come back as the vendor wrote them", async () => {
    await using stage = await over("native", simulator)
    const usage = '"usage":{"input_tokens":3,"output_tokens" : 2,"big":12345678901234567890}'
    const body = stream
      ? `: hi\r\nevent: message_start\r\ndata:{"type":"message_start","message":{"id":"msg_x","usage":{"input_tokens":3}}}\r\n\r\nevent: ping\ndata: {"type": "ping"}\n\nevent: content_block_delta\ndata: {"type":"content_block_delta" ,"index":0,"delta":{"type":"odd_delta","text":"\\u00e9"}}\n\nevent: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}, ${usage}}\n\nevent: message_stop\ndata: {"type":"message_stop" }\n\n`
      : `{ "id":"msg_x" , "content":[ {"type":"odd","text":"\\u00e9"} ],${usage} }\n`
    const headers = { "content-type": stream ? "text/event-stream" : "application/json" }
    stage.vendor("a").behave(stream ? { kind: "stream", body } : { kind: "status", status: 200, body, headers })
    const answer = await askMessages(stage, { stream })
    expect(answer.text).toBe(body)
    expect(answer.story).toMatchObject({
      ending: "completed",
      estimated: false,
      endpoint: "messages",
      stream,
      usage: { input: 3, output: 2 },
    })
  })

  test("every anthropic header goes, the caller's credential stays", async () => {
    await using stage = await over("native", simulator)
    const headers = {
      authorization: `Bearer ${stage.gateway.key}`,
      "anthropic-version": "2026-10-21",
      "anthropic-beta": "claude-code-20250219,never-heard-of-2099",
      "anthropic-odd-thing": "1",
      cookie: "a=b",
      "x-stainless-lang": "js",
    }
    expect((await askMessages(stage, { stream }, { headers })).status).toBe(200)
    const [call] = stage.vendor("a").calls
    const names = ["anthropic-version", "anthropic-beta", "anthropic-odd-thing"] as const
    for (const name of names) expect(headerOf(call!, name)).toBe(headers[name])
    expect(headerOf(call!, "x-api-key")).toBe("credential-of-a")
    for (const name of ["authorization", "cookie", "x-stainless-lang"]) expect(headerOf(call!, name)).toBeUndefined()
    expect(JSON.stringify(call!.headers)).not.toContain(stage.gateway.key)
    await askMessages(stage, { stream })
    expect(headerOf(stage.vendor("a").calls[1]!, "anthropic-version")).toBe("2023-06-01")
  })

  test("the vendor's rate headers come back, its account's name does not; the request id is ours", async () => {
    await using stage = await over("native", simulator)
    const { headers } = await askMessages(stage, { stream })
    expect(headers.get("anthropic-ratelimit-requests-limit")).toBe("4000")
    expect(headers.get("anthropic-ratelimit-requests-remaining")).toBe("3999")
    expect(headers.get("anthropic-organization-id")).toBeNull()
    expect(headers.get("request-id")).toBe(headers.get("x-request-id"))
    expect(headers.get("x-upstream-request-id")).toStartWith("req_")
    expect(headers.get("x-upstream-request-id")).not.toBe(headers.get("x-request-id"))
  })

  test.each([400, 401, 402, 403, 404, 413, 422, 429, 529])(
    "its refusal %i passes unmodified, and the header names the request as the body does",
    async (status) => {
      await using stage = await over("native", simulator)
      const body = `{ "type":"error", "error":{"message":"prompt is too long: 9 > 8","type":"some_error","n":1.0} ,"request_id":"req_of_theirs"}\n`
      const headers = {
        "content-type": "application/json; charset=utf-8",
        "retry-after": "60",
        "x-should-retry": "false",
        "anthropic-ratelimit-requests-remaining": "0",
        "request-id": "req_of_theirs",
      }
      stage.vendor("a").behave({ kind: "status", status, body, headers })
      const answer = await askMessages(stage, { stream })
      expect([answer.status, answer.text]).toEqual([status, body])
      expect(answer.headers.get("request-id")).toBe("req_of_theirs")
      expect(answer.headers.get("x-request-id")).toBe(answer.story.requestId)
      for (const [name, value] of Object.entries(headers)) expect(answer.headers.get(name)).toBe(value)
      expect(answer.story).toMatchObject({ ending: status < 500 ? "refused" : "failed", status })
    },
  )

  test("a refusal without an id, or with one that no header can carry, is named by ours", async () => {
    await using stage = await over("native", simulator)
    for (const id of ["", ',"request_id":"a\\r\\nb: c"', ',"request_id":7']) {
      const body = `{"type":"error","error":{"type":"invalid_request_error","message":"no"}${id}}`
      stage.vendor("a").behave({ kind: "status", status: 400, body })
      const answer = await askMessages(stage, { stream })
      expect(answer.text).toBe(body)
      expect(answer.headers.get("request-id")).toBe(answer.story.requestId)
    }
  })

  test("503 is told as 529, which is how this dialect says overloaded", async () => {
    await using stage = await over("native", simulator)
    const body = '{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'
    stage.vendor("a").behave({ kind: "status", status: 503, body })
    const answer = await askMessages(stage, { stream })
    expect([answer.status, answer.text]).toEqual([529, body])
  })

  test("a web page of a proxy before it becomes an error that clients can read", async () => {
    await using stage = await over("native", simulator)
    for (const [status, told, type] of [
      [403, 403, "permission_error"],
      [503, 529, "overloaded_error"],
    ] as const) {
      stage.vendor("a").behave({ kind: "html", status })
      const answer = await askMessages(stage, { stream })
      const id = answer.story.requestId
      expect(answer.status).toBe(told)
      expect(answer.headers.get("content-type")).toBe("application/json")
      expect(answer.headers.get("request-id")).toBe(id)
      expect(JSON.parse(answer.text)).toEqual({
        type: "error",
        error: { type, message: expect.stringContaining(String(status)), request_id: id },
        request_id: id,
      })
      expect(answer.text).not.toContain("<")
    }
  })
})
