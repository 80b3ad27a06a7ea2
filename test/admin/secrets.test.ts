import { afterAll, beforeAll, expect, test } from "bun:test"
import { type FreshStore, freshStore } from "../store/engines.ts"
import { adminToken, type BackOffice, openBackOffice, vault } from "./back-office.ts"
import { recordSample, sampleHouse, sampleJobId, sampleRequestId, secrets } from "./samples.ts"

let fresh: FreshStore
let office: BackOffice
beforeAll(async () => {
  fresh = await freshStore("sqlite")
  office = await openBackOffice(fresh.store, sampleHouse)
  await recordSample(fresh.store)
})
afterAll(async () => {
  await office.stop()
  await fresh.close()
})

/** Every secret as it was given and in each form in which the database keeps it. */
async function canaries(): Promise<readonly string[]> {
  const { db } = fresh.store
  const keys = await db.selectFrom("keys").select("digest").execute()
  const people = await db.selectFrom("people").select("password_hash").execute()
  const credentials = await db.selectFrom("upstream_credentials").select(["sealed", "digest"]).execute()
  const kept = [
    ...keys.map(({ digest }) => digest),
    ...people.map(({ password_hash }) => password_hash),
    ...credentials.flatMap(({ sealed, digest }) => [
      digest,
      ...(["base64", "base64url", "hex"] as const).map((form) => Buffer.from(sealed).toString(form)),
    ]),
  ]
  expect(kept).toContain(vault.digest(secrets.accountKey))
  expect(people).toHaveLength(1)
  expect(credentials).toHaveLength(3)
  const given = [...Object.values(secrets), adminToken, "credential-of-claude"]
  return [...kept, ...given, ...given.map((secret) => Buffer.from(secret).toString("base64url"))]
}

test("no answer contains a credential, a header's value, a key, a password or what is kept of them", async () => {
  const { paths } = await office.read<{ paths: Record<string, unknown> }>("/api/openapi.json")
  const names = [
    ...office.parts.snapshot().upstreams.keys(),
    ...office.parts.snapshot().models.keys(),
    "acme",
    sampleRequestId,
    sampleJobId,
    "nobody",
  ]
  const asked = Object.keys(paths).flatMap((path) =>
    path.includes("{")
      ? names.map((name) => path.replace(/\{\w+\}/, encodeURIComponent(name)))
      : [path, `${path}?limit=1`],
  )
  const forbidden = await canaries()
  let good = 0
  for (const path of [...asked, "/api/nothing", "/api/accounts?limit=x&cursor=y"]) {
    for (const headers of [
      { authorization: `Bearer ${adminToken}` },
      { authorization: `Bearer ${secrets.accountKey}` },
    ]) {
      const response = await office.ask(path, { headers })
      if (response.status === 200) good += 1
      const answer = JSON.stringify([...response.headers]) + (await response.text())
      const leaked = forbidden.filter((secret) => answer.includes(secret))
      expect([path, leaked]).toEqual([path, []])
    }
  }
  // Eight lists or descriptions, the seven lists with a limit, and each entry once.
  expect(good).toBe(8 + 7 + 3 + 3 + 1 + 1 + 1)
})
