import { describe, expect, test } from "bun:test"
import Anthropic from "@anthropic-ai/sdk"
import OpenAI from "openai"
import { GatewayError } from "./errors.ts"
import {
  type ListedModel,
  type MessagesModelPage,
  type ModelPageQuery,
  messagesModel,
  messagesModelPage,
  openaiModel,
  openaiModelList,
} from "./model-list.ts"

const day = 24 * 60 * 60 * 1000
const start = Date.UTC(2026, 0, 1)

/** Five models, out of order, two of them of the same day. */
const models: readonly ListedModel[] = [
  { name: "c", createdAt: start + 2 * day, ownedBy: "openai" },
  { name: "a", createdAt: start, ownedBy: "openai" },
  { name: "e", createdAt: start + 3 * day, ownedBy: "anthropic" },
  { name: "d", createdAt: start + 3 * day, ownedBy: "anthropic" },
  { name: "b", createdAt: start + day + 999, ownedBy: "mistral" },
]
const newestFirst = ["d", "e", "c", "b", "a"]

function ids(page: MessagesModelPage): readonly string[] {
  return page.data.map((model) => model.id)
}

function manyModels(count: number): readonly ListedModel[] {
  return Array.from({ length: count }, (_, index) => ({
    name: `m${index}`,
    createdAt: start + (index % 7),
    ownedBy: "x",
  }))
}

