import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { account, keyOf } from "../support/accounts.ts"
import { eventually, model, startGateway, upstream } from "../support/gateway.ts"
import {
  askMessages,
  countPath,
  expectMessagesError,
  messagesPath,
  modes,
  over,
  postMessages,
  ways,
} from "../support/messages-scene.ts"
import { readAnswer, scene, stopWithoutComplaint } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

/** A chat vendor's refusal: what it says, and what a client of the messages dialect is told. */
interface Row {
  readonly status: number
  readonly body: unknown
  readonly told: number
  readonly type: string
  readonly message: string
  readonly code?: string
}

const maximum = "This model's maximum context length is 8192 tokens"
const refusals: Readonly<Record<string, Row>> = {
  "a bad request": row(
    400,
    { error: { message: "no", type: "invalid_request_error", code: null } },
    "invalid_request_error",
    "no",
  ),
  "a method": row(405, { error: { message: "no" } }, "invalid_request_error", "no"),
  "a conflict": row(409, { error: { message: "no" } }, "invalid_request_error", "no"),
  "a type": row(415, { error: { message: "no" } }, "invalid_request_error", "no"),
  "an entity, told in a list": row(
    422,
    { detail: [{ loc: ["body"], msg: "field required" }] },
    "invalid_request_error",
    "field required",
  ),
  "a teapot": row(418, { message: "short and stout" }, "invalid_request_error", "short and stout"),
  "a prompt that is too long, by its code": {
    ...row(
      400,
      { error: { message: "too many", code: "context_length_exceeded" } },
      "invalid_request_error",
      "prompt is too long: too many",
    ),
    code: "context_length_exceeded",
  },
  "a prompt that is too long, by its words": row(
    400,
    { error: { message: maximum } },
    "invalid_request_error",
    `prompt is too long: ${maximum}`,
  ),
  "a content policy": {
    ...row(
      400,
      { error: { message: "not that", code: "content_policy_violation" } },
      "invalid_request_error",
      "not that",
    ),
    code: "content_policy_violation",
  },
  "our key": {
    ...row(401, { error: { message: "who?", code: "invalid_api_key" } }, "authentication_error", "who?"),
    code: "invalid_api_key",
  },
  "our bill": row(402, { error: { message: "pay" } }, "billing_error", "pay"),
  "a permission": row(403, { error: { message: "no" } }, "permission_error", "no"),
  "a model": {
    ...row(404, { error: { message: "none", code: "model_not_found" } }, "not_found_error", "none"),
    code: "model_not_found",
  },
  "a time-out of its own": row(408, { error: "slow" }, "timeout_error", "slow"),
  "a size": row(413, { error: { message: "big" } }, "request_too_large", "big"),
  "a rate": row(429, { error: { message: "slow down" } }, "rate_limit_error", "slow down"),
  "a quota": {
    ...row(429, { error: { message: "used up", code: "insufficient_quota" } }, "rate_limit_error", "used up"),
    code: "insufficient_quota",
  },
  "a load": { ...row(503, { error: { message: "busy" } }, "overloaded_error", "busy"), told: 529 },
  "a load under its other number": row(529, { error: { message: "busy" } }, "overloaded_error", "busy"),
  "an error that is text": row(400, { error: "just text" }, "invalid_request_error", "just text"),
  "no JSON at all": row(400, "plain words", "invalid_request_error", "plain words"),
  "a web page": row(
    403,
    "<html><head><style>p{}</style></head><body><h1>403</h1>Forbidden</body></html>",
    "permission_error",
    "403 Forbidden",
  ),
  nothing: row(400, "", "invalid_request_error", "the upstream answered with status 400"),
}

function row(status: number, body: unknown, type: string, message: string): Row {
  return { status, body, told: status, type, message }
}

describe.each(modes)("a chat upstream refuses, %s", (_, stream) => {
  test.concurrent.each(Object.entries(refusals))("%s", async (_name, { status, body, told, type, message, code }) => {
    await using stage = await over("bridged", simulator)
    const text = typeof body === "string" ? body : JSON.stringify(body)
    const headers = { "content-type": typeof body === "string" ? "text/html" : "application/json", "retry-after": "60" }
    stage.vendor("a").behave({ kind: "status", status, body: text, headers })
    const answer = await askMessages(stage, { stream })
    const id = answer.headers.get("x-request-id")
    expect([answer.status, JSON.parse(answer.text)]).toEqual([
      told,
      {
        type: "error",
        error: { type, ...(code === undefined ? {} : { code }), message, request_id: id },
        request_id: id,
      },
    ])
    expect(answer.headers.get("request-id")).toBe(id)
    expect(answer.headers.get("content-type")).toBe("application/json")
    expect(answer.headers.get("retry-after")).toBe("60")
    expect(answer.story).toMatchObject({ ending: told < 500 ? "refused" : "failed", status: told, charge: 0n })
  })

  test("our credential in its words is blanked out", async () => {
    await using stage = await over("bridged", simulator)
    stage.vendor("a").behave({ kind: "status", status: 401, json: { error: { message: "bad key credential-of-a" } } })
    const answer = await askMessages(stage, { stream })
    expect(JSON.parse(answer.text).error.message).toBe("bad key ***")
  })

  test.each([500, 501, 504])("its %i is an error of ours", async (status) => {
    await using stage = await over("bridged", simulator)
    stage.vendor("a").behave({ kind: "status", status })
    expectMessagesError(await askMessages(stage, { stream }), 502, "api_error", "upstream_error")
  })

  test.each([
    ["no messages", { messages: undefined }, "invalid_parameter"],
    ["empty messages", { messages: [] }, "invalid_parameter"],
    ["messages that are no list", { messages: "hi" }, "invalid_parameter"],
    [
      "a server tool by force",
      {
        tools: [{ type: "web_search_20250305", name: "web_search" }],
        tool_choice: { type: "tool", name: "web_search" },
      },
      "invalid_parameter",
    ],
  ])("%s: 400, and nobody is asked", async (_name, more, code) => {
    await using stage = await over("bridged", simulator)
    expectMessagesError(await askMessages(stage, { stream, ...more }), 400, "invalid_request_error", code)
    expect(stage.calls()).toEqual([0])
  })
})

