import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { KyselyPlugin } from "kysely"
import { saveAccount, suspendAccount } from "../../src/store/accounts.ts"
import { inTransaction } from "../../src/store/db.ts"
import { postTopup } from "../../src/store/ledger.ts"
import { engines, type FreshStore, freshStore, slowStart } from "../store/engines.ts"
import { type BackOffice, openBackOffice, refusalOf } from "./back-office.ts"

interface AccountView {
  readonly id: string
  readonly name: string
  readonly [field: string]: unknown
}

interface AccountPage {
  readonly data: readonly AccountView[]
  readonly next: string | null
}

const names = Array.from({ length: 120 }, (_, index) => `many-${String(index).padStart(3, "0")}`)
const account = { concurrency: null, balance: null, keys: [] }

describe.each([...engines])("accounts on %s", (engine) => {
  let fresh: FreshStore
  let office: BackOffice
  beforeAll(async () => {
    fresh = await freshStore(engine)
    office = await openBackOffice(
      fresh.store,
      {
        plans: [
          { name: "bulk", concurrency: 3, models: ["*"], priceMultiplier: "1" },
          { name: "gold", concurrency: 50, models: ["*"], priceMultiplier: "1" },
        ],
        accounts: [
          ...names.map((name) => ({ ...account, name, plan: "bulk" })),
          { ...account, name: "acme", plan: "gold", concurrency: 10, balance: "99.95" },
          { ...account, name: "unlimited", plan: "gold", concurrency: 0 },
          { ...account, name: "Größe / 100% + x?", plan: "gold", balance: "-0.000000001" },
        ],
      },
      { inFlight: (id) => Promise.resolve(id.length) },
    )
  }, slowStart)
  afterAll(async () => {
    await office.stop()
    await fresh.close()
  })

  test("an account shows its plan, limits, balance, load and age", async () => {
    const seen = await office.read<AccountView>("/api/accounts/acme")
    expect(seen).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: "acme",
      plan: "gold",
      concurrency: 10,
      effective_concurrency: 10,
      suspended: false,
      balance: "99.95",
      in_flight: 36,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    })
    expect(Math.abs(Date.now() - Date.parse(String(seen.created_at)))).toBeLessThan(60_000)
    expect(await office.read<AccountView>(`/api/accounts/${seen.id}`)).toEqual(seen)
  })

  test("the limit that applies is the account's own, also where that is none, or else the plan's", async () => {
    expect(await office.read("/api/accounts/unlimited")).toMatchObject({ concurrency: 0, effective_concurrency: 0 })
    expect(await office.read("/api/accounts/many-000")).toMatchObject({ concurrency: null, effective_concurrency: 3 })
  })

  test("a name is found percent-encoded whatever is in it; a balance below zero keeps every digit", async () => {
    const name = "Größe / 100% + x?"
    const seen = await office.read(`/api/accounts/${encodeURIComponent(name)}`)
    expect(seen).toMatchObject({ name, balance: "-0.000000001" })
    const listed = await office.read<AccountPage>(`/api/accounts?name=${encodeURIComponent(name)}`)
    expect(listed).toEqual({ data: [seen as unknown as AccountView], next: null })
  })

  test("where a name is the id of another account, made before or after it, the id wins", async () => {
    const rename = (from: string, to: string) =>
      fresh.store.db.updateTable("accounts").set({ name: to }).where("name", "=", from).execute()
    for (const neighbour of ["many-050", "last"]) {
      if (neighbour === "last") {
        await inTransaction(fresh.store, (trx) => saveAccount(trx, { name: "last", plan: "gold", concurrency: null }))
      }
      const { id } = await office.read<AccountView>("/api/accounts/unlimited")
      await rename(neighbour, id)
      expect(await office.read(`/api/accounts/${id}`)).toMatchObject({ id, name: "unlimited" })
      await rename(id, neighbour)
    }
  })

  test("an account that does not exist is 404 and named", async () => {
    expect(await refusalOf(await office.ask("/api/accounts/nobody"))).toEqual({
      status: 404,
      code: "not_found",
      message: 'there is no account "nobody"',
    })
  })

  test("120 accounts in pages of 50: each once and in order, while others are made before and after the cursor", async () => {
    const pages: AccountPage[] = []
    let cursor: string | null = null
    do {
      const more: string = cursor === null ? "" : `&cursor=${cursor}`
      const page: AccountPage = await office.read<AccountPage>(`/api/accounts?plan=bulk&limit=50${more}`)
      if (pages.push(page) === 1) {
        await office.apply({
          accounts: [
            { ...account, name: "many-010-early", plan: "bulk" },
            { ...account, name: "many-060-late", plan: "bulk" },
          ],
        })
      }
      cursor = page.next
    } while (cursor !== null)
    expect(pages.map(({ data }) => data.length)).toEqual([50, 50, 21])
    const seen = pages.flatMap(({ data }) => data.map(({ name }) => name))
    expect(seen).toEqual([...names.slice(0, 61), "many-060-late", ...names.slice(61)])
  })

  test("a page that holds exactly the rest is the last one", async () => {
    const first = await office.read<AccountPage>("/api/accounts?plan=gold&limit=1")
    expect(first.data).toHaveLength(1)
    const rest = await office.read<AccountPage>(`/api/accounts?plan=gold&limit=3&cursor=${first.next}`)
    expect(rest.data).toHaveLength(3)
    expect(rest.next).toBeNull()
  })

  test("without a limit a page has 50 entries; 500 is the most", async () => {
    expect((await office.read<AccountPage>("/api/accounts")).data).toHaveLength(50)
    const all = await office.read<AccountPage>("/api/accounts?limit=500")
    expect(all.data.length).toBeGreaterThan(120)
    expect(all.next).toBeNull()
  })

  test("filters by name, plan and suspension hold together; what fits none is an empty page", async () => {
    await inTransaction(fresh.store, (trx) => suspendAccount(trx, "many-007"))
    const listed = async (query: string) =>
      (await office.read<AccountPage>(`/api/accounts?${query}`)).data.map(({ name }) => name)
    expect(await listed("suspended=true")).toEqual(["many-007"])
    expect(await listed("suspended=true&plan=gold")).toEqual([])
    expect(await listed("suspended=false&name=many-007")).toEqual([])
    expect(await listed("name=many-007&plan=bulk")).toEqual(["many-007"])
    expect((await listed("suspended=false&plan=gold")).toSorted()).toContain("acme")
    expect(await office.read<AccountPage>("/api/accounts?plan=none")).toEqual({ data: [], next: null })
  })

  test("a page with all its balances takes one query", async () => {
    await inTransaction(fresh.store, async (trx) => {
      await postTopup(trx, { account: "many-001", amount: 5_000_000_000n, reference: "one", note: null })
      await postTopup(trx, { account: "many-001", amount: 250_000_000n, reference: "two", note: null })
    })
    let queries = 0
    const counting: KyselyPlugin = {
      transformQuery({ node }) {
        queries += 1
        return node
      },
      transformResult: async ({ result }) => result,
    }
    const counted = await openBackOffice(
      fresh.store,
      {},
      { store: { ...fresh.store, db: fresh.store.db.withPlugin(counting) } },
    )
    const page = await counted.read<AccountPage>("/api/accounts?plan=bulk&limit=100")
    await counted.stop()
    expect(page.data).toHaveLength(100)
    expect(page.data.slice(0, 3).map(({ balance }) => balance)).toEqual(["0", "5.25", "0"])
    expect(queries).toBe(1)
  })

  test("control characters are refused before the database sees them", async () => {
    const cursor = Buffer.from("accounts:a\0b").toString("base64url")
    for (const [path, field] of [
      ["/api/accounts/a%00b", "a"],
      ["/api/accounts?name=a%00b", "name"],
      ["/api/accounts?plan=%00", "plan"],
      [`/api/accounts?cursor=${cursor}`, "cursor"],
    ]) {
      const refusal = await refusalOf(await office.ask(path!))
      expect([path, refusal.status, refusal.code]).toEqual([path, 400, "invalid_parameter"])
      expect(refusal.message).toStartWith(`${field} must `)
    }
  })
})
