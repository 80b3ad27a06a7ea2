import type { Simulator } from "../../simulator/simulator.ts"
import type { UpstreamConfig } from "../../src/config/document.ts"
import type { TestGateway } from "./gateway.ts"
import { type Scene, type SceneOptions, scene } from "./scene.ts"

/** One POST of the model API as a client sees it. */
export interface EndpointSample {
  readonly path: string
  readonly body: "json" | "multipart"
  /** Of the largest body, in bytes. */
  readonly limit: number
  /** What a whole answer is taken for: read and checked, passed on as it comes, or told as events. */
  readonly answer: "whole" | "flow" | "events"
  /** A request that a vendor accepts, with so many bytes in a field or file of no importance. */
  request(model: string, padding?: number): Posted
}

export interface Posted {
  readonly type: string
  readonly bytes: Uint8Array
}

const mebibyte = 1024 * 1024
const chatLimit = 100 * mebibyte
const otherLimit = 32 * mebibyte
export const boundary = "----tollgate-form-7d1b"
export const formType = `multipart/form-data; boundary=${boundary}`

function jsonSample(
  path: string,
  answer: EndpointSample["answer"],
  fields: object,
  limit = otherLimit,
): EndpointSample {
  return {
    path,
    body: "json",
    limit,
    answer,
    request(model, padding = 0) {
      const before = Buffer.from(`{"model":${JSON.stringify(model)},"pad":"`)
      const after = Buffer.from(`",${JSON.stringify(fields).slice(1)}`)
      return { type: "application/json", bytes: Buffer.concat([before, Buffer.alloc(padding, "a"), after]) }
    },
  }
}

function formSample(path: string, file: string, fields: Readonly<Record<string, string>>): EndpointSample {
  return {
    path,
    body: "multipart",
    limit: otherLimit,
    answer: "flow",
    request: (model, padding = 0) => ({
      type: formType,
      bytes: form([
        { name: "model", value: model },
        ...Object.entries(fields).map(([name, value]) => ({ name, value })),
        { name: file, filename: "some.bin", value: Buffer.alloc(padding + 1, "f") },
      ]),
    }),
  }
}

export interface FormPart {
  readonly name: string
  readonly filename?: string
  readonly value: string | Uint8Array
}

/** A form as most clients write it. */
export function form(parts: readonly FormPart[], mark = boundary): Buffer {
  const pieces = parts.flatMap(({ name, filename, value }) => {
    const file = filename === undefined ? "" : `; filename="${filename}"\r\nContent-Type: application/octet-stream`
    const head = `--${mark}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`
    return [Buffer.from(head), typeof value === "string" ? Buffer.from(value) : value, Buffer.from("\r\n")]
  })
  return Buffer.concat([...pieces, Buffer.from(`--${mark}--\r\n`)])
}

const messages = [{ role: "user", content: "Say hello" }]

/** Every POST of the model API. */
export const endpointSamples = {
  chat: jsonSample("/v1/chat/completions", "whole", { messages }, chatLimit),
  responses: jsonSample("/v1/responses", "events", { input: "Say hello" }, chatLimit),
  embeddings: jsonSample("/v1/embeddings", "whole", { input: ["one", "two"], dimensions: 4 }),
  rerank: jsonSample("/v1/rerank", "whole", { query: "one", documents: ["one", "two"] }),
  imageGenerations: jsonSample("/v1/images/generations", "flow", { prompt: "a fox" }),
  imageEdits: formSample("/v1/images/edits", "image", { prompt: "a fox" }),
  imageVariations: formSample("/v1/images/variations", "image", {}),
  speech: jsonSample("/v1/audio/speech", "flow", { input: "Hello", voice: "alloy" }),
  transcriptions: formSample("/v1/audio/transcriptions", "file", { language: "en" }),
  translations: formSample("/v1/audio/translations", "file", { language: "en" }),
} as const satisfies Record<string, EndpointSample>

export const allEndpoints: readonly EndpointSample[] = Object.values(endpointSamples)
export const formEndpoints = allEndpoints.filter(({ body }) => body === "multipart")

/** A scene whose upstreams have every endpoint. */
export function endpointScene(
  simulator: Simulator,
  names: readonly string[],
  { each = {}, ...options }: SceneOptions = {},
): Promise<Scene> {
  const any: Partial<UpstreamConfig> = { vendor: "openai-compatible" }
  return scene(simulator, names, {
    each: Object.fromEntries(names.map((name) => [name, { ...any, ...each[name] }])),
    ...options,
  })
}

/** POSTs bytes to a gateway as they are. */
export function postTo(
  gateway: TestGateway,
  path: string,
  { type, bytes }: Posted,
  headers: Readonly<Record<string, string>> = {},
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.key}`, "content-type": type, ...headers },
    body: bytes,
    ...(signal === undefined ? {} : { signal }),
  })
}

/** The same with an object as JSON. */
export function postJson(gateway: TestGateway, path: string, body: object | string): Promise<Response> {
  const text = typeof body === "string" ? body : JSON.stringify(body)
  return postTo(gateway, path, { type: "application/json", bytes: Buffer.from(text) })
}
