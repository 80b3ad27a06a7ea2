import { expect, test } from "bun:test"
import type { Behaviour } from "../behaviour.ts"
import { standWith } from "../testing/stand.ts"

const stand = standWith("any")
const ask = {
  model: "rerank-x",
  query: "capital of France",
  documents: ["about cats", "Paris, capital of France", "France"],
}

async function rerank(path: string, more: object = {}, step: Behaviour = { kind: "rerank" }): Promise<unknown> {
  return await (await stand.post(path, { ...ask, ...more }, { step })).json()
}

test("Cohere's shape is under /v2 and counts search units", async () => {
  const answer = await rerank("/v2/rerank", { top_n: 2 })
  expect(answer).toMatchObject({
    id: expect.any(String),
    results: [{ index: 1 }, { index: 2 }],
    meta: { api_version: { version: "2" }, billed_units: { search_units: 1 } },
  })
  const documents = Array.from({ length: 101 }, (_, number) => ({ text: `document ${number}` }))
  expect(await rerank("/v2/rerank", { documents })).toMatchObject({ meta: { billed_units: { search_units: 2 } } })
})

test("Jina's shape has the model, tokens, and documents when asked", async () => {
  expect(await rerank("/v1/rerank", { return_documents: true, top_n: 1 })).toEqual({
    model: "rerank-x",
    object: "list",
    usage: { total_tokens: expect.any(Number), prompt_tokens: expect.any(Number) },
    results: [{ index: 1, relevance_score: expect.any(Number), document: { text: "Paris, capital of France" } }],
  })
  expect(await rerank("/compatible-api/v1/reranks")).toMatchObject({
    results: [{ index: 1 }, { index: 2 }, { index: 0 }],
  })
})

test("Voyage's shape, exact usage and no usage are as told", async () => {
  const step = { kind: "rerank", style: "voyage", usage: { total_tokens: 26 } } as const
  expect(await rerank("/v1/rerank", { top_k: 1 }, step)).toEqual({
    object: "list",
    data: [{ index: 1, relevance_score: expect.any(Number) }],
    model: "rerank-x",
    usage: { total_tokens: 26 },
  })
  expect(await rerank("/v1/rerank", {}, { kind: "rerank", usage: "none" })).not.toHaveProperty("usage")
  const bare = await rerank("/v2/rerank", {}, { kind: "rerank", usage: "none" })
  expect(bare).toMatchObject({ meta: { api_version: { version: "2" } } })
  expect(JSON.stringify(bare)).not.toContain("billed_units")
})

test.each(["query", "documents", "model"] as const)("a request without %s is refused", async (field) => {
  const response = await stand.post("/v1/rerank", { ...ask, [field]: undefined })
  expect(response.status).toBe(400)
  expect(await response.text()).toContain(field)
})
