import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { sql } from "kysely"
import { openVault } from "../../src/lib/seal.ts"
import { readCatalog } from "../../src/store/catalog.ts"
import { inTransaction } from "../../src/store/db.ts"
import { StoreConflict, StoreMissing } from "../../src/store/errors.ts"
import { deleteModel, type ModelFields, saveModel } from "../../src/store/models.ts"
import { deletePlan, savePlan } from "../../src/store/plans.ts"
import { deleteSetting, saveSetting } from "../../src/store/settings.ts"
import { credentialContext, deleteUpstream, saveUpstream, type UpstreamFields } from "../../src/store/upstreams.ts"
import { bumpCatalogVersion, catalogVersion, lockCatalog } from "../../src/store/versions.ts"
import { defaultPlan, engines, type FreshStore, freshStore, giveAccount, slowStart } from "./engines.ts"

const vault = openVault("the master key of the catalog tests, long enough")

function upstream(name: string, secrets: readonly string[] = ["sk-one", "sk-two"]): UpstreamFields {
  return {
    name,
    vendor: "openai",
    baseUrl: null,
    credentials: secrets.map((secret, position) => ({
      sealed: vault.seal(secret, credentialContext(name, position)),
      digest: vault.digest(secret),
    })),
    headers: { "x-team": "a" },
    timeouts: { firstToken: 5_000 },
    concurrency: 7,
    settings: { region: "eu", list: [1, null, { deep: true }] },
  }
}

function model(name: string, routes: ModelFields["routes"]): ModelFields {
  return { name, price: { input: "1.25", output: "10" }, tokenizer: null, endpoints: ["chat"], routes }
}

function route(name: string, priority = 1) {
  return { upstream: name, upstreamModel: `${name}-model`, priority, weight: 100 }
}

