const pattern = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/

/** Written out in full, more digits than this are a mistake or an attack, not an amount. */
export const mostDecimalDigits = 100

/**
 * The one plain way to write a decimal number: no exponent, no needless zeros, `-` only before a value below zero.
 * Null where the text is no decimal number. Works on the digits alone, so nothing is rounded.
 */
export function canonicalDecimal(text: string): string | null {
  const match = pattern.exec(text)
  if (match === null) return null
  const [, sign = "", whole = "", fraction = "", exponentText = "0"] = match
  if (whole === "" && fraction === "") return null
  const exponent = Number(exponentText)
  if (Math.abs(exponent) + whole.length + fraction.length > mostDecimalDigits) return null

  const digits = whole + fraction
  const point = whole.length + exponent
  const padded = point < 0 ? "0".repeat(-point) + digits : digits.padEnd(point, "0")
  const cut = Math.max(point, 0)
  const integer = padded.slice(0, cut).replace(/^0+/, "") || "0"
  const rest = padded.slice(cut).replace(/0+$/, "")
  const value = rest === "" ? integer : `${integer}.${rest}`
  return sign === "-" && value !== "0" ? `-${value}` : value
}

/** How many digits a canonical decimal has after its point. */
export function decimalPlaces(decimal: string): number {
  const point = decimal.indexOf(".")
  return point === -1 ? 0 : decimal.length - point - 1
}

/** The digits before the point, without the sign. */
export function wholePart(decimal: string): bigint {
  return BigInt(decimal.replace(/^-/, "").replace(/\..*$/, ""))
}

/** A decimal times ten to the power of `places`, as a whole number; `places` must be at least as many as the decimal has. */
export function scaled(decimal: string, places: number): bigint {
  return BigInt(decimal.replace(".", "") + "0".repeat(places - decimalPlaces(decimal)))
}

/** A whole number of ten to the power of minus `places` as a decimal, without needless zeros: the inverse of `scaled`. */
export function unscaled(value: bigint, places: number): string {
  const digits = (value < 0n ? -value : value).toString().padStart(places + 1, "0")
  const point = digits.length - places
  const fraction = digits.slice(point).replace(/0+$/, "")
  return `${value < 0n ? "-" : ""}${digits.slice(0, point)}${fraction === "" ? "" : `.${fraction}`}`
}
