import { afterAll, beforeEach, expect, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { model, startGateway, testKey, upstream } from "../support/gateway.ts"

const simulator = await startSimulator()
const [cohere, jina, voyage] = ["cohere", "jina", "voyage"].map(simulator.vendor)
const gateway = await startGateway({
  upstreams: [
    upstream("cohere", `${simulator.url}/cohere`, { vendor: "cohere" }),
    upstream("jina", jina!.baseUrl, { vendor: "jina" }),
    upstream("voyage", voyage!.baseUrl, { vendor: "voyage" }),
  ],
  models: ["cohere", "jina", "voyage"].map((name) => model(`${name}-rerank`, [{ upstream: name, model: "rerank-up" }])),
})
beforeEach(() => {
  for (const vendor of [cohere, jina, voyage]) vendor!.reset()
})
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
})

const documents = ["cats sleep", "the fox runs in the snow", "a fox"]

async function post(
  url: string,
  key: string,
  body: object,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  })
  const { id: _, ...answer } = (await response.json()) as Record<string, unknown>
  return { status: response.status, body: answer }
}

/** The same request at the vendor's own address, under its own model name, and through the gateway. */
async function both(name: string, vendorUrl: string, fields: object) {
  const direct = await post(vendorUrl, "key", { model: "rerank-up", ...fields })
  const through = await post(`${gateway.url}/v1/rerank`, testKey, { model: `${name}-rerank`, ...fields })
  expect(through).toEqual(direct)
  return through
}

test("Cohere's shape: results in order of relevance, billed in search units", async () => {
  const { status, body } = await both("cohere", `${simulator.url}/cohere/v2/rerank`, {
    query: "fox in snow",
    documents,
    top_n: 2,
    max_tokens_per_doc: 4096,
  })
  expect(status).toBe(200)
  expect(body).toEqual({
    results: [
      { index: 1, relevance_score: expect.any(Number) },
      { index: 2, relevance_score: expect.any(Number) },
    ],
    meta: { api_version: { version: "2" }, billed_units: { search_units: 1 } },
  })
  expect(cohere!.calls.map(({ path }) => path)).toEqual(["/cohere/v2/rerank", "/cohere/v2/rerank"])
})

test("Jina's shape: documents returned, counted in tokens", async () => {
  const { status, body } = await both("jina", `${simulator.url}/jina/v1/rerank`, {
    query: "fox in snow",
    documents: documents.map((text) => ({ text })),
    top_n: 1,
    return_documents: true,
  })
  expect(status).toBe(200)
  expect(body).toEqual({
    model: "rerank-up",
    object: "list",
    usage: { total_tokens: expect.any(Number), prompt_tokens: expect.any(Number) },
    results: [{ index: 1, relevance_score: expect.any(Number), document: { text: documents[1] } }],
  })
  expect(jina!.calls.map(({ path }) => path)).toEqual(["/jina/v1/rerank", "/jina/v1/rerank"])
})

test("Voyage's shape: top_k, and the list under `data`", async () => {
  voyage!.behave({ kind: "rerank", style: "voyage" })
  const { status, body } = await both("voyage", `${simulator.url}/voyage/v1/rerank`, {
    query: "fox in snow",
    documents,
    top_k: 1,
  })
  expect(status).toBe(200)
  expect(body).toEqual({
    object: "list",
    data: [{ index: 1, relevance_score: expect.any(Number) }],
    model: "rerank-up",
    usage: { total_tokens: expect.any(Number) },
  })
})

test("a refusal passes with its status and body", async () => {
  const { status, body } = await both("cohere", `${simulator.url}/cohere/v2/rerank`, { documents })
  expect(status).toBe(400)
  expect(body).toMatchObject({ error: { param: "query" } })
})