describe.each([...engines])("catalog on %s", (engine) => {
  let fresh: FreshStore
  beforeAll(async () => {
    fresh = await freshStore(engine)
  }, slowStart)
  afterAll(() => fresh.close())
  const edit: <T>(work: Parameters<typeof inTransaction<T>>[1]) => Promise<T> = (work) =>
    inTransaction(fresh.store, work)

  test("a plan is created, left alone, updated, deleted", async () => {
    const plan = { name: "p", concurrency: 3, models: ["gpt-*"], priceMultiplier: "1.50" }
    expect(await edit((trx) => savePlan(trx, plan))).toBe("created")
    const before = await fresh.store.db.selectFrom("plans").selectAll().where("name", "=", "p").execute()
    expect(await edit((trx) => savePlan(trx, plan))).toBe("unchanged")
    expect(await fresh.store.db.selectFrom("plans").selectAll().where("name", "=", "p").execute()).toEqual(before)
    expect(await edit((trx) => savePlan(trx, { ...plan, priceMultiplier: "1.5" }))).toBe("updated")
    expect((await readCatalog(fresh.store.db)).plans).toEqual([{ ...plan, priceMultiplier: "1.5" }])
    expect(await edit((trx) => deletePlan(trx, "p"))).toBe(true)
    expect(await edit((trx) => deletePlan(trx, "p"))).toBe(false)
  })

  test("an upstream comes back as it was saved, its credentials in order and unsealable", async () => {
    expect(await edit((trx) => saveUpstream(trx, upstream("whole")))).toBe("created")
    const { upstreams } = await readCatalog(fresh.store.db)
    const { id, credentials, ...rest } = upstreams.find((each) => each.name === "whole")!
    const { credentials: _, ...saved } = upstream("whole")
    expect(id).toHaveLength(36)
    expect(rest).toEqual(saved)
    const opened = credentials.map(({ sealed }, at) => vault.unseal(sealed, credentialContext("whole", at)))
    expect(opened).toEqual(["sk-one", "sk-two"])
  })

  test("an upstream sealed anew with the same secrets is unchanged; other secrets, order or fields update it", async () => {
    await edit((trx) => saveUpstream(trx, upstream("same")))
    expect(await edit((trx) => saveUpstream(trx, upstream("same")))).toBe("unchanged")
    expect(await edit((trx) => saveUpstream(trx, upstream("same", ["sk-two", "sk-one"])))).toBe("updated")
    expect(await edit((trx) => saveUpstream(trx, upstream("same", ["sk-two"])))).toBe("updated")
    expect(await edit((trx) => saveUpstream(trx, upstream("same", [])))).toBe("updated")
    const moved = { ...upstream("same", []), baseUrl: "https://example.com/v1" }
    expect(await edit((trx) => saveUpstream(trx, moved))).toBe("updated")
    const { upstreams } = await readCatalog(fresh.store.db)
    expect(upstreams.find((each) => each.name === "same")).toMatchObject({ baseUrl: moved.baseUrl, credentials: [] })
  })

  test("a model's routes are replaced as a whole and keep their order", async () => {
    await edit(async (trx) => {
      for (const name of ["r-a", "r-b"]) await saveUpstream(trx, upstream(name))
    })
    const wanted = model("ordered", [route("r-b", 2), route("r-a"), route("r-b", 1)])
    expect(await edit((trx) => saveModel(trx, wanted))).toBe("created")
    expect(await edit((trx) => saveModel(trx, wanted))).toBe("unchanged")
    const turned = { ...wanted, routes: wanted.routes.toReversed() }
    expect(await edit((trx) => saveModel(trx, turned))).toBe("updated")
    const counted = { ...turned, tokenizer: "cl100k_base" } as const
    expect(await edit((trx) => saveModel(trx, counted))).toBe("updated")
    expect(await edit((trx) => saveModel(trx, counted))).toBe("unchanged")
    expect(await edit((trx) => saveModel(trx, { ...counted, price: "free", endpoints: null }))).toBe("updated")
    const { models } = await readCatalog(fresh.store.db)
    expect(models.find((each) => each.name === "ordered")).toMatchObject({
      price: "free",
      tokenizer: "cl100k_base",
      endpoints: null,
      routes: turned.routes,
    })
    expect(await edit((trx) => deleteModel(trx, "ordered"))).toBe(true)
    expect(await edit((trx) => deleteModel(trx, "ordered"))).toBe(false)
  })

  test("a route to an unknown upstream is refused by name, and nothing of the model stays", async () => {
    const saving = edit((trx) => saveModel(trx, model("lost", [route("nowhere")])))
    await expect(saving).rejects.toThrow(StoreMissing)
    await expect(saving).rejects.toThrow('model "lost", route 1: upstream "nowhere" does not exist')
    expect((await readCatalog(fresh.store.db)).models.some((each) => each.name === "lost")).toBe(false)
  })

  test("an upstream in use cannot be deleted, neither by the function nor by raw SQL", async () => {
    await edit(async (trx) => {
      await saveUpstream(trx, upstream("busy"))
      for (let n = 1; n <= 7; n++) await saveModel(trx, model(`user-${n}`, [route("busy"), route("busy", 2)]))
    })
    const deleting = edit((trx) => deleteUpstream(trx, "busy"))
    await expect(deleting).rejects.toThrow(StoreConflict)
    await expect(deleting).rejects.toThrow(
      'upstream "busy" is still used by model "user-1", "user-2", "user-3", "user-4", "user-5" and 2 more',
    )
    await expect(sql`delete from upstreams where name = 'busy'`.execute(fresh.store.db)).rejects.toThrow(/foreign key/i)
    await edit(async (trx) => {
      for (let n = 1; n <= 7; n++) await deleteModel(trx, `user-${n}`)
    })
    expect(await edit((trx) => deleteUpstream(trx, "busy"))).toBe(true)
    const left = await fresh.store.db
      .selectFrom("upstream_credentials")
      .leftJoin("upstreams", "upstreams.id", "upstream_credentials.upstream_id")
      .select("digest")
      .where("upstreams.id", "is", null)
      .execute()
    expect(left).toEqual([])
  })

  test("a plan in use cannot be deleted", async () => {
    await giveAccount(fresh.store, "planned")
    await expect(edit((trx) => deletePlan(trx, defaultPlan.name))).rejects.toThrow(
      'plan "default" is still used by account "planned"',
    )
  })

  test("settings are created, left alone, updated, deleted", async () => {
    expect(await edit((trx) => saveSetting(trx, "timeouts", { total: 5 }))).toBe("created")
    expect(await edit((trx) => saveSetting(trx, "timeouts", { total: 5 }))).toBe("unchanged")
    expect(await edit((trx) => saveSetting(trx, "timeouts", null))).toBe("updated")
    expect((await readCatalog(fresh.store.db)).settings).toEqual({ timeouts: null })
    expect(await edit((trx) => deleteSetting(trx, "timeouts"))).toBe(true)
    expect(await edit((trx) => deleteSetting(trx, "timeouts"))).toBe(false)
  })

  test("the version grows with each bump, and not when the edit fails", async () => {
    const before = await catalogVersion(fresh.store.db)
    expect(await edit((trx) => bumpCatalogVersion(trx))).toBe(before + 1)
    const failing = edit(async (trx) => {
      await bumpCatalogVersion(trx)
      throw new Error("changed my mind")
    })
    await expect(failing).rejects.toThrow("changed my mind")
    expect(await catalogVersion(fresh.store.db)).toBe(before + 1)
    expect((await readCatalog(fresh.store.db)).version).toBe(before + 1)
  })

  test("a read never shows half of an edit, and an editor sees its own", async () => {
    const names = ["twin-a", "twin-b"]
    await edit(async (trx) => {
      for (const name of names) await saveSetting(trx, name, 0)
    })
    const torn: unknown[] = []
    const write = async () => {
      for (let round = 1; round <= 30; round++) {
        await edit(async (trx) => {
          const version = await lockCatalog(trx)
          for (const name of names) await saveSetting(trx, name, round)
          const own = await readCatalog(trx)
          expect(own.version).toBe(version)
          expect(own.settings["twin-b"]).toBe(round)
          await bumpCatalogVersion(trx)
        })
      }
    }
    const read = async () => {
      for (let round = 0; round < 30; round++) {
        const { settings } = await readCatalog(fresh.store.db)
        if (settings["twin-a"] !== settings["twin-b"]) torn.push(settings)
      }
    }
    await Promise.all([write(), read(), read()])
    expect(torn).toEqual([])
  })

  test("editors who lock the catalog wait for each other, so no bump is lost", async () => {
    const before = await catalogVersion(fresh.store.db)
    const seen = await Promise.all(
      Array.from({ length: 10 }, () =>
        edit(async (trx) => {
          const version = await lockCatalog(trx)
          await Bun.sleep(1)
          return [version, await bumpCatalogVersion(trx)] as const
        }),
      ),
    )
    for (const [locked, bumped] of seen) expect(bumped).toBe(locked + 1)
    expect(await catalogVersion(fresh.store.db)).toBe(before + 10)
  })
})
