import { Document, type Node, visit } from "yaml"
import { type Price, type PriceTier, priceUnits, type UnitPrices } from "../core/price.ts"
import type { Timeouts } from "../core/timeouts.ts"
import { formatDuration } from "../lib/duration.ts"
import {
  type AccountConfig,
  type ConfigDocument,
  configDefaults,
  type ModelConfig,
  type PersonConfig,
  type PlanConfig,
  type RetentionConfig,
  type RouteConfig,
  type UpstreamConfig,
} from "./document.ts"
import { escapeReferences } from "./environment.ts"
import { forever } from "./fields.ts"

/**
 * Prints a document as the text of a config file: reading it back gives an equal document. `placeholders` are the texts, such as
 * `${OPENAI_API_KEY}`, that the reader shall look up in the environment; any other `${` is written so that it stays as it is.
 */
export function writeConfig(document: ConfigDocument, placeholders: ReadonlySet<string>): string {
  const yaml = new Document(fileShape(document), { aliasDuplicateObjects: false })
  visit(yaml, {
    Scalar(key, node) {
      const isText = typeof node.value === "string" && key !== "key"
      if (isText && !placeholders.has(String(node.value))) node.value = escapeReferences(String(node.value))
    },
  })
  return yaml.toString({ lineWidth: 0 })
}

/** Keeps a short map or list on one line, as a person would write it. */
function inline(value: object): Node {
  return new Document().createNode(value, { flow: true, aliasDuplicateObjects: false })
}

/** Leaves out what has no value; `undefined` stands for a default that need not be written. */
function present(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

function unless<Value>(value: Value, usual: Value): Value | undefined {
  return value === usual ? undefined : value
}

/** A plain number where YAML keeps every digit of it, else quoted text, which is read just as exactly. */
function decimal(text: string): number | string {
  return String(Number(text)) === text ? Number(text) : text
}

function fileShape(document: ConfigDocument): Record<string, unknown> {
  const { timeouts } = document
  return present({
    upstreams: document.upstreams?.map(upstreamShape),
    models: document.models?.map(modelShape),
    plans: document.plans?.map((plan) => inline(planShape(plan))),
    accounts: document.accounts?.map(accountShape),
    people: document.people?.map((person) => inline(personShape(person))),
    timeouts: timeouts && inline({ ...timeoutsShape(timeouts), ...present({ drain: durationText(timeouts.drain) }) }),
    cors: document.corsOrigins === undefined ? undefined : { origins: document.corsOrigins },
    allow_private_addresses: document.allowPrivateAddresses,
    retention: document.retention && inline(retentionShape(document.retention)),
  })
}

function upstreamShape(upstream: UpstreamConfig): Record<string, unknown> {
  const [first, ...more] = upstream.apiKeys
  return present({
    name: upstream.name,
    vendor: upstream.vendor,
    base_url: upstream.baseUrl ?? undefined,
    api_key: more.length === 0 ? first : undefined,
    api_keys: more.length === 0 ? undefined : upstream.apiKeys,
    headers: isEmpty(upstream.headers) ? undefined : upstream.headers,
    timeouts: isEmpty(upstream.timeouts) ? undefined : inline(timeoutsShape(upstream.timeouts)),
    concurrency: unless(upstream.concurrency, configDefaults.upstreamConcurrency),
    ...upstream.settings,
  })
}

function modelShape(model: ModelConfig): Record<string, unknown> {
  return present({
    name: model.name,
    price: priceShape(model.price),
    tokenizer: model.tokenizer ?? undefined,
    endpoints: model.endpoints === null ? undefined : inline([...model.endpoints]),
    routes: model.routes.map((route) => inline(routeShape(route, model.name))),
  })
}

function priceShape(price: Price): Node | object | "free" {
  if (price === "free") return price
  const units = unitsShape(price)
  return price.tiers === undefined
    ? inline(units)
    : { ...units, tiers: price.tiers.map((tier) => inline(tierShape(tier))) }
}

function tierShape({ aboveInput, size, quality, prices }: PriceTier): Record<string, unknown> {
  return present({ above_input: aboveInput, size, quality, ...unitsShape(prices) })
}

function unitsShape(prices: UnitPrices): Record<string, unknown> {
  const amounts = priceUnits.map((unit) => [unit, prices[unit]] as const)
  return present(Object.fromEntries(amounts.map(([unit, amount]) => [unit, amount && decimal(amount)])))
}

function routeShape(route: RouteConfig, modelName: string): Record<string, unknown> {
  return present({
    upstream: route.upstream,
    model: unless(route.model, modelName),
    priority: unless(route.priority, configDefaults.priority),
    weight: unless(route.weight, configDefaults.weight),
  })
}

function planShape(plan: PlanConfig): Record<string, unknown> {
  const [only, ...others] = plan.models
  const isUsual = others.length === 0 && only === configDefaults.planModels[0]
  return present({
    name: plan.name,
    concurrency: unless(plan.concurrency, configDefaults.planConcurrency),
    models: isUsual ? undefined : plan.models,
    price_multiplier:
      plan.priceMultiplier === configDefaults.priceMultiplier ? undefined : decimal(plan.priceMultiplier),
  })
}

function accountShape(account: AccountConfig): Record<string, unknown> {
  return present({
    name: account.name,
    plan: account.plan ?? undefined,
    concurrency: account.concurrency ?? undefined,
    balance: account.balance === null ? undefined : decimal(account.balance),
    keys: account.keys.length === 0 ? undefined : account.keys.map(inline),
  })
}

function personShape(person: PersonConfig): Record<string, unknown> {
  return present({ ...person, account: person.account ?? undefined })
}

function timeoutsShape(timeouts: Partial<Timeouts>): Record<string, unknown> {
  return present({
    non_stream: durationText(timeouts.nonStream),
    first_token: durationText(timeouts.firstToken),
    silence: durationText(timeouts.silence),
    total: durationText(timeouts.total),
  })
}

function retentionShape({ requests }: RetentionConfig): Record<string, unknown> {
  return { requests: requests === null ? forever : formatDuration(requests) }
}

function durationText(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : formatDuration(ms)
}

function isEmpty(map: object): boolean {
  return Object.keys(map).length === 0
}
