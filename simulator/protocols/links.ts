import { valuesOf } from "../wire/request-parser.ts"
import type { VendorRequest } from "./protocol.ts"

/** Where links to the vendor start: at the host the request came to, or another name of it, and the vendor's name. */
export function homeOf(request: VendorRequest, host?: string): string {
  const [cameTo = ""] = valuesOf(request.headers, "host")
  return `http://${host === undefined ? cameTo : renamed(cameTo, host)}/${request.vendor}`
}

/** The port is kept unless the other host brings its own. */
function renamed(from: string, to: string): string {
  const [port = ""] = /:\d+$/.exec(from) ?? []
  return /:\d+$/.test(to) ? to : to + port
}