describe.each([messagesPath, countPath])("our own refusals at %s", (path) => {
  test("a bad key is told in the style of chat completions, everything else in that of messages", async () => {
    await using stage = await scene(simulator, ["a"])
    const { url } = stage.gateway
    for (const headers of [{ "x-api-key": "sk-wrong-0123456789" }, { authorization: "bearer x" }, {}]) {
      const response = await fetch(url + path, {
        method: "POST",
        body: "{}",
        headers: headers as Record<string, string>,
      })
      expect([response.status, response.headers.get("www-authenticate")]).toEqual([401, "Bearer"])
      expect(await response.json()).toEqual({
        error: { message: expect.any(String), type: "invalid_request_error", param: null, code: "invalid_api_key" },
      })
      expect(response.headers.get("request-id")).toBe(response.headers.get("x-request-id"))
    }
  })

  test("the body, the model, the method, the size, the path", async () => {
    await using stage = await scene(simulator, ["a"])
    const { gateway } = stage
    for (const [body, status, type, code] of [
      ["{", 400, "invalid_request_error", "invalid_json"],
      ["[]", 400, "invalid_request_error", "invalid_json"],
      ["{}", 400, "invalid_request_error", "missing_model"],
      ['{"model":"m","mod\\u0065l":"m"}', 400, "invalid_request_error", "duplicate_key"],
      ['{"model":"nope","messages":[]}', 404, "not_found_error", "model_not_found"],
    ] as const) {
      expectRefusal(await told(await postMessages(gateway, body, { path })), status, type, code)
    }
    const got = await fetch(gateway.url + path, { headers: { "x-api-key": gateway.key } })
    expect(got.headers.get("allow")).toBe("POST")
    expectRefusal(await told(got), 405, "invalid_request_error", "method_not_allowed")
    const form = await postMessages(gateway, "x", {
      path,
      headers: { "content-type": "multipart/form-data; boundary=x" },
    })
    expectRefusal(await told(form), 415, "invalid_request_error", "unsupported_media_type")
    const lost = await postMessages(gateway, {}, { path: `${path}/nowhere` })
    expectRefusal(await told(lost), 404, "not_found_error", "not_found")
    const large = await postMessages(gateway, `{"model":"m","pad":"${"a".repeat(100 * 1024 * 1024)}"}`, { path })
    expectRefusal(await told(large), 413, "invalid_request_error", "request_body_too_large")
    expect(stage.calls()).toEqual([0])
  })
})

interface Told {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

async function told(response: Response): Promise<Told> {
  return { status: response.status, headers: response.headers, text: await response.text() }
}

function expectRefusal(answer: Told, status: number, type: string, code: string): void {
  const id = answer.headers.get("request-id")
  expect([answer.status, JSON.parse(answer.text)]).toEqual([
    status,
    { type: "error", error: { type, code, message: expect.any(String), request_id: id }, request_id: id },
  ])
  expect(id).toBe(answer.headers.get("x-request-id"))
}

test.each(ways)("no balance and no free slot, %s: 402 and 429, nobody is asked", async (way) => {
  const vendor = simulator.vendor(`limits-${way}`)
  const gateway = await startGateway({
    upstreams: [upstream("a", vendor.baseUrl, way === "native" ? { vendor: "anthropic" } : {})],
    models: [model("m", ["a"])],
    plans: [{ name: "default", concurrency: 0, models: ["*"], priceMultiplier: "1" }],
    accounts: [account("poor", { balance: null }), account("tight", { concurrency: 1 })],
  })
  try {
    const ask = async (name: string, path = messagesPath) =>
      readAnswer(gateway, await postMessages({ url: gateway.url, key: keyOf(name) }, {}, { path }))
    const poor = await ask("poor")
    expectMessagesError(poor, 402, "billing_error", "insufficient_balance")
    expect(poor.headers.get("x-should-retry")).toBe("false")
    vendor.behave({ kind: "hang" })
    const leaving = new AbortController()
    const held = postMessages({ url: gateway.url, key: keyOf("tight") }, { stream: true }, { signal: leaving.signal })
    await eventually(() => vendor.calls.length === 1)
    for (const path of [messagesPath, countPath]) {
      const full = await ask("tight", path)
      expectMessagesError(full, 429, "rate_limit_error", "concurrency_limit")
      expect(full.headers.get("retry-after")).toBeNull()
    }
    leaving.abort()
    await held.catch(() => {})
    expect(vendor.calls).toHaveLength(1)
  } finally {
    await gateway.stop()
  }
})
