import { decimalPlaces, scaled } from "../lib/decimal.ts"
import type { Measured } from "./measured.ts"
import type { TokenUsage } from "./usage.ts"

/** What a model can be priced by; amounts are exact decimals in dollars, as text. Token units are per million. */
export const priceUnits = [
  "input",
  "cached_input",
  "cache_write",
  "audio_input",
  "output",
  "audio_output",
  "image",
  "second",
  "character",
  "request",
] as const
export type PriceUnit = (typeof priceUnits)[number]
export type UnitPrices = Readonly<Partial<Record<PriceUnit, string>>>

/** Other prices for some answers: those that meet every condition given. Units it does not name keep their price. */
export interface PriceTier {
  /** More input tokens than this. */
  readonly aboveInput?: number
  /** Pictures of this size, such as `1024x1536`. */
  readonly size?: string
  /** Pictures of this quality, such as `high`. */
  readonly quality?: string
  readonly prices: UnitPrices
}

/** Tiers apply in the order given; each one that fits replaces the prices it names. */
export type PriceList = UnitPrices & { readonly tiers?: readonly PriceTier[] }

export type Price = "free" | PriceList

/** A model's price with a plan's factor, as a request is admitted with it. */
export interface Tariff {
  readonly price: Price
  /** Exact decimal, as text. */
  readonly multiplier: string
  /** The catalog's version that it stood in. */
  readonly version: number
}

/** The prices a charge was made by. */
export interface AppliedPrice {
  readonly version: number
  readonly multiplier: string
  /** Only units that had a quantity, after tiers. */
  readonly units: UnitPrices
}

export interface Charge {
  /** In 1e-9 dollar. */
  readonly amount: bigint
  readonly price: AppliedPrice
}

/** The units that the price has whatever tier fits: those of the list itself. */
export function baseUnitsOf(price: Price): readonly PriceUnit[] {
  return price === "free" ? [] : namedUnits(price)
}

const noUnits: ReadonlySet<PriceUnit> = new Set()
const knownUnits = new WeakMap<PriceList, ReadonlySet<PriceUnit>>()

/** Every unit that the price names, in a tier or outside. Asked for each request, so each price is looked through once. */
export function unitsOf(price: Price): ReadonlySet<PriceUnit> {
  if (price === "free") return noUnits
  let units = knownUnits.get(price)
  if (units === undefined) {
    units = new Set([...namedUnits(price), ...(price.tiers ?? []).flatMap((tier) => namedUnits(tier.prices))])
    knownUnits.set(price, units)
  }
  return units
}

function namedUnits(prices: UnitPrices): readonly PriceUnit[] {
  return priceUnits.filter((unit) => prices[unit] !== undefined)
}

/** What the books can hold. */
const mostNanos = 2n ** 63n - 1n

/**
 * What an answer costs: the sum of quantity x price x multiplier, exact, and rounded half up once.
 * Throws a RangeError where that is more than the books can hold.
 */
export function chargeFor(tariff: Tariff, measured: Measured): Charge {
  const { base, tiers, divisor } = compiled(tariff)
  const rates = ratesFor(base, tiers, measured)
  const quantities = quantitiesOf(measured, rates)
  const units: Partial<Record<PriceUnit, string>> = {}
  let sum = 0n
  for (const unit of priceUnits) {
    const rate = rates[unit]
    const quantity = quantities[unit]
    if (rate === undefined || !(quantity > 0)) continue
    units[unit] = rate.price
    sum += BigInt(quantity) * rate.factor
  }
  const amount = (2n * sum + divisor) / (2n * divisor)
  if (amount > mostNanos) throw new RangeError(`a charge of ${amount} billionths of a dollar is above 2^63 - 1`)
  return { amount, price: { version: tariff.version, multiplier: tariff.multiplier, units } }
}

/** One unit's price, and the whole number that a quantity is multiplied by for `divisor` times the nano-dollars. */
interface Rate {
  readonly price: string
  readonly factor: bigint
}

type Rates = Readonly<Partial<Record<PriceUnit, Rate>>>

interface CompiledTier {
  readonly aboveInput: number | undefined
  readonly size: string | undefined
  readonly quality: string | undefined
  readonly rates: Rates
}

