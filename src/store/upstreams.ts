import type { JsonValue } from "../core/json.ts"
import type { Timeouts } from "../core/timeouts.ts"
import { newId } from "../lib/ids.ts"
import { alreadyHas, now, refuseIfUsed, type Saved } from "./save.ts"
import type { Reader, Writer } from "./schema.ts"

/** A credential as it is kept: sealed for its place, and a digest to tell whether it is still the same one. */
export interface StoredCredential {
  readonly sealed: Uint8Array
  readonly digest: string
}

export interface UpstreamFields {
  readonly name: string
  readonly vendor: string
  /** Null: the preset's own. */
  readonly baseUrl: string | null
  readonly credentials: readonly StoredCredential[]
  readonly headers: Readonly<Record<string, string>>
  /** Only those that differ from the gateway's. */
  readonly timeouts: Readonly<Partial<Timeouts>>
  readonly concurrency: number
  readonly settings: Readonly<Record<string, JsonValue>>
}

export interface UpstreamRow extends UpstreamFields {
  readonly id: string
}

/** The place a credential is sealed for, the same wherever it is sealed or unsealed. */
export function credentialContext(upstream: string, position: number): string {
  return `upstream/${upstream}/${position}`
}

export async function listUpstreams(db: Reader): Promise<readonly UpstreamRow[]> {
  const rows = await db.selectFrom("upstreams").selectAll().orderBy("name").execute()
  const credentials = await db
    .selectFrom("upstream_credentials")
    .select(["upstream_id", "sealed", "digest"])
    .orderBy("upstream_id")
    .orderBy("position")
    .execute()
  const byUpstream = Map.groupBy(credentials, (credential) => credential.upstream_id)
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    vendor: row.vendor,
    baseUrl: row.base_url,
    credentials: (byUpstream.get(row.id) ?? []).map(({ sealed, digest }) => ({ sealed, digest })),
    headers: JSON.parse(row.headers),
    timeouts: JSON.parse(row.timeouts),
    concurrency: Number(row.concurrency),
    settings: JSON.parse(row.settings),
  }))
}

/** Sealing the same credential twice gives different bytes, so credentials are compared by their digests. */
export async function saveUpstream(trx: Writer, upstream: UpstreamFields): Promise<Saved> {
  const wanted = {
    vendor: upstream.vendor,
    base_url: upstream.baseUrl,
    headers: JSON.stringify(upstream.headers),
    timeouts: JSON.stringify(upstream.timeouts),
    concurrency: BigInt(upstream.concurrency),
    settings: JSON.stringify(upstream.settings),
  }
  const row = await trx.selectFrom("upstreams").selectAll().where("name", "=", upstream.name).executeTakeFirst()
  const time = now()
  if (row === undefined) {
    const id = newId()
    const columns = { id, name: upstream.name, ...wanted, created_at: time, updated_at: time }
    await trx.insertInto("upstreams").values(columns).execute()
    await replaceCredentials(trx, id, upstream.credentials)
    return "created"
  }
  const sameCredentials = await hasCredentials(trx, row.id, upstream.credentials)
  if (sameCredentials && alreadyHas(row, wanted)) return "unchanged"
  if (!sameCredentials) await replaceCredentials(trx, row.id, upstream.credentials)
  await trx
    .updateTable("upstreams")
    .set({ ...wanted, updated_at: time })
    .where("id", "=", row.id)
    .execute()
  return "updated"
}

/** False where there was no such upstream. */
export async function deleteUpstream(trx: Writer, name: string): Promise<boolean> {
  const models = await trx
    .selectFrom("routes")
    .innerJoin("upstreams", "upstreams.id", "routes.upstream_id")
    .innerJoin("models", "models.id", "routes.model_id")
    .select("models.name")
    .distinct()
    .where("upstreams.name", "=", name)
    .orderBy("models.name")
    .execute()
  const users = models.map((model) => model.name)
  refuseIfUsed(`upstream ${JSON.stringify(name)}`, "model", users)
  const { numDeletedRows } = await trx.deleteFrom("upstreams").where("name", "=", name).executeTakeFirst()
  return numDeletedRows > 0n
}

async function hasCredentials(trx: Writer, id: string, wanted: readonly StoredCredential[]): Promise<boolean> {
  const kept = await trx
    .selectFrom("upstream_credentials")
    .select("digest")
    .where("upstream_id", "=", id)
    .orderBy("position")
    .execute()
  return kept.length === wanted.length && kept.every(({ digest }, position) => digest === wanted[position]?.digest)
}

async function replaceCredentials(trx: Writer, id: string, wanted: readonly StoredCredential[]): Promise<void> {
  await trx.deleteFrom("upstream_credentials").where("upstream_id", "=", id).execute()
  if (wanted.length === 0) return
  const time = now()
  const rows = wanted.map(({ sealed, digest }, position) => ({
    upstream_id: id,
    position: BigInt(position),
    sealed,
    digest,
    created_at: time,
    updated_at: time,
  }))
  await trx.insertInto("upstream_credentials").values(rows).execute()
}
