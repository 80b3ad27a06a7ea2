import { isExecutable } from "../lib/executable.ts"
import type { Environment } from "../settings.ts"

const variable = "BUN_CONFIG_MAX_HTTP_REQUESTS"

/** The most the runtime takes. Its default of 256 outgoing requests at once would queue the 257th stream. */
const mostRequests = "65336"

/** The runtime reads its limit only when the process begins, so a process without it begins again, under the same pid. */
export function ensureFetchLimit(env: Environment): void {
  if (env[variable] !== undefined) return
  const args = isExecutable ? Bun.argv.slice(2) : [Bun.main, ...Bun.argv.slice(2)]
  process.execve?.(process.execPath, [process.execPath, ...args], { ...env, [variable]: mostRequests })
}
