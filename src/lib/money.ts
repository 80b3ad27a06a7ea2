import { unscaled } from "./decimal.ts"

/** Amounts are integers of 1e-9 dollar. */
const decimals = 9
const unit = 10n ** BigInt(decimals)

/** An exact decimal of dollars, such as "12.5", as nano-dollars; throws where it is none or has more than nine decimals. */
export function nanosOf(dollars: string): bigint {
  const match = /^(-?)(\d+)(?:\.(\d{1,9}))?$/.exec(dollars)
  if (match === null)
    throw new RangeError(`not an amount in dollars with at most ${decimals} decimals: ${JSON.stringify(dollars)}`)
  const [, sign, whole, fraction = ""] = match
  const nanos = BigInt(whole!) * unit + BigInt(fraction.padEnd(decimals, "0"))
  return sign === "-" ? -nanos : nanos
}

/** Nano-dollars as a decimal of dollars, without needless zeros. */
export function dollarsOf(nanos: bigint): string {
  return unscaled(nanos, decimals)
}
