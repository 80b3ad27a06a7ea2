import { GatewayError } from "../core/errors.ts"

export interface Size {
  readonly width: number
  readonly height: number
}

/** What sizes a model makes. */
export type SizeRule =
  /** These and no others, as `<width>x<height>`. */
  | { readonly kind: "list"; readonly sizes: readonly string[] }
  | {
      readonly kind: "pixels"
      /** Shortest and, where there is such a limit, longest side. */
      readonly sides?: readonly [number, number?]
      readonly multipleOf?: number
      /** Least and greatest area, as the sides of squares that have it. */
      readonly squares?: readonly [number, number]
      /** The longer side over the shorter one. */
      readonly steepest?: number
    }
  /** The model takes an aspect ratio from its list and decides on the pixels itself. */
  | { readonly kind: "ratios"; readonly ratios: readonly string[] }
  /** As above, with any ratio between `tallest` and `widest`. */
  | { readonly kind: "ratio-range"; readonly tallest: string; readonly widest: string }

export type FittedSize =
  | { readonly kind: "pixels"; readonly width: number; readonly height: number }
  | { readonly kind: "ratio"; readonly ratio: string }

/** For models whose limits are not known here: the vendor is the judge. */
export const anySize: SizeRule = { kind: "pixels" }

/** A rule written as a line: `1:1 16:9 9:16`. */
export function ratios(line: string): SizeRule {
  return { kind: "ratios", ratios: line.split(" ") }
}

/** Pixel counts are seldom exact multiples of a ratio (1024x1792 is meant as 9:16); further off than this is another shape. */
const ratioTolerance = 0.03

/** The size in the model's own terms, or a refusal that lists what the model takes. */
export function fitSize(size: Size, rule: SizeRule): FittedSize {
  const fitted = fit(size, rule)
  if (fitted !== null) return fitted
  throw new GatewayError(
    "invalid_parameter",
    `size: this model does not make ${size.width}x${size.height}; it takes ${takes(rule)}`,
  )
}

function fit(size: Size, rule: SizeRule): FittedSize | null {
  const { width, height } = size
  switch (rule.kind) {
    case "list":
      return rule.sizes.includes(`${width}x${height}`) ? { kind: "pixels", width, height } : null
    case "pixels":
      return hasPixels(size, rule) ? { kind: "pixels", width, height } : null
    case "ratios": {
      const ratio = nearestRatio(size, rule.ratios)
      return ratio === null ? null : { kind: "ratio", ratio }
    }
    case "ratio-range": {
      const value = width / height
      if (value < ratioValue(rule.tallest) || value > ratioValue(rule.widest)) return null
      const divisor = commonDivisor(width, height)
      return { kind: "ratio", ratio: `${width / divisor}:${height / divisor}` }
    }
  }
}

/** The ratio of the list that a size is meant as; null where it is another shape. */
export function nearestRatio({ width, height }: Size, list: readonly string[]): string | null {
  const distance = (ratio: string): number => Math.abs(Math.log(width / height / ratioValue(ratio)))
  const nearest = list.toSorted((one, other) => distance(one) - distance(other))[0]
  return nearest !== undefined && distance(nearest) <= ratioTolerance ? nearest : null
}

function hasPixels({ width, height }: Size, rule: SizeRule & { kind: "pixels" }): boolean {
  const [least, most = Number.POSITIVE_INFINITY] = rule.sides ?? [1]
  const [smallest, largest] = rule.squares ?? [0, Number.POSITIVE_INFINITY]
  const step = rule.multipleOf ?? 1
  const sideFits = (side: number): boolean => side >= least && side <= most && side % step === 0
  const area = width * height
  return (
    sideFits(width) &&
    sideFits(height) &&
    area >= smallest ** 2 &&
    area <= largest ** 2 &&
    Math.max(width, height) / Math.min(width, height) <= (rule.steepest ?? Number.POSITIVE_INFINITY)
  )
}

function takes(rule: SizeRule): string {
  switch (rule.kind) {
    case "list":
      return rule.sizes.join(", ")
    case "ratios":
      return `sizes of the aspect ratios ${rule.ratios.join(", ")}`
    case "ratio-range":
      return `sizes of the aspect ratios from ${rule.tallest} to ${rule.widest}`
    case "pixels":
      return [
        rule.sides === undefined ? null : sidesText(...rule.sides),
        rule.multipleOf === undefined ? null : `sides in multiples of ${rule.multipleOf}`,
        rule.squares === undefined
          ? null
          : `as many pixels in all as from ${square(rule.squares[0])} to ${square(rule.squares[1])}`,
        rule.steepest === undefined ? null : `aspect ratios from 1:${rule.steepest} to ${rule.steepest}:1`,
      ]
        .filter((part) => part !== null)
        .join(", ")
  }
}

function sidesText(least: number, most?: number): string {
  return most === undefined ? `sides of ${least} pixels or more` : `sides from ${least} to ${most} pixels`
}

function square(side: number): string {
  return `${side}x${side}`
}

function ratioValue(ratio: string): number {
  const [width, height] = ratio.split(":").map(Number)
  return width! / height!
}

function commonDivisor(one: number, other: number): number {
  return other === 0 ? one : commonDivisor(other, one % other)
}
