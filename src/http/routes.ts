import type { ErrorDialect } from "../core/endpoints.ts"
import { chat } from "../relay/chat.ts"
import type { Protocol } from "../relay/protocol.ts"

/** One operation of the model API: where it stands and how it is relayed. */
export interface ApiRoute {
  readonly path: string
  readonly method: "POST"
  readonly dialect: ErrorDialect
  readonly protocol: Protocol
}

export const apiRoutes: readonly ApiRoute[] = [
  { path: "/v1/chat/completions", method: "POST", dialect: "unified", protocol: chat },
]

/** Errors about paths that do not exist are written in the style of their neighbourhood. */
export function dialectOf(path: string): ErrorDialect {
  return path.startsWith("/compat/") ? "messages" : "unified"
}
