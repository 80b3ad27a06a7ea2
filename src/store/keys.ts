import type { Principal } from "../core/principal.ts"
import { newId } from "../lib/ids.ts"
import { accountIdOf } from "./accounts.ts"
import { StoreConflict } from "./errors.ts"
import { now, type Saved } from "./save.ts"
import type { Reader, Writer } from "./schema.ts"

export interface KeyFields {
  readonly account: string
  readonly name: string
  readonly digest: string
  /** The beginning and the end of the secret, to tell keys apart in a list. */
  readonly prefix: string
  readonly lastFour: string
}

export interface Key {
  readonly id: string
  readonly account: string
  readonly name: string
  readonly prefix: string
  readonly lastFour: string
  readonly createdAt: number
  readonly revokedAt: number | null
}

/** The owner of a key that is not revoked, in one query. */
export async function findKey(db: Reader, digest: string): Promise<Principal | null> {
  const query = compiledFor(db)
  const parameters = query.parameters.map((parameter) => (parameter === digestPlaceholder ? digest : parameter))
  const asked: typeof query = { ...query, parameters }
  const row = (await db.executeQuery(asked)).rows[0]
  if (row === undefined) return null
  return {
    ...row,
    concurrency: row.concurrency === null ? null : Number(row.concurrency),
    suspended: row.suspended === 1n,
  }
}

const digestPlaceholder = "the digest looked for"
const compiledQueries = new WeakMap<Reader, ReturnType<typeof compileOwnerQuery>>()

/** Every request asks this, and writing the SQL takes far longer than running it: so it is written once per database. */
function compiledFor(db: Reader): ReturnType<typeof compileOwnerQuery> {
  const known = compiledQueries.get(db)
  if (known !== undefined) return known
  const query = compileOwnerQuery(db)
  compiledQueries.set(db, query)
  return query
}

function compileOwnerQuery(db: Reader) {
  return db
    .selectFrom("keys")
    .innerJoin("accounts", "accounts.id", "keys.account_id")
    .innerJoin("plans", "plans.id", "accounts.plan_id")
    .select(["keys.id as keyId", "keys.name as keyName", "accounts.id as accountId", "accounts.name as accountName"])
    .select(["plans.name as planName", "accounts.concurrency", "accounts.suspended"])
    .where("keys.digest", "=", digestPlaceholder)
    .where("keys.revoked_at", "is", null)
    .compile()
}

export async function listKeys(db: Reader): Promise<readonly Key[]> {
  const rows = await db
    .selectFrom("keys")
    .innerJoin("accounts", "accounts.id", "keys.account_id")
    .select(["keys.id", "accounts.name as account", "keys.name", "keys.prefix", "keys.last_four"])
    .select(["keys.created_at", "keys.revoked_at"])
    .orderBy("accounts.name")
    .orderBy("keys.name")
    .execute()
  return rows.map((row) => ({
    id: row.id,
    account: row.account,
    name: row.name,
    prefix: row.prefix,
    lastFour: row.last_four,
    createdAt: Number(row.created_at),
    revokedAt: row.revoked_at === null ? null : Number(row.revoked_at),
  }))
}

/** Gives an account's key of this name this secret. A revoked secret stays revoked; a new one makes the key live again. */
export async function saveKey(trx: Writer, key: KeyFields): Promise<Saved> {
  const described = `key ${JSON.stringify(key.name)} of account ${JSON.stringify(key.account)}`
  const accountId = await accountIdOf(trx, key.account, described)
  const sameSecret = await trx
    .selectFrom("keys")
    .innerJoin("accounts", "accounts.id", "keys.account_id")
    .select(["keys.account_id", "keys.name", "accounts.name as account"])
    .where("keys.digest", "=", key.digest)
    .executeTakeFirst()
  if (sameSecret !== undefined) {
    if (sameSecret.account_id === accountId && sameSecret.name === key.name) return "unchanged"
    const other = `key ${JSON.stringify(sameSecret.name)} of account ${JSON.stringify(sameSecret.account)}`
    throw new StoreConflict(`${described} has the same secret as ${other}; every key needs its own`)
  }
  const time = now()
  const secret = { digest: key.digest, prefix: key.prefix, last_four: key.lastFour, revoked_at: null, updated_at: time }
  const { numUpdatedRows } = await trx
    .updateTable("keys")
    .set(secret)
    .where("account_id", "=", accountId)
    .where("name", "=", key.name)
    .executeTakeFirst()
  if (numUpdatedRows > 0n) return "updated"
  const columns = { id: newId(), account_id: accountId, name: key.name, ...secret, created_at: time }
  await trx.insertInto("keys").values(columns).execute()
  return "created"
}

/** False where there was no such key. */
export async function deleteKey(trx: Writer, account: string, name: string): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom("keys")
    .where("name", "=", name)
    .where("account_id", "in", (select) =>
      select.selectFrom("accounts").select("accounts.id").where("accounts.name", "=", account),
    )
    .executeTakeFirst()
  return numDeletedRows > 0n
}
