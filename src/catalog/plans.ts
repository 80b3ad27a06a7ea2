import type { Plan, Snapshot } from "../core/catalog.ts"
import type { Principal } from "../core/principal.ts"

/** The plan of accounts that name none; made without limits where there is no such plan. */
export const defaultPlanName = "default"

/** What an account gets when its plan is gone from the snapshot it is served by: nothing. */
const noPlan: Plan = { name: "", concurrency: 0, models: [], priceMultiplier: "1" }

export function planOf(snapshot: Snapshot, principal: Principal): Plan {
  return snapshot.plans.get(principal.planName) ?? noPlan
}

/** The account's own limit if it has one, else the plan's; 0 is unlimited. */
export function concurrencyLimit(plan: Plan, principal: Principal): number {
  return principal.concurrency ?? plan.concurrency
}

export function planAllows(plan: Plan, model: string): boolean {
  return plan.models.some((pattern) => matches(pattern, model))
}

/** Compares with `*` standing for any run of characters; linear, so no pattern can be made slow. */
export function matches(pattern: string, name: string): boolean {
  if (pattern === "*") return true
  const pieces = pattern.split("*")
  const head = pieces[0]!
  if (pieces.length === 1) return name === pattern
  const tail = pieces.at(-1)!
  if (!name.startsWith(head) || !name.endsWith(tail) || name.length < head.length + tail.length) return false
  let at = head.length
  for (const piece of pieces.slice(1, -1)) {
    const found = name.indexOf(piece, at)
    if (found < 0) return false
    at = found + piece.length
  }
  return at <= name.length - tail.length
}
