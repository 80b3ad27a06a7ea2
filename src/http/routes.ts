import type { ErrorDialect } from "../core/endpoints.ts"
import type { Protocol } from "../relay/protocol.ts"
import { chat } from "../relay/protocols/chat.ts"
import { countTokens, messages } from "../relay/protocols/messages.ts"
import {
  embeddings,
  imageEdits,
  imageGenerations,
  imageVariations,
  rerank,
  speech,
  transcriptions,
  translations,
} from "../relay/protocols/passed.ts"
import { responses } from "../relay/protocols/responses.ts"

/** One operation of the model API: where it stands and how it is relayed. */
export interface ApiRoute {
  readonly path: string
  readonly method: "POST"
  readonly dialect: ErrorDialect
  readonly protocol: Protocol
}

function post(path: string, protocol: Protocol): ApiRoute {
  return { path, method: "POST", dialect: dialectOf(path), protocol }
}

export const apiRoutes: readonly ApiRoute[] = [
  post("/v1/chat/completions", chat),
  post("/v1/responses", responses),
  post("/compat/v1/messages", messages),
  post("/compat/v1/messages/count_tokens", countTokens),
  post("/v1/embeddings", embeddings),
  post("/v1/rerank", rerank),
  post("/v1/images/generations", imageGenerations),
  post("/v1/images/edits", imageEdits),
  post("/v1/images/variations", imageVariations),
  post("/v1/audio/speech", speech),
  post("/v1/audio/transcriptions", transcriptions),
  post("/v1/audio/translations", translations),
]

/** Errors about paths that do not exist are written in the style of their neighbourhood. */
export function dialectOf(path: string): ErrorDialect {
  return path.startsWith("/compat/") ? "messages" : "unified"
}