function refusal(query: ModelPageQuery): GatewayError {
  try {
    messagesModelPage(models, query)
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error("the query was accepted")
}

/** A client of either package that is answered here, without a network; it notes the queries. */
function sdkOptions(answer: (query: URLSearchParams) => object, queries: string[]) {
  return {
    apiKey: "none",
    baseURL: "http://127.0.0.1",
    maxRetries: 0,
    fetch: (url: string | URL | Request) => {
      const query = new URL(url instanceof Request ? url.url : url).searchParams
      queries.push(query.toString())
      if (queries.length > 100) throw new Error("the paging does not end")
      return Promise.resolve(Response.json(answer(query)))
    },
  }
}

function pagingClient(listed: readonly ListedModel[], queries: string[]): Anthropic {
  const answer = (query: URLSearchParams): object =>
    messagesModelPage(listed, {
      limit: query.get("limit"),
      after_id: query.get("after_id"),
      before_id: query.get("before_id"),
    })
  return new Anthropic(sdkOptions(answer, queries))
}

async function idsOf(list: AsyncIterable<{ id: string }>): Promise<readonly string[]> {
  const found: string[] = []
  for await (const model of list) found.push(model.id)
  return found
}

describe("the chat-completions shape", () => {
  test("a model has its time in whole seconds", () => {
    const model = { id: "b", object: "model", created: (start + day) / 1000, owned_by: "mistral" } as const
    expect(openaiModel(models[4]!)).toEqual(model)
  })

  test("the list has every model, newest first, and no paging", () => {
    const list = openaiModelList(models)
    expect(Object.keys(list)).toEqual(["object", "data"])
    expect(list.object).toBe("list")
    expect(list.data.map((model) => model.id)).toEqual(newestFirst)
  })

  test("the openai package iterates over all of them with one call", async () => {
    const queries: string[] = []
    const client = new OpenAI(sdkOptions(() => openaiModelList(models), queries))
    expect(await idsOf(client.models.list())).toEqual(newestFirst)
    expect(queries).toHaveLength(1)
  })
})

describe("the messages shape", () => {
  test("a model has every field the protocol requires", () => {
    expect(messagesModel(models[1]!)).toEqual({
      type: "model",
      id: "a",
      display_name: "a",
      created_at: "2026-01-01T00:00:00.000Z",
      max_input_tokens: null,
      max_tokens: null,
      lifecycle: "active",
      deprecated_at: null,
      retires_at: null,
      line: null,
      capabilities: null,
    })
  })

  test("a page says where it begins and ends, and whether there is more", () => {
    const page = messagesModelPage(models, { limit: "2" })
    expect(ids(page)).toEqual(["d", "e"])
    expect(page).toMatchObject({ has_more: true, first_id: "d", last_id: "e" })
  })

  test.each([
    [{ limit: "2", after_id: "e" }, ["c", "b"], true],
    [{ limit: "2", after_id: "c" }, ["b", "a"], false],
    [{ limit: "2", after_id: "b" }, ["a"], false],
    [{ limit: "2", after_id: "a" }, [], false],
    [{ limit: "2", before_id: "a" }, ["c", "b"], true],
    [{ limit: "2", before_id: "c" }, ["d", "e"], false],
    [{ limit: "2", before_id: "e" }, ["d"], false],
    [{ limit: "2", before_id: "d" }, [], false],
    [{ limit: "5" }, newestFirst, false],
    [{ limit: "4" }, ["d", "e", "c", "b"], true],
    [{ limit: "1000" }, newestFirst, false],
    [{ limit: "", after_id: "", before_id: null }, newestFirst, false],
    [{ after_id: "gone" }, [], false],
    [{ before_id: "gone" }, [], false],
  ] satisfies readonly (readonly [ModelPageQuery, readonly string[], boolean])[])("%j", (query, expected, more) => {
    const page = messagesModelPage(models, query)
    expect(ids(page)).toEqual(expected)
    expect(page.has_more).toBe(more)
    expect(page.first_id).toBe(expected[0] ?? null)
    expect(page.last_id).toBe(expected.at(-1) ?? null)
  })

  test("no models are an empty page", () => {
    expect(messagesModelPage([], {})).toEqual({ data: [], has_more: false, first_id: null, last_id: null })
  })

  test("twenty to a page unless asked otherwise", () => {
    const page = messagesModelPage(manyModels(21), {})
    expect(page.data).toHaveLength(20)
    expect(page.has_more).toBe(true)
  })

  test.each(["0", "1001", "abc", "-1", "1.5", "1e2", " 5", "99999999999999999999"])("limit %j is refused", (limit) => {
    const error = refusal({ limit })
    expect(error.status).toBe(400)
    expect(error.code).toBe("invalid_parameter")
    expect(error.message).toBe("limit must be a whole number from 1 to 1000")
  })

  test("both directions at once are refused", () => {
    const error = refusal({ after_id: "a", before_id: "b" })
    expect(error.code).toBe("invalid_parameter")
    expect(error.message).toBe("after_id and before_id cannot be given together")
  })
})

describe("paging as the anthropic package does it", () => {
  test("forwards, every model comes once and the paging ends", async () => {
    const queries: string[] = []
    expect(await idsOf(pagingClient(models, queries).models.list({ limit: 2 }))).toEqual(newestFirst)
    expect(queries).toEqual(["limit=2", "limit=2&after_id=e", "limit=2&after_id=b"])
  })

  test("backwards from the last one, the others come once and the paging ends", async () => {
    const queries: string[] = []
    const list = pagingClient(models, queries).models.list({ limit: 2, before_id: "a" })
    expect(await idsOf(list)).toEqual(["c", "b", "d", "e"])
    expect(queries).toEqual(["limit=2&before_id=a", "limit=2&before_id=c"])
  })

  test.each([1, 2, 3, 7, 20, 60, 61, 62])("61 models, %d to a page", async (limit) => {
    const listed = manyModels(61)
    const all = openaiModelList(listed).data.map((model) => model.id)
    expect(await idsOf(pagingClient(listed, []).models.list({ limit }))).toEqual(all)
    const backwards = await idsOf(pagingClient(listed, []).models.list({ limit, before_id: all.at(-1)! }))
    expect(backwards.toSorted()).toEqual(all.slice(0, -1).toSorted())
  })

  test("a cursor whose model is gone ends the paging", async () => {
    expect(await idsOf(pagingClient(models, []).models.list({ limit: 2, after_id: "gone" }))).toEqual([])
    expect(await idsOf(pagingClient(models, []).models.list({ limit: 2, before_id: "gone" }))).toEqual([])
  })
})
