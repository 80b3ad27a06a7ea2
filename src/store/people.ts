import { newId } from "../lib/ids.ts"
import { accountIdOf } from "./accounts.ts"
import { alreadyHas, now, type Saved } from "./save.ts"
import type { Reader, Writer } from "./schema.ts"

export type Role = "admin" | "member"

export interface PersonFields {
  readonly email: string
  /** Hashes of one password differ, so pass the stored one on where the password still fits it. */
  readonly passwordHash: string
  readonly role: Role
  readonly account: string
}

export interface Person extends PersonFields {
  readonly id: string
  readonly accountId: string
  readonly createdAt: number
}

export async function listPeople(db: Reader): Promise<readonly Person[]> {
  const rows = await peopleQuery(db).orderBy("people.email").execute()
  return rows.map(personOf)
}

export async function findPerson(db: Reader, email: string): Promise<Person | null> {
  const row = await peopleQuery(db).where("people.email", "=", spelled(email)).executeTakeFirst()
  return row === undefined ? null : personOf(row)
}

export async function savePerson(trx: Writer, person: PersonFields): Promise<Saved> {
  const email = spelled(person.email)
  const wanted = {
    password_hash: person.passwordHash,
    role: person.role,
    account_id: await accountIdOf(trx, person.account, `person ${JSON.stringify(person.email)}`),
  }
  const row = await trx.selectFrom("people").selectAll().where("email", "=", email).executeTakeFirst()
  const time = now()
  if (row === undefined) {
    const columns = { id: newId(), email, ...wanted, created_at: time, updated_at: time }
    await trx.insertInto("people").values(columns).execute()
    return "created"
  }
  if (alreadyHas(row, wanted)) return "unchanged"
  await trx
    .updateTable("people")
    .set({ ...wanted, updated_at: time })
    .where("id", "=", row.id)
    .execute()
  return "updated"
}

/** False where there was no such person. */
export async function deletePerson(trx: Writer, email: string): Promise<boolean> {
  const { numDeletedRows } = await trx.deleteFrom("people").where("email", "=", spelled(email)).executeTakeFirst()
  return numDeletedRows > 0n
}

function peopleQuery(db: Reader) {
  return db
    .selectFrom("people")
    .innerJoin("accounts", "accounts.id", "people.account_id")
    .select(["people.id", "people.email", "people.password_hash", "people.role", "people.account_id"])
    .select(["accounts.name as account", "people.created_at"])
}

type PersonRow = Awaited<ReturnType<ReturnType<typeof peopleQuery>["executeTakeFirstOrThrow"]>>

function personOf(row: PersonRow): Person {
  return {
    id: row.id,
    email: row.email,
    passwordHash: row.password_hash,
    role: row.role,
    account: row.account,
    accountId: row.account_id,
    createdAt: Number(row.created_at),
  }
}

/** Nobody means two people by two spellings of one address. */
function spelled(email: string): string {
  return email.trim().toLowerCase()
}
