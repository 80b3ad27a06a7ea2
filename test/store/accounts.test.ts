import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { sql } from "kysely"
import { deleteAccount, listAccounts, saveAccount, suspendAccount } from "../../src/store/accounts.ts"
import { inTransaction } from "../../src/store/db.ts"
import { isDuplicate, StoreConflict, StoreMissing } from "../../src/store/errors.ts"
import { deleteKey, findKey, type KeyFields, listKeys, saveKey } from "../../src/store/keys.ts"
import { postTopup } from "../../src/store/ledger.ts"
import { deletePerson, findPerson, listPeople, savePerson } from "../../src/store/people.ts"
import { engines, type FreshStore, freshStore, giveAccount, slowStart } from "./engines.ts"

function key(account: string, name: string, digest: string): KeyFields {
  return { account, name, digest, prefix: "sk-tg-ab", lastFour: "wxyz" }
}

describe.each([...engines])("accounts on %s", (engine) => {
  let fresh: FreshStore
  beforeAll(async () => {
    fresh = await freshStore(engine)
  }, slowStart)
  afterAll(() => fresh.close())
  const edit: <T>(work: Parameters<typeof inTransaction<T>>[1]) => Promise<T> = (work) =>
    inTransaction(fresh.store, work)

  test("an account is created, left alone, updated; a save that does not speak of suspension keeps it", async () => {
    await giveAccount(fresh.store, "acme")
    const fields = { name: "acme", plan: "default", concurrency: null }
    expect(await edit((trx) => saveAccount(trx, fields))).toBe("unchanged")
    expect(await edit((trx) => saveAccount(trx, { ...fields, concurrency: 0 }))).toBe("updated")
    expect(await edit((trx) => suspendAccount(trx, "acme"))).toBe("updated")
    expect(await edit((trx) => suspendAccount(trx, "acme"))).toBe("unchanged")
    expect(await edit((trx) => saveAccount(trx, { ...fields, concurrency: 0 }))).toBe("unchanged")
    const [account] = await listAccounts(fresh.store.db)
    expect(account).toMatchObject({ name: "acme", plan: "default", concurrency: 0, suspended: true })
    expect(Math.abs(Date.now() - account!.createdAt)).toBeLessThan(60_000)
    expect(await edit((trx) => saveAccount(trx, { ...fields, suspended: false }))).toBe("updated")
    expect((await listAccounts(fresh.store.db))[0]?.suspended).toBe(false)
  })

  test("names that nothing has are refused by name", async () => {
    const lost = { name: "x", plan: "gold", concurrency: null }
    await expect(edit((trx) => saveAccount(trx, lost))).rejects.toThrow('account "x": plan "gold" does not exist')
    await expect(edit((trx) => saveKey(trx, key("nobody", "ci", "d0")))).rejects.toThrow(StoreMissing)
    await expect(edit((trx) => saveKey(trx, key("nobody", "ci", "d0")))).rejects.toThrow(
      'key "ci" of account "nobody": account "nobody" does not exist',
    )
    await expect(edit((trx) => suspendAccount(trx, "nobody"))).rejects.toThrow('account "nobody" does not exist')
  })

  test("a name made twice gives an error that can be told from others", async () => {
    await giveAccount(fresh.store, "racers")
    const insert = () =>
      sql`insert into accounts (id, name, plan_id, created_at, updated_at)
        select ${crypto.randomUUID()}, 'twice', plan_id, 0, 0 from accounts where name = 'racers'`.execute(
        fresh.store.db,
      )
    await insert()
    const error: unknown = await insert().catch((reason: unknown) => reason)
    expect(isDuplicate(error)).toBe(true)
    expect(isDuplicate(new Error("other"))).toBe(false)
  })

  test("a key with the same secret is unchanged, with another secret replaced, and the old secret opens nothing", async () => {
    await giveAccount(fresh.store, "keyed")
    expect(await edit((trx) => saveKey(trx, key("keyed", "ci", "digest-1")))).toBe("created")
    const before = await findKey(fresh.store.db, "digest-1")
    expect(await edit((trx) => saveKey(trx, key("keyed", "ci", "digest-1")))).toBe("unchanged")
    expect(await edit((trx) => saveKey(trx, key("keyed", "ci", "digest-2")))).toBe("updated")
    expect(await findKey(fresh.store.db, "digest-1")).toBeNull()
    expect((await findKey(fresh.store.db, "digest-2"))?.keyId).toBe(before!.keyId)
    expect(await edit((trx) => deleteKey(trx, "keyed", "ci"))).toBe(true)
    expect(await edit((trx) => deleteKey(trx, "keyed", "ci"))).toBe(false)
    expect(await findKey(fresh.store.db, "digest-2")).toBeNull()
  })

  test("one secret cannot be the key of two owners", async () => {
    await giveAccount(fresh.store, "first")
    await giveAccount(fresh.store, "second")
    await edit((trx) => saveKey(trx, key("first", "ci", "shared")))
    const saving = edit((trx) => saveKey(trx, key("second", "prod", "shared")))
    await expect(saving).rejects.toThrow(StoreConflict)
    await expect(saving).rejects.toThrow(
      'key "prod" of account "second" has the same secret as key "ci" of account "first"',
    )
  })

  test("a key finds its owner with plan, limit and suspension", async () => {
    await giveAccount(fresh.store, "owner")
    await edit((trx) => saveKey(trx, key("owner", "ci", "owned")))
    const owner = await findKey(fresh.store.db, "owned")
    const account = (await listAccounts(fresh.store.db)).find((each) => each.name === "owner")!
    const stored = (await listKeys(fresh.store.db)).find((each) => each.account === "owner")!
    expect(stored).toMatchObject({ name: "ci", prefix: "sk-tg-ab", lastFour: "wxyz", revokedAt: null })
    expect(owner).toEqual({
      keyId: stored.id,
      keyName: "ci",
      accountId: account.id,
      accountName: "owner",
      planName: "default",
      concurrency: null,
      suspended: false,
    })
    await edit((trx) => saveAccount(trx, { name: "owner", plan: "default", concurrency: 4, suspended: true }))
    expect(await findKey(fresh.store.db, "owned")).toEqual({ ...owner!, concurrency: 4, suspended: true })
    expect(await findKey(fresh.store.db, "unknown")).toBeNull()
  })

  test("a revoked key is not found and stays revoked when its secret is saved again", async () => {
    await giveAccount(fresh.store, "revoking")
    await edit((trx) => saveKey(trx, key("revoking", "ci", "gone")))
    await fresh.store.db.updateTable("keys").set({ revoked_at: 1n }).where("digest", "=", "gone").execute()
    expect(await findKey(fresh.store.db, "gone")).toBeNull()
    expect(await edit((trx) => saveKey(trx, key("revoking", "ci", "gone")))).toBe("unchanged")
    expect(await findKey(fresh.store.db, "gone")).toBeNull()
    expect(await edit((trx) => saveKey(trx, key("revoking", "ci", "anew")))).toBe("updated")
    expect(await findKey(fresh.store.db, "anew")).not.toBeNull()
  })

  test("a person is created, left alone, updated, found in any spelling of the address, deleted", async () => {
    await giveAccount(fresh.store, "peopled")
    const person = { email: "Root@Example.com", passwordHash: "h1", role: "admin", account: "peopled" } as const
    expect(await edit((trx) => savePerson(trx, person))).toBe("created")
    expect(await edit((trx) => savePerson(trx, { ...person, email: "root@example.com" }))).toBe("unchanged")
    expect(await edit((trx) => savePerson(trx, { ...person, role: "member" }))).toBe("updated")
    const found = await findPerson(fresh.store.db, "ROOT@example.com")
    expect(found).toMatchObject({ email: "root@example.com", passwordHash: "h1", role: "member", account: "peopled" })
    expect(await listPeople(fresh.store.db)).toEqual([found!])
    expect(await edit((trx) => deletePerson(trx, "Root@example.com"))).toBe(true)
    expect(await edit((trx) => deletePerson(trx, "Root@example.com"))).toBe(false)
    expect(await findPerson(fresh.store.db, "root@example.com")).toBeNull()
  })

  test("an account with people or with ledger lines stays; one without goes with its keys", async () => {
    await giveAccount(fresh.store, "leaving")
    await edit(async (trx) => {
      await saveKey(trx, key("leaving", "ci", "leaving-key"))
      await savePerson(trx, { email: "last@example.com", passwordHash: "h", role: "member", account: "leaving" })
    })
    await expect(edit((trx) => deleteAccount(trx, "leaving"))).rejects.toThrow(
      'account "leaving" is still used by person "last@example.com"',
    )
    await edit((trx) => deletePerson(trx, "last@example.com"))
    expect(await edit((trx) => deleteAccount(trx, "leaving"))).toBe(true)
    expect(await edit((trx) => deleteAccount(trx, "leaving"))).toBe(false)
    expect(await findKey(fresh.store.db, "leaving-key")).toBeNull()

    await giveAccount(fresh.store, "billed")
    await edit((trx) => postTopup(trx, { account: "billed", amount: 1n, reference: "billed-1", note: null }))
    const deleting = edit((trx) => deleteAccount(trx, "billed"))
    await expect(deleting).rejects.toThrow(StoreConflict)
    await expect(deleting).rejects.toThrow('account "billed" has lines in the ledger')
    await expect(sql`delete from accounts where name = 'billed'`.execute(fresh.store.db)).rejects.toThrow(
      /foreign key/i,
    )
  })
})
