import { GatewayError } from "../../core/errors.ts"

/** What lengths a model makes, in whole seconds, and which one it is asked for where the caller said nothing. */
export type DurationRule =
  | { readonly kind: "list"; readonly seconds: readonly number[]; readonly usual: number }
  | { readonly kind: "range"; readonly from: number; readonly to: number; readonly usual: number }

/** For models whose limits are not known here: the vendor is the judge. */
export const anyDuration: DurationRule = { kind: "range", from: 1, to: 60, usual: 5 }

export function seconds(list: readonly number[], usual: number): DurationRule {
  return { kind: "list", seconds: list, usual }
}

export function secondsFrom(from: number, to: number, usual: number): DurationRule {
  return { kind: "range", from, to, usual }
}

/** The length to ask for, or a refusal that lists what the model takes. */
export function fitDuration(asked: number | null, rule: DurationRule): number {
  if (asked === null) return rule.usual
  const fits = rule.kind === "list" ? rule.seconds.includes(asked) : asked >= rule.from && asked <= rule.to
  if (fits) return asked
  throw new GatewayError(
    "invalid_parameter",
    `duration: this model does not make ${asked} seconds; it takes ${durationsText(rule)}`,
  )
}

export function durationsText(rule: DurationRule): string {
  return rule.kind === "list" ? `${rule.seconds.join(", ")} seconds` : `${rule.from} to ${rule.to} seconds`
}
