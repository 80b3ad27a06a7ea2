import { timingSafeEqual } from "node:crypto"
import type { Vault } from "../lib/seal.ts"

/** For how long a link opens: a day, as the addresses of most vendors do. */
export const linkLifeSeconds = 24 * 60 * 60

/** Addresses of results that open without an API key, for whoever was given one, until they expire. */
export interface ContentLinks {
  make(baseUrl: string, jobId: string): string
  /** True where the query makes a call for this job's content a signed one that has not expired. */
  check(jobId: string, query: URLSearchParams): boolean
}

export function contentLinks(vault: Pick<Vault, "sign">, now: () => number = Date.now): ContentLinks {
  const signatureOf = (jobId: string, expires: string): string => vault.sign(`video content\n${jobId}\n${expires}`)
  const seconds = (): number => Math.floor(now() / 1000)
  return {
    make(baseUrl, jobId) {
      const expires = String(seconds() + linkLifeSeconds)
      const query = new URLSearchParams({ expires, signature: signatureOf(jobId, expires) })
      return `${baseUrl}/v1/videos/${jobId}/content?${query}`
    },
    check(jobId, query) {
      const expires = query.get("expires") ?? ""
      if (!/^\d{1,12}$/.test(expires)) return false
      const isGenuine = isSame(query.get("signature") ?? "", signatureOf(jobId, expires))
      return isGenuine && seconds() < Number(expires)
    },
  }
}

/** Takes the same time wherever the two differ, so that a signature cannot be found piece by piece. */
function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
