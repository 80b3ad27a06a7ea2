/** True for a number that tokens can be charged by: upstreams also send negative, broken and textual ones. */
export function isTokenCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0
}

/** The number of tokens; 0 for what is no count. */
export function tokenCount(value: unknown): number {
  return isTokenCount(value) ? value : 0
}