interface CompiledTariff {
  readonly base: Rates
  readonly tiers: readonly CompiledTier[]
  readonly divisor: bigint
}

/** Decimals are read once per tariff, not once per request. */
const remembered = new WeakMap<Tariff, CompiledTariff>()

function compiled(tariff: Tariff): CompiledTariff {
  let known = remembered.get(tariff)
  if (known === undefined) {
    known = compileTariff(tariff)
    remembered.set(tariff, known)
  }
  return known
}

/** Quantities of these units are counted in millionths of what their price is for: a dollar is then 1,000 nano-dollars for each. */
const perMillion: ReadonlySet<PriceUnit> = new Set([
  "input",
  "cached_input",
  "cache_write",
  "audio_input",
  "output",
  "audio_output",
  "second",
])

function compileTariff({ price, multiplier }: Tariff): CompiledTariff {
  if (price === "free") return { base: {}, tiers: [], divisor: 1n }
  const lists = [price, ...(price.tiers ?? []).map((tier) => tier.prices)]
  const places = Math.max(
    ...lists.flatMap((list) => namedUnits(list).map((unit) => decimalPlaces(list[unit] ?? ""))),
    0,
  )
  const factor = scaled(multiplier, decimalPlaces(multiplier))
  const ratesOf = (list: UnitPrices): Rates => {
    const rates: Partial<Record<PriceUnit, Rate>> = {}
    for (const unit of priceUnits) {
      const amount = list[unit]
      if (amount === undefined) continue
      const nanos = perMillion.has(unit) ? 1_000n : 1_000_000_000n
      rates[unit] = { price: amount, factor: scaled(amount, places) * factor * nanos }
    }
    return rates
  }
  return {
    base: ratesOf(price),
    tiers: (price.tiers ?? []).map((tier) => ({
      aboveInput: tier.aboveInput,
      size: plainWord(tier.size),
      quality: plainWord(tier.quality),
      rates: ratesOf(tier.prices),
    })),
    divisor: 10n ** BigInt(places + decimalPlaces(multiplier)),
  }
}

function ratesFor(base: Rates, tiers: readonly CompiledTier[], measured: Measured): Rates {
  if (tiers.length === 0) return base
  const input = measured.tokens?.input ?? 0
  const size = plainWord(measured.size)
  const quality = plainWord(measured.quality)
  let rates = base
  for (const tier of tiers) {
    const fits =
      (tier.aboveInput === undefined || input > tier.aboveInput) &&
      (tier.size === undefined || tier.size === size) &&
      (tier.quality === undefined || tier.quality === quality)
    if (fits) rates = { ...rates, ...tier.rates }
  }
  return rates
}

function plainWord(word: string | null | undefined): string | undefined {
  return word?.trim().toLowerCase()
}

const noTokens: TokenUsage = {
  input: 0,
  cachedInput: 0,
  cacheWrite: 0,
  audioInput: 0,
  output: 0,
  reasoning: 0,
  audioOutput: 0,
}

/** How much there is of each unit. A token counts in one unit only: its own where that has a price, else `input` or `output`. */
function quantitiesOf(measured: Measured, rates: Rates): Readonly<Record<PriceUnit, number>> {
  const tokens = measured.tokens ?? noTokens
  const cached = within(tokens.cachedInput, tokens.input)
  const written = within(tokens.cacheWrite, tokens.input - cached)
  const heard = within(tokens.audioInput, tokens.input - cached - written)
  const apart = {
    cached_input: rates.cached_input === undefined ? 0 : cached,
    cache_write: rates.cache_write === undefined ? 0 : written,
    audio_input: rates.audio_input === undefined ? 0 : heard,
    audio_output: rates.audio_output === undefined ? 0 : within(tokens.audioOutput, tokens.output),
  }
  return {
    ...apart,
    input: tokens.input - apart.cached_input - apart.cache_write - apart.audio_input,
    output: tokens.output - apart.audio_output,
    image: measured.images ?? 0,
    second: measured.microseconds ?? 0,
    character: measured.characters ?? 0,
    request: measured.searchUnits ?? 1,
  }
}

/** A part is never more than the whole, whatever an upstream says, so that no rest is below zero. */
function within(part: number, whole: number): number {
  return Math.max(0, Math.min(part, whole))
}
