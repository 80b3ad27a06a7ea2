import type { ConfigDocument } from "../config/document.ts"
import { deleteAccount, listAccounts, suspendAccount } from "../store/accounts.ts"
import { StoreConflict } from "../store/errors.ts"
import { deleteKey, listKeys } from "../store/keys.ts"
import { deleteModel, listModels } from "../store/models.ts"
import { deletePerson, listPeople } from "../store/people.ts"
import { deletePlan, listPlans } from "../store/plans.ts"
import type { Writer } from "../store/schema.ts"
import { deleteUpstream, listUpstreams } from "../store/upstreams.ts"
import { defaultPlanName } from "./plans.ts"

/**
 * Deletes what the document no longer has, in the sections it has at all, users before what they use. An account that
 * money moved on is suspended instead: its history stays. Returns a line for each change.
 */
export async function prune(trx: Writer, document: ConfigDocument): Promise<readonly string[]> {
  const changes: string[] = []
  const { people, accounts, models, upstreams, plans } = document
  if (people !== undefined) {
    const kept = new Set(people.map(({ email }) => email.trim().toLowerCase()))
    for (const { email } of await listPeople(trx)) {
      if (!kept.has(email) && (await deletePerson(trx, email))) changes.push(`deleted person ${email}`)
    }
  }
  if (accounts !== undefined) changes.push(...(await pruneAccounts(trx, accounts)))
  if (models !== undefined) {
    for (const name of left(await listModels(trx), models))
      if (await deleteModel(trx, name)) changes.push(`deleted model ${name}`)
  }
  if (upstreams !== undefined) {
    for (const name of left(await listUpstreams(trx), upstreams)) {
      if (await deleteUpstream(trx, name)) changes.push(`deleted upstream ${name}`)
    }
  }
  if (plans !== undefined) {
    const implied = (accounts ?? []).some((account) => account.plan === null) ? [{ name: defaultPlanName }] : []
    // The plan of a suspended account is part of the history that the account is kept for.
    const historic = (await listAccounts(trx)).filter(({ suspended }) => suspended).map(({ plan }) => ({ name: plan }))
    const needed = [...plans, ...implied, ...historic]
    for (const name of left(await listPlans(trx), needed))
      if (await deletePlan(trx, name)) changes.push(`deleted plan ${name}`)
  }
  return changes
}

type Accounts = NonNullable<ConfigDocument["accounts"]>

async function pruneAccounts(trx: Writer, accounts: Accounts): Promise<readonly string[]> {
  const changes: string[] = []
  const kept = new Map(accounts.map((account) => [account.name, new Set(account.keys.map(({ name }) => name))]))
  for (const { account, name } of await listKeys(trx)) {
    if (kept.get(account)?.has(name)) continue
    if (await deleteKey(trx, account, name)) changes.push(`deleted key ${name} of account ${account}`)
  }
  for (const name of left(await listAccounts(trx), accounts)) changes.push(...(await removeAccount(trx, name)))
  return changes
}

async function removeAccount(trx: Writer, name: string): Promise<readonly string[]> {
  try {
    return (await deleteAccount(trx, name)) ? [`deleted account ${name}`] : []
  } catch (error) {
    if (!(error instanceof StoreConflict)) throw error
    return (await suspendAccount(trx, name)) === "unchanged" ? [] : [`suspended account ${name}: ${error.message}`]
  }
}

function left(
  stored: readonly { readonly name: string }[],
  wanted: readonly { readonly name: string }[],
): readonly string[] {
  const names = new Set(wanted.map(({ name }) => name))
  return stored.map(({ name }) => name).filter((name) => !names.has(name))
}
