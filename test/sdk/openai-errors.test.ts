import { afterAll, beforeEach, describe, expect, test } from "bun:test"
import type OpenAI from "openai"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startGateway } from "../support/gateway.ts"
import { ask, emptyKey, openSides, thrownBy, tightKey } from "./openai-sides.ts"

const { both, close, gatewayClient, vendor } = await openSides()
beforeEach(() => vendor.reset())
afterAll(close)

describe("errors of the gateway are the SDK's own classes", () => {
  const create = (client: OpenAI, body: object = {}) => client.chat.completions.create({ ...ask, ...body })

  test("a wrong key: AuthenticationError, and nothing reaches the vendor", async () => {
    const thrown = await thrownBy(() => create(gatewayClient({ apiKey: "sk-wrong-0123456789" })))
    expect(thrown).toMatchObject({
      kind: "AuthenticationError",
      status: 401,
      code: "invalid_api_key",
      type: "invalid_request_error",
    })
    expect(thrown.message).not.toContain("sk-wrong")
    expect(vendor.calls).toHaveLength(0)
  })

  test("an unknown model: NotFoundError", async () => {
    const thrown = await thrownBy(() => create(gatewayClient(), { model: "no-such-model" }))
    expect(thrown).toMatchObject({
      kind: "NotFoundError",
      status: 404,
      code: "model_not_found",
      type: "not_found_error",
    })
    expect(thrown.message).toContain("no-such-model")
  })

  test("no model at all: BadRequestError", async () => {
    const thrown = await thrownBy(() => create(gatewayClient(), { model: "" }))
    expect(thrown).toMatchObject({
      kind: "BadRequestError",
      status: 400,
      code: "missing_model",
      type: "invalid_request_error",
    })
  })

  test("no balance: APIError with status 402, not asked again although retries are on", async () => {
    let asked = 0
    const counting = ((...given: Parameters<typeof fetch>) => {
      asked += 1
      return fetch(...given)
    }) as typeof fetch
    const thrown = await thrownBy(() => create(gatewayClient({ apiKey: emptyKey, maxRetries: 5, fetch: counting })))
    expect(thrown).toMatchObject({ kind: "APIError", status: 402, code: "insufficient_balance", type: "billing_error" })
    expect(asked).toBe(1)
    expect(vendor.calls).toHaveLength(0)
  })

  test("too many at once: RateLimitError without retries; with them the SDK gets through by itself", async () => {
    vendor.behave({ kind: "chat", text: "one two three", gapMs: 150 }, { kind: "chat", text: "free again" })
    const running = await gatewayClient({ apiKey: tightKey }).chat.completions.create({ ...ask, stream: true })
    const thrown = await thrownBy(() => create(gatewayClient({ apiKey: tightKey })))
    expect(thrown).toMatchObject({
      kind: "RateLimitError",
      status: 429,
      code: "concurrency_limit",
      type: "rate_limit_error",
    })
    expect(thrown.message).toBe("429 concurrency limit reached")
    const later = gatewayClient({ apiKey: tightKey, maxRetries: 5 }).chat.completions.create(ask)
    for await (const _ of running);
    expect((await later).choices[0]?.message.content).toBe("free again")
    expect(vendor.calls).toHaveLength(2)
  }, 20_000)

  test("a vendor that fails: InternalServerError 502 after one repetition", async () => {
    vendor.behave({ kind: "status", status: 500 })
    const thrown = await thrownBy(() => create(gatewayClient()))
    expect(thrown).toMatchObject({
      kind: "InternalServerError",
      status: 502,
      code: "upstream_error",
      type: "api_error",
    })
    expect(vendor.calls).toHaveLength(2)
  })

  test("a vendor that cannot be reached: InternalServerError 502, its reason kept inside", async () => {
    vendor.behave({ kind: "reset" })
    const thrown = await thrownBy(() => create(gatewayClient()))
    expect(thrown).toMatchObject({
      kind: "InternalServerError",
      status: 502,
      code: "upstream_unreachable",
      type: "api_error",
    })
    expect(thrown.message).not.toContain(new URL(vendor.baseUrl).host)
  })

  test("a gateway that is not there: APIConnectionError", async () => {
    const gone = await startGateway({ models: [] })
    await gone.stop()
    const thrown = await thrownBy(() => create(gatewayClient({ baseURL: `${gone.url}/v1` })))
    expect(thrown.kind).toBe("APIConnectionError")
  })
})

