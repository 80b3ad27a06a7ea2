import type { JsonValue } from "../core/json.ts"
import { type Price, type PriceTier, priceUnits, type UnitPrices } from "../core/price.ts"
import type { Timeouts } from "../core/timeouts.ts"
import { canonicalDecimal } from "../lib/decimal.ts"
import { parseDuration } from "../lib/duration.ts"
import { findVendor } from "../vendors/presets.ts"
import { amountText } from "./amounts.ts"
import {
  type AccountConfig,
  type ConfigDocument,
  configDefaults,
  type ModelConfig,
  type PlanConfig,
  type UpstreamConfig,
} from "./document.ts"
import { forever } from "./fields.ts"
import type { Path } from "./path.ts"
import type { ConfigFile } from "./schema.ts"
import type { ConfigTree } from "./tree.ts"

type Item<Section extends keyof ConfigFile> =
  NonNullable<ConfigFile[Section]> extends readonly (infer One)[] ? One : never

/** Fills in defaults and turns the file's spelling into the program's; the file has been checked before. */
export function normalise(file: ConfigFile, tree: ConfigTree): ConfigDocument {
  const { upstreams, models, plans, accounts, people, timeouts } = file
  return {
    ...(upstreams && { upstreams: upstreams.map(upstreamConfig) }),
    ...(models && { models: models.map((model, index) => modelConfig(model, ["models", index], tree)) }),
    ...(plans && { plans: plans.map((plan, index) => planConfig(plan, ["plans", index], tree)) }),
    ...(accounts && { accounts: accounts.map((account, index) => accountConfig(account, ["accounts", index], tree)) }),
    ...(people && { people: people.map((person) => ({ ...person, account: person.account ?? null })) }),
    ...(timeouts && {
      timeouts: { ...timeoutsConfig(timeouts), ...(timeouts.drain && { drain: milliseconds(timeouts.drain) }) },
    }),
    ...(file.cors !== undefined && { corsOrigins: file.cors.origins }),
    ...(file.allow_private_addresses !== undefined && { allowPrivateAddresses: file.allow_private_addresses }),
    ...(file.retention !== undefined && { retention: { requests: retentionTime(file.retention.requests) } }),
  }
}

function upstreamConfig(upstream: Item<"upstreams">): UpstreamConfig {
  return {
    name: upstream.name,
    vendor: upstream.vendor,
    baseUrl: upstream.base_url?.replace(/\/+$/, "") ?? null,
    apiKeys: upstream.api_keys ?? (upstream.api_key === undefined ? [] : [upstream.api_key]),
    headers: upstream.headers ?? {},
    timeouts: timeoutsConfig(upstream.timeouts ?? {}),
    concurrency: upstream.concurrency ?? configDefaults.upstreamConcurrency,
    settings: vendorSettings(upstream),
  }
}

function vendorSettings(upstream: Item<"upstreams">): Record<string, JsonValue> {
  const all = upstream as Readonly<Record<string, JsonValue | undefined>>
  const settings: Record<string, JsonValue> = {}
  for (const key of Object.keys(findVendor(upstream.vendor)?.settings ?? {})) {
    const value = all[key]
    if (value !== undefined) settings[key] = value
  }
  return settings
}

function modelConfig(model: Item<"models">, path: Path, tree: ConfigTree): ModelConfig {
  return {
    name: model.name,
    price: priceConfig(model.price, [...path, "price"], tree),
    tokenizer: model.tokenizer ?? null,
    endpoints: model.endpoints ?? null,
    routes: model.routes.map((route) => ({
      upstream: route.upstream,
      model: route.model ?? model.name,
      priority: route.priority ?? configDefaults.priority,
      weight: route.weight ?? configDefaults.weight,
    })),
  }
}

type FilePrice = Exclude<Item<"models">["price"], "free">
type FileTier = NonNullable<FilePrice["tiers"]>[number]

function priceConfig(price: Item<"models">["price"], path: Path, tree: ConfigTree): Price {
  if (price === "free") return "free"
  const tiers = (price.tiers ?? []).map((tier, index) => tierConfig(tier, [...path, "tiers", index], tree))
  return { ...unitPrices(price, path, tree), ...(tiers.length > 0 && { tiers }) }
}

function tierConfig(tier: FileTier, path: Path, tree: ConfigTree): PriceTier {
  return {
    ...(tier.above_input !== undefined && { aboveInput: tier.above_input }),
    ...(tier.size !== undefined && { size: tier.size }),
    ...(tier.quality !== undefined && { quality: tier.quality }),
    prices: unitPrices(tier, path, tree),
  }
}

function unitPrices(prices: FilePrice | FileTier, path: Path, tree: ConfigTree): UnitPrices {
  const amounts = priceUnits.flatMap((unit) => {
    const value = prices[unit]
    return value === undefined ? [] : [[unit, decimal(value, [...path, unit], tree)] as const]
  })
  return Object.fromEntries(amounts)
}

function planConfig(plan: Item<"plans">, path: Path, tree: ConfigTree): PlanConfig {
  const factor = plan.price_multiplier
  return {
    name: plan.name,
    concurrency: plan.concurrency ?? configDefaults.planConcurrency,
    models: plan.models ?? configDefaults.planModels,
    priceMultiplier:
      factor === undefined ? configDefaults.priceMultiplier : decimal(factor, [...path, "price_multiplier"], tree),
  }
}

function accountConfig(account: Item<"accounts">, path: Path, tree: ConfigTree): AccountConfig {
  return {
    name: account.name,
    plan: account.plan ?? null,
    concurrency: account.concurrency ?? null,
    balance: account.balance === undefined ? null : decimal(account.balance, [...path, "balance"], tree),
    keys: account.keys ?? [],
  }
}

function timeoutsConfig(timeouts: NonNullable<Item<"upstreams">["timeouts"]>): Partial<Timeouts> {
  return {
    ...(timeouts.non_stream && { nonStream: milliseconds(timeouts.non_stream) }),
    ...(timeouts.first_token && { firstToken: milliseconds(timeouts.first_token) }),
    ...(timeouts.silence && { silence: milliseconds(timeouts.silence) }),
    ...(timeouts.total && { total: milliseconds(timeouts.total) }),
  }
}

function retentionTime(text: string): number | null {
  return text === forever ? null : milliseconds(text)
}

function milliseconds(text: string): number {
  return checked(parseDuration(text))
}

function decimal(value: number | string, path: Path, tree: ConfigTree): string {
  return checked(canonicalDecimal(amountText(tree, value, path)))
}

/** Only a file without problems gets here; anything else is a mistake in this program. */
function checked<Value>(value: Value | null): Value {
  if (value === null) throw new Error("a config value was used before it was checked")
  return value
}
