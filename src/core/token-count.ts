/** More tokens than any answer has: beyond it a number is a mistake, and charging by it would be another. */
export const mostTokens = 1_000_000_000

/** True for a number that tokens can be charged by: upstreams also send negative, broken, absurd and textual ones. */
export function isTokenCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= mostTokens
}

/** Token counts by name: `needed` ones must be there, `extra` ones count 0 where they are not; "invalid" where one is no count. */
export function tokenCounts<Needed extends string, Extra extends string>(
  needed: Readonly<Record<Needed, unknown>>,
  extra: Readonly<Record<Extra, unknown>>,
): Record<Needed | Extra, number> | "invalid" {
  const counts: Record<string, number> = {}
  for (const [name, value] of Object.entries(needed)) {
    if (!isTokenCount(value)) return "invalid"
    counts[name] = value
  }
  for (const [name, value] of Object.entries(extra)) {
    if (value === undefined || value === null) counts[name] = 0
    else if (isTokenCount(value)) counts[name] = value
    else return "invalid"
  }
  return counts as Record<Needed | Extra, number>
}
