import type { AccountConfig, ConfigDocument, PersonConfig, UpstreamConfig } from "../config/document.ts"
import type { JsonValue } from "../core/json.ts"
import { nanosOf } from "../lib/money.ts"
import type { Vault } from "../lib/seal.ts"
import { suggest } from "../lib/suggest.ts"
import { listAccounts, saveAccount } from "../store/accounts.ts"
import { readCatalog } from "../store/catalog.ts"
import { inTransaction, type Store } from "../store/db.ts"
import { saveKey } from "../store/keys.ts"
import { postAdjustment, postTopup } from "../store/ledger.ts"
import { saveModel } from "../store/models.ts"
import { listPeople, type PersonFields, savePerson } from "../store/people.ts"
import { savePlan } from "../store/plans.ts"
import type { Saved } from "../store/save.ts"
import type { Writer } from "../store/schema.ts"
import { saveSetting } from "../store/settings.ts"
import { credentialContext, saveUpstream, type UpstreamFields } from "../store/upstreams.ts"
import { bumpCatalogVersion, lockCatalog } from "../store/versions.ts"
import { compile, missingUpstream } from "./compile.ts"
import { defaultPlanName } from "./plans.ts"
import { CatalogError, type CatalogProblem, type Section } from "./problem.ts"
import { prune } from "./prune.ts"

export interface Applied {
  /** One line for each entry that changed, such as `created model gpt-5`. */
  readonly changes: readonly string[]
  readonly unchanged: number
}

/** Writes a config document into the database: all of it, or, where the result could not be served, nothing. */
export async function applyConfig(
  store: Store,
  vault: Vault,
  document: ConfigDocument,
  options: { prune: boolean },
): Promise<Applied> {
  // Hashing a password takes a tenth of a second, too long to keep other writers waiting.
  const people = await hashPasswords(store, document.people ?? [])
  return inTransaction(store, async (trx) => {
    await lockCatalog(trx)
    await refuseMissing(trx, document)
    const tally = new Tally()
    await saveAll(trx, vault, document, people, tally)
    if (options.prune) for (const line of await prune(trx, document)) tally.changes.push(line)
    if (tally.changes.length > 0) await bumpCatalogVersion(trx)
    const compiled = compile(await readCatalog(trx), vault)
    if (!compiled.usable) throw new CatalogError(compiled.problems)
    return tally
  })
}

class Tally implements Applied {
  readonly changes: string[] = []
  unchanged = 0

  note(saved: Saved, what: string): void {
    if (saved === "unchanged") this.unchanged += 1
    else this.changes.push(`${saved} ${what}`)
  }
}

async function saveAll(
  trx: Writer,
  vault: Vault,
  document: ConfigDocument,
  people: readonly PersonFields[],
  tally: Tally,
): Promise<void> {
  for (const plan of plansOf(document, await planNames(trx))) tally.note(await savePlan(trx, plan), `plan ${plan.name}`)
  for (const upstream of document.upstreams ?? []) {
    tally.note(await saveUpstream(trx, sealed(upstream, vault)), `upstream ${upstream.name}`)
  }
  for (const model of document.models ?? []) {
    const routes = model.routes.map(({ model: upstreamModel, ...route }) => ({ ...route, upstreamModel }))
    tally.note(await saveModel(trx, { ...model, routes }), `model ${model.name}`)
  }
  for (const account of document.accounts ?? []) await saveWholeAccount(trx, vault, account, tally)
  for (const person of people) tally.note(await savePerson(trx, person), `person ${person.email}`)
  if (document.timeouts !== undefined)
    tally.note(await saveSetting(trx, "timeouts", { ...document.timeouts } as JsonValue), "timeouts")
  if (document.corsOrigins !== undefined) {
    tally.note(await saveSetting(trx, "cors_origins", document.corsOrigins), "cors")
  }
  if (document.allowPrivateAddresses !== undefined) {
    tally.note(
      await saveSetting(trx, "allow_private_addresses", document.allowPrivateAddresses),
      "allow_private_addresses",
    )
  }
  if (document.retention !== undefined) {
    tally.note(await saveSetting(trx, "retention", { ...document.retention }), "retention")
  }
}

