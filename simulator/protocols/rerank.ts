import { isObject } from "../../src/core/json.ts"
import type { BehaviourOf } from "../behaviour.ts"
import { jsonReply, type Reply } from "../wire/reply.ts"
import { headDelay } from "./event-stream.ts"
import { missing, noModel, notJson, readJson } from "./json-body.ts"
import { tokens } from "./model-voice.ts"
import { type Protocol, pathOf, type VendorRequest } from "./protocol.ts"
import { errorReply } from "./vendor-errors.ts"

const documentsPerSearchUnit = 100

/** Reranking in the shapes of Cohere, Jina and Voyage; one vendor has its path in the plural. */
export const rerank: Protocol = {
  method: "POST",
  ending: /\/reranks?$/,
  answer: (request, step) => rerankReply(request, step.kind === "rerank" ? step : { kind: "rerank" }),
}

type Step = BehaviourOf<"rerank">

interface Ranked {
  readonly index: number
  readonly relevance_score: number
  readonly document?: object
}

function rerankReply(request: VendorRequest, step: Step): Reply {
  const body = readJson(request.body)
  if (!isObject(body)) return errorReply(400, { message: notJson.problem })
  const { model, query, documents } = body
  if (typeof model !== "string" || model === "") return errorReply(400, { message: noModel.problem })
  if (typeof query !== "string") return errorReply(400, { message: missing("query").problem, param: "query" })
  if (!Array.isArray(documents)) return errorReply(400, { message: missing("documents").problem, param: "documents" })
  const texts = documents.map(textOf)
  const ranked = rank(query, texts, body.return_documents === true).slice(0, topOf(body, texts.length))
  const counted = [query, ...texts].reduce((sum, text) => sum + tokens(text.length), 0)
  const style = step.style ?? (pathOf(request).includes("/v2/") ? "cohere" : "jina")
  const shape = { model: step.model ?? model, ranked, counted, documents: texts.length }
  return { ...jsonReply(200, bodies[style](shape, step)), ...headDelay(step.headDelayMs ?? 0) }
}

interface Shape {
  readonly model: string
  readonly ranked: readonly Ranked[]
  readonly counted: number
  readonly documents: number
}

const bodies: Readonly<Record<NonNullable<Step["style"]>, (shape: Shape, step: Step) => object>> = {
  cohere: ({ ranked, documents }, step) => ({
    id: Bun.randomUUIDv7(),
    results: ranked,
    meta: { api_version: { version: "2" }, ...billed(documents, step) },
  }),
  jina: ({ model, ranked, counted }, step) => ({
    model,
    object: "list",
    usage: usageOf(step, { total_tokens: counted, prompt_tokens: counted }),
    results: ranked,
  }),
  voyage: ({ model, ranked, counted }, step) => ({
    object: "list",
    data: ranked,
    model,
    usage: usageOf(step, { total_tokens: counted }),
  }),
}

function billed(documents: number, step: Step): object {
  const search_units = step.searchUnits ?? Math.max(1, Math.ceil(documents / documentsPerSearchUnit))
  const billed_units = usageOf(step, { search_units })
  return billed_units === undefined ? {} : { billed_units }
}

function usageOf(step: Step, counted: object): object | undefined {
  return step.usage === "none" ? undefined : (step.usage ?? counted)
}

/** The more of the query's words a document has, the higher it stands; equals keep their order. */
function rank(query: string, texts: readonly string[], withDocuments: boolean): Ranked[] {
  const wanted = new Set(query.toLowerCase().match(/\w+/g))
  const ranked = texts.map((text, index) => {
    const found = new Set((text.toLowerCase().match(/\w+/g) ?? []).filter((word) => wanted.has(word)))
    const relevance_score = (found.size + 0.01) / (wanted.size + 0.02)
    return { index, relevance_score, ...(withDocuments ? { document: { text } } : {}) }
  })
  return ranked.sort((a, b) => b.relevance_score - a.relevance_score)
}

function textOf(document: unknown): string {
  if (typeof document === "string") return document
  return isObject(document) && typeof document.text === "string" ? document.text : JSON.stringify(document)
}

function topOf(body: Record<string, unknown>, all: number): number {
  const top = body.top_n ?? body.top_k
  return typeof top === "number" ? top : all
}
