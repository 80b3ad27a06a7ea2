import { jsonReply, type Reply } from "../../wire/reply.ts"

/** What Kling says with each of its codes, and the HTTP status that goes with it. */
const codes: Readonly<Record<number, readonly [status: number, message: string]>> = {
  1000: [401, "Authentication failed"],
  1001: [401, "Authorization is empty"],
  1002: [401, "Authorization is invalid"],
  1003: [401, "Authorization is not yet valid"],
  1004: [401, "Authorization has expired"],
  1101: [429, "Account in arrears"],
  1103: [403, "The requested resource is unauthorized"],
  1200: [400, "Invalid request parameters"],
  1201: [400, "Invalid request parameters"],
  1203: [404, "The requested resource does not exist"],
  1301: [400, "Trigger the content security policy of the platform"],
  1302: [429, "The API request is too fast, exceeding the platform rate limit"],
  1303: [429, "parallel task over resource pack limit"],
  5000: [500, "Server internal error"],
  5001: [503, "Server temporarily unavailable"],
  5002: [504, "Server internal timeout"],
}

/** The code that goes with a status that was told. */
const usual: Readonly<Record<number, number>> = {
  400: 1201,
  401: 1002,
  402: 1101,
  403: 1103,
  404: 1203,
  429: 1303,
  503: 5001,
  504: 5002,
}

export function klingError(code: number, message?: string, status?: number): Reply {
  const [usualStatus, words] = codes[code] ?? [500, "Server internal error"]
  return jsonReply(status ?? usualStatus, { code, message: message ?? words, request_id: crypto.randomUUID() })
}

export function klingRefusal(status: number, message?: string): Reply {
  return klingError(usual[status] ?? (status < 500 ? 1200 : 5000), message, status)
}