describe("errors of the vendor are the same through the gateway as without it", () => {
  const statuses = [
    [400, "BadRequestError"],
    [401, "AuthenticationError"],
    [403, "PermissionDeniedError"],
    [404, "NotFoundError"],
    [409, "ConflictError"],
    [413, "APIError"],
    [422, "UnprocessableEntityError"],
    [429, "RateLimitError"],
  ] as const
  test.each([...statuses])(
    "%d: %s with the same message, code, type and param, streamed or not",
    async (status, kind) => {
      for (const stream of [false, true]) {
        const { direct, through, throughCalls } = await both(
          (client) => thrownBy(() => client.chat.completions.create({ ...ask, stream })),
          { kind: "status", status },
        )
        expect(through).toEqual(direct)
        expect(through).toMatchObject({ kind, status })
        expect(throughCalls).toBe(1)
      }
    },
  )

  test("a request that the vendor refuses for its content", async () => {
    const { direct, through } = await both((client) =>
      thrownBy(() => client.chat.completions.create({ model: "sim-large" } as typeof ask)),
    )
    expect(through).toEqual(direct)
    expect(through).toMatchObject({ kind: "BadRequestError", param: "messages" })
  })

  test("a refusal that is not JSON", async () => {
    const { direct, through } = await both((client) => thrownBy(() => client.chat.completions.create(ask)), {
      kind: "status",
      status: 422,
      body: "<h1>no</h1>",
      headers: { "content-type": "text/html" },
    })
    expect(through).toEqual(direct)
    expect(through.kind).toBe("UnprocessableEntityError")
  })

  test("429 with the SDK's usual two retries: three calls on either way", async () => {
    const scenario = (client: OpenAI) =>
      thrownBy(() => client.withOptions({ maxRetries: 2 }).chat.completions.create(ask))
    const { direct, through, directCalls, throughCalls } = await both(scenario, { kind: "status", status: 429 })
    expect(through).toEqual(direct)
    expect([directCalls, throughCalls]).toEqual([3, 3])
  }, 20_000)

  test("429 twice, then an answer: the SDK gets through on either way", async () => {
    const scenario = async (client: OpenAI) => {
      const { choices } = await client.withOptions({ maxRetries: 2 }).chat.completions.create(ask)
      return choices[0]?.message.content
    }
    const limited: Behaviour = { kind: "status", status: 429 }
    const { direct, through, throughCalls } = await both(scenario, limited, limited, { kind: "chat", text: "at last" })
    expect([direct, through]).toEqual(["at last", "at last"])
    expect(throughCalls).toBe(3)
  }, 20_000)
})

describe("a stream that goes wrong after it has begun throws, and never looks complete", () => {
  const token =
    'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"so far"}}]}\n\n'
  // The comment comes later, so that the token has surely been read when the connection ends.
  const begun = { kind: "stream", frames: [token, ": and then\n\n"], gapMs: 150 } as const
  const read = (client: OpenAI) => {
    const texts: string[] = []
    return thrownBy(async () => {
      for await (const chunk of await client.chat.completions.create({ ...ask, stream: true })) {
        texts.push(chunk.choices[0]?.delta.content ?? "")
      }
      return texts
    }).then((thrown) => ({ thrown, texts }))
  }

  test("the vendor's own error event: the same APIError through the gateway as without it", async () => {
    const error = { message: "The server is overloaded.", type: "server_error", param: null, code: "overloaded" }
    const { direct, through } = await both(read, {
      kind: "stream",
      frames: [token, `data: ${JSON.stringify({ error })}\n\n`],
      gapMs: 20,
    })
    expect(through).toEqual(direct)
    expect(through).toMatchObject({ texts: ["so far"], thrown: { kind: "APIError", ...error } })
  })

  test.each(["fin", "rst", "clean"] as const)(
    "the vendor's connection ends in mid-stream (%s): APIError upstream_stream_truncated",
    async (end) => {
      vendor.behave({ ...begun, end })
      const { thrown, texts } = await read(gatewayClient())
      expect(texts).toEqual(["so far"])
      expect(thrown).toMatchObject({ kind: "APIError", code: "upstream_stream_truncated", type: "api_error" })
    },
  )

  test("the stream helper rejects too", async () => {
    vendor.behave({ ...begun, end: "fin" })
    const thrown = await thrownBy(() => gatewayClient().chat.completions.stream(ask).finalChatCompletion())
    expect(thrown).toMatchObject({ kind: "APIError", code: "upstream_stream_truncated" })
  })

  test("an error before the first token is no stream at all: a status, as for any other request", async () => {
    vendor.behave({ kind: "stream", frames: ['data: {"error":{"message":"no","code":"x"}}\n\n'] })
    const thrown = await thrownBy(() => gatewayClient().chat.completions.create({ ...ask, stream: true }))
    expect(thrown).toMatchObject({ kind: "InternalServerError", status: 502, code: "upstream_error" })
    expect(vendor.calls).toHaveLength(2)
  })
})
