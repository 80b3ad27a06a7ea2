import { afterAll, describe, expect, test } from "bun:test"
import Anthropic from "@anthropic-ai/sdk"
import { model, startGateway, testKey, upstream } from "../support/gateway.ts"

const names = Array.from({ length: 45 }, (_, number) => `model-${String(number).padStart(2, "0")}`)
const gateway = await startGateway({
  upstreams: [upstream("a", "http://127.0.0.1:1/v1")],
  models: [...names.slice(20), ...names.slice(0, 20)].map((name) => model(name, ["a"])),
})
afterAll(() => gateway.stop())

/** The addresses that a client asked. */
const asked: string[] = []
const noting = (async (url: string | URL | Request, init?: RequestInit) => {
  asked.push(new URL(url instanceof Request ? url.url : url).search)
  return fetch(url, init)
}) as typeof fetch

function client(options: ConstructorParameters<typeof Anthropic>[0] = {}): Anthropic {
  asked.length = 0
  return new Anthropic({ apiKey: testKey, baseURL: `${gateway.url}/compat`, maxRetries: 0, fetch: noting, ...options })
}

describe("models.list", () => {
  test("pages by themselves: 45 models in pages of 20, each once", async () => {
    const listed = await Array.fromAsync(client().models.list({ limit: 20 }))
    expect(listed.map(({ id }) => id).sort()).toEqual(names)
    const [first, second] = [listed[19]!.id, listed[39]!.id]
    expect(asked).toEqual(["?limit=20", `?limit=20&after_id=${first}`, `?limit=20&after_id=${second}`])
  })

  test("20 are a page where nothing is said, and one page can hold all", async () => {
    const usual = await client().models.list()
    expect([usual.data.length, usual.has_more, usual.hasNextPage()]).toEqual([20, true, true])
    const whole = await client().models.list({ limit: 1000 })
    expect([whole.data.length, whole.has_more, whole.hasNextPage()]).toEqual([45, false, false])
    expect([whole.first_id, whole.last_id]).toEqual([whole.data[0]!.id, whole.data[44]!.id])
  })

  test("pages backwards as well: what stands ahead of one, each once", async () => {
    const whole = await client().models.list({ limit: 1000 })
    const last = whole.data[44]!.id
    const ahead = await Array.fromAsync(client().models.list({ limit: 20, before_id: last }))
    expect(ahead).toHaveLength(44)
    expect(asked).toHaveLength(3)
    expect(ahead.map(({ id }) => id).sort()).toEqual(names.filter((name) => name !== last))
  })

  test("an entry is complete", async () => {
    const { data } = await client().models.list({ limit: 1 })
    expect(data[0]).toEqual({
      type: "model",
      id: data[0]!.id,
      display_name: data[0]!.id,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      max_input_tokens: null,
      max_tokens: null,
      lifecycle: "active",
      deprecated_at: null,
      retires_at: null,
      line: null,
      capabilities: null,
    } as unknown as (typeof data)[0])
  })

  test.each([0, 1001, -1])("a limit of %p is a BadRequestError that says what is right", async (limit) => {
    const failure = await failureOf(async () => client().models.list({ limit }))
    expect(failure).toMatchObject({ name: "BadRequestError", status: 400, type: "invalid_request_error" })
    expect(failure.message).toContain("limit must be a whole number from 1 to 1000")
  })
})

describe("models.retrieve", () => {
  test("gives the entry of the list", async () => {
    const { data } = await client().models.list({ limit: 3 })
    for (const entry of data) {
      const { _request_id, ...one } = await client().models.retrieve(entry.id)
      expect(one).toEqual(entry)
    }
  })

  test("an unknown one is a NotFoundError in the style of the messages API", async () => {
    const failure = await failureOf(async () => client().models.retrieve("nope"))
    expect(failure).toMatchObject({ name: "NotFoundError", status: 404, type: "not_found_error" })
    expect(failure.error).toMatchObject({ type: "error", error: { code: "model_not_found" } })
  })
})

test("either way to send the key works; a wrong one is an AuthenticationError", async () => {
  const bearer = client({ apiKey: null, authToken: testKey })
  expect((await bearer.models.list()).data).toHaveLength(20)
  const failure = await failureOf(async () => client({ apiKey: "sk-wrong-0123456789" }).models.list())
  expect(failure).toMatchObject({ name: "AuthenticationError", status: 401 })
  expect(failure.error).toMatchObject({ error: { type: "invalid_request_error", code: "invalid_api_key" } })
})

interface Seen {
  readonly name: string
  readonly message: string
  readonly status: unknown
  readonly type: unknown
  readonly error: unknown
}

async function failureOf(work: () => Promise<unknown>): Promise<Seen> {
  const failure = await work().then(
    () => null,
    (error: unknown) => error,
  )
  if (!(failure instanceof Anthropic.APIError)) throw new Error(`no API error, but ${String(failure)}`)
  const { message, status, type, error } = failure
  return { name: failure.constructor.name, message, status, type, error }
}
