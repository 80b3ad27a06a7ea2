import type { Endpoint } from "../core/endpoints.ts"
import type { Price } from "../core/price.ts"
import type { Tokenizer } from "../core/tokenizer.ts"
import { newId } from "../lib/ids.ts"
import { StoreMissing } from "./errors.ts"
import { alreadyHas, now, type Saved } from "./save.ts"
import type { Reader, Writer } from "./schema.ts"

export interface RouteFields {
  /** The upstream's name. */
  readonly upstream: string
  readonly upstreamModel: string
  readonly priority: number
  readonly weight: number
}

export interface ModelFields {
  readonly name: string
  readonly price: Price
  /** Null: the usual one. */
  readonly tokenizer: Tokenizer | null
  readonly endpoints: readonly Endpoint[] | null
  readonly routes: readonly RouteFields[]
}

export interface ModelRow extends ModelFields {
  readonly id: string
  readonly createdAt: number
}

export async function listModels(db: Reader): Promise<readonly ModelRow[]> {
  const rows = await db.selectFrom("models").selectAll().orderBy("name").execute()
  const byModel = Map.groupBy(await routesQuery(db).execute(), (route) => route.model_id)
  return rows.map((row) => ({
    id: row.id,
    createdAt: Number(row.created_at),
    name: row.name,
    price: JSON.parse(row.price),
    tokenizer: row.tokenizer,
    endpoints: row.endpoints === null ? null : JSON.parse(row.endpoints),
    routes: (byModel.get(row.id) ?? []).map(routeOf),
  }))
}

/** The routes given replace the ones it had. */
export async function saveModel(trx: Writer, model: ModelFields): Promise<Saved> {
  const wanted = {
    price: JSON.stringify(model.price),
    tokenizer: model.tokenizer,
    endpoints: model.endpoints === null ? null : JSON.stringify(model.endpoints),
  }
  const row = await trx.selectFrom("models").selectAll().where("name", "=", model.name).executeTakeFirst()
  const time = now()
  if (row === undefined) {
    const id = newId()
    const columns = { id, name: model.name, ...wanted, created_at: time, updated_at: time }
    await trx.insertInto("models").values(columns).execute()
    await replaceRoutes(trx, id, model)
    return "created"
  }
  const kept = await routesQuery(trx).where("routes.model_id", "=", row.id).execute()
  const sameRoutes = Bun.deepEquals(kept.map(routeOf), model.routes.map(bareRoute))
  if (sameRoutes && alreadyHas(row, wanted)) return "unchanged"
  if (!sameRoutes) await replaceRoutes(trx, row.id, model)
  await trx
    .updateTable("models")
    .set({ ...wanted, updated_at: time })
    .where("id", "=", row.id)
    .execute()
  return "updated"
}

/** Its routes go with it. False where there was no such model. */
export async function deleteModel(trx: Writer, name: string): Promise<boolean> {
  const { numDeletedRows } = await trx.deleteFrom("models").where("name", "=", name).executeTakeFirst()
  return numDeletedRows > 0n
}

async function replaceRoutes(trx: Writer, modelId: string, model: ModelFields): Promise<void> {
  await trx.deleteFrom("routes").where("model_id", "=", modelId).execute()
  if (model.routes.length === 0) return
  const upstreams = await trx.selectFrom("upstreams").select(["id", "name"]).execute()
  const ids = new Map(upstreams.map(({ id, name }) => [name, id]))
  const time = now()
  const rows = model.routes.map((route, position) => {
    const upstreamId = ids.get(route.upstream)
    if (upstreamId === undefined) {
      const place = `model ${JSON.stringify(model.name)}, route ${position + 1}`
      throw new StoreMissing(`${place}: upstream ${JSON.stringify(route.upstream)} does not exist`)
    }
    return {
      model_id: modelId,
      position: BigInt(position),
      upstream_id: upstreamId,
      upstream_model: route.upstreamModel,
      priority: BigInt(route.priority),
      weight: BigInt(route.weight),
      created_at: time,
      updated_at: time,
    }
  })
  await trx.insertInto("routes").values(rows).execute()
}

function routesQuery(db: Reader) {
  return db
    .selectFrom("routes")
    .innerJoin("upstreams", "upstreams.id", "routes.upstream_id")
    .select(["routes.model_id", "upstreams.name as upstream", "routes.upstream_model", "routes.priority"])
    .select("routes.weight")
    .orderBy("routes.model_id")
    .orderBy("routes.position")
}

type RouteRow = Awaited<ReturnType<ReturnType<typeof routesQuery>["executeTakeFirstOrThrow"]>>

function routeOf(row: RouteRow): RouteFields {
  return {
    upstream: row.upstream,
    upstreamModel: row.upstream_model,
    priority: Number(row.priority),
    weight: Number(row.weight),
  }
}

/** Only what is stored, whatever else the caller's object carries. */
function bareRoute({ upstream, upstreamModel, priority, weight }: RouteFields): RouteFields {
  return { upstream, upstreamModel, priority, weight }
}