function plansOf(document: ConfigDocument, existing: ReadonlySet<string>) {
  const plans = document.plans ?? []
  const wanted = (document.accounts ?? []).some((account) => account.plan === null)
  if (!wanted || existing.has(defaultPlanName) || plans.some((plan) => plan.name === defaultPlanName)) return plans
  return [...plans, { name: defaultPlanName, concurrency: 0, models: ["*"], priceMultiplier: "1" }]
}

async function planNames(trx: Writer): Promise<ReadonlySet<string>> {
  return new Set((await readCatalog(trx)).plans.map((plan) => plan.name))
}

function sealed(upstream: UpstreamConfig, vault: Vault): UpstreamFields {
  const { apiKeys, ...fields } = upstream
  const credentials = apiKeys.map((key, position) => ({
    sealed: vault.seal(key, credentialContext(upstream.name, position)),
    digest: vault.digest(key),
  }))
  return { ...fields, credentials }
}

async function saveWholeAccount(trx: Writer, vault: Vault, account: AccountConfig, tally: Tally): Promise<void> {
  const { name, concurrency } = account
  const saved = await saveAccount(trx, { name, plan: account.plan ?? defaultPlanName, concurrency })
  tally.note(saved, `account ${name}`)
  const amount = nanosOf(account.balance ?? "0")
  if (saved === "created" && amount !== 0n) {
    const opening = { account: name, amount, reference: `opening:${name}`, note: "opening balance" }
    await (amount > 0n ? postTopup(trx, opening) : postAdjustment(trx, opening))
  }
  for (const { name: keyName, key } of account.keys) {
    const digest = vault.digest(key)
    const fields = { account: name, name: keyName, digest, prefix: key.slice(0, shownPrefix), lastFour: key.slice(-4) }
    tally.note(await saveKey(trx, fields), `key ${keyName} of account ${name}`)
  }
}

/** How much of a key's beginning may be shown: enough to tell keys apart, too little to guess from. */
const shownPrefix = 8

async function hashPasswords(store: Store, people: readonly PersonConfig[]): Promise<readonly PersonFields[]> {
  if (people.length === 0) return []
  const kept = new Map((await listPeople(store.db)).map((person) => [person.email, person.passwordHash]))
  return Promise.all(
    people.map(async ({ email, password, role, account }) => {
      const hash = kept.get(email.trim().toLowerCase())
      const stillFits = hash !== undefined && (await Bun.password.verify(password, hash))
      return { email, role, account: account ?? "", passwordHash: stillFits ? hash : await Bun.password.hash(password) }
    }),
  )
}

/** Names that point nowhere, neither in the document nor in the database, all told at once. */
async function refuseMissing(trx: Writer, document: ConfigDocument): Promise<void> {
  const rows = await readCatalog(trx)
  const problems: CatalogProblem[] = []
  const upstreams = new Set([...rows.upstreams, ...(document.upstreams ?? [])].map(({ name }) => name))
  for (const model of document.models ?? []) {
    model.routes.forEach((route, position) => {
      if (upstreams.has(route.upstream)) return
      problems.push({
        section: "models",
        name: model.name,
        field: `routes[${position}].upstream`,
        message: missingUpstream(route.upstream, upstreams),
      })
    })
  }
  const plans = new Set([...rows.plans, ...(document.plans ?? [])].map(({ name }) => name))
  for (const { name, plan } of document.accounts ?? []) {
    if (plan !== null && !plans.has(plan)) problems.push(missing("accounts", name, "plan", plan, "a plan", plans))
  }
  const accounts = new Set([...(await listAccounts(trx)), ...(document.accounts ?? [])].map(({ name }) => name))
  for (const { email, account } of document.people ?? []) {
    if (account === null)
      problems.push({
        section: "people",
        name: email,
        field: "account",
        message: "is required: a person belongs to one account",
      })
    else if (!accounts.has(account)) problems.push(missing("people", email, "account", account, "an account", accounts))
  }
  if (problems.length > 0) throw new CatalogError(problems)
}

function missing(
  section: Section,
  name: string,
  field: string,
  value: string,
  what: string,
  known: ReadonlySet<string>,
): CatalogProblem {
  const close = suggest(value, known)
  return {
    section,
    name,
    field,
    message: `${JSON.stringify(value)} is not ${what}${close === null ? "" : ` (did you mean ${JSON.stringify(close)}?)`}`,
  }
}
