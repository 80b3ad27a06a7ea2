import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test"
import { join } from "node:path"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import type { SimulatedVendor } from "../../simulator/vendor.ts"
import { slowStart } from "../store/engines.ts"
import { askChat, postChat, readStream } from "../support/chat-client.ts"
import { launchPostgres, type PostgresServer } from "../support/postgres.ts"
import { type Instance, type Outcome, until, type Variables, workbench } from "../support/workbench.ts"

setDefaultTimeout(30_000)
const bench = workbench()
let simulator: Simulator
let first: SimulatedVendor
let second: SimulatedVendor
beforeAll(async () => {
  simulator = await startSimulator()
  first = simulator.vendor("first")
  second = simulator.vendor("second")
})
beforeEach(() => {
  first.reset()
  second.reset()
})
afterAll(async () => {
  await bench.clear()
  await simulator.stop()
})

/** A change must be in effect on every instance by then. */
const changeWithinMs = 2000
const keyA = "sk-live-a-0123456789"
const keyB = "sk-live-b-0123456789"
const allKeys: Variables = { a: keyA, b: keyB }

interface Wanted {
  /** Model names with the upstream each is routed to. */
  readonly models: Readonly<Record<string, string>>
  readonly keys?: Variables
}

/** JSON is a config file too. */
function config({ models, keys = allKeys }: Wanted): string {
  const upstream = ({ name, baseUrl }: SimulatedVendor) => ({ name, vendor: "openai", base_url: baseUrl, api_key: "k" })
  return JSON.stringify({
    upstreams: [upstream(first), upstream(second)],
    models: Object.entries(models).map(([name, to]) => ({
      name,
      price: "free",
      routes: [{ upstream: to, model: `${name}-at-${to}` }],
    })),
    accounts: [{ name: "acme", balance: 5, keys: Object.entries(keys).map(([name, key]) => ({ name, key })) }],
  })
}

/** A database with the command that changes it and instances that serve it. */
interface Site {
  readonly instances: readonly Instance[]
  apply(wanted: Wanted | string, ...flags: string[]): Promise<Outcome>
}

let files = 0
async function open(count: number, wanted: Wanted, env: Variables = {}): Promise<Site> {
  const data = join(bench.folder, `data-${++files}`)
  const apply = (text: string, ...flags: string[]) =>
    bench.run(["apply", bench.file(`config-${++files}.json`, text), "--data", data, ...flags], env)
  expect(await apply(config(wanted))).toMatchObject({ code: 0, err: "" })
  const start = () => bench.start(["serve", "--port", "0", "--data", data], env)
  return {
    instances: await Promise.all(Array.from({ length: count }, start)),
    apply: (change, ...flags) => apply(typeof change === "string" ? change : config(change), ...flags),
  }
}

/** Waits until every instance of a site answers as wanted. */
async function everywhere(site: Site, model: string, wanted: object, key = keyA): Promise<void> {
  for (const { url } of site.instances) {
    let last: object | null = null
    await until(async () => {
      last = await askChat(url, key, model)
      return Bun.deepEquals({ ...last, ...wanted }, last)
    }, changeWithinMs).catch(() => expect(last).toMatchObject(wanted))
  }
}

const answeredBy = (model: string): object => ({ status: 200, model })

/** The same for one instance on SQLite, reached through its socket, and for two on Postgres, which look for changes themselves. */
function followsChanges(siteOf: () => Site): void {
  test("a new model, a changed route and a revoked key are in effect within two seconds, without a restart", async () => {
    const site = siteOf()
    await everywhere(site, "m", answeredBy("m-at-first"))
    await everywhere(site, "new", { status: 404, code: "model_not_found" })
    await everywhere(site, "m", answeredBy("m-at-first"), keyB)

    expect(await site.apply({ models: { m: "first", new: "second" } })).toMatchObject({ code: 0, err: "" })
    await everywhere(site, "new", answeredBy("new-at-second"))

    expect(await site.apply({ models: { m: "second" } })).toMatchObject({ code: 0, err: "" })
    await everywhere(site, "m", answeredBy("m-at-second"))
    await everywhere(site, "new", answeredBy("new-at-second"))

    const pruned = await site.apply({ models: { m: "first" }, keys: { a: keyA } }, "--prune")
    expect(pruned).toMatchObject({ code: 0, err: "" })
    expect(pruned.out).toContain("deleted key b of account acme\n")
    expect(pruned.out).toContain("deleted model new\n")
    await everywhere(site, "m", { status: 401, code: "invalid_api_key" }, keyB)
    await everywhere(site, "new", { status: 404, code: "model_not_found" })
    await everywhere(site, "m", answeredBy("m-at-first"))
    expect(site.instances.map(({ output }) => output().includes("not usable"))).not.toContain(true)
  })

  test("an edit that could not be served is refused by name, and goes on being refused; nothing changes", async () => {
    const site = siteOf()
    const broken = config({ models: { m: "second", other: "nowhere" } })
    const { code, out, err } = await site.apply(broken)
    expect([code, out]).toEqual([2, ""])
    expect(err).toContain(': models[1].routes[0].upstream: "nowhere" is not an upstream\n')
    const stolen = JSON.stringify({ accounts: [{ name: "thief", keys: [{ name: "k", key: keyA }] }] })
    const conflict = await site.apply(stolen)
    expect([conflict.code, conflict.out]).toEqual([2, ""])
    expect(conflict.err).toContain('key "k" of account "thief" has the same secret as key "a" of account "acme"')
    for (const { url } of site.instances) expect(await askChat(url, keyA, "m")).toMatchObject(answeredBy("m-at-first"))
    // Had any of it been written, this would find less to do.
    expect((await site.apply({ models: { m: "first" }, keys: { a: keyA } })).out).toBe("0 changed, 5 unchanged\n")
  })

  test("a request in flight ends on the route it began with, though its model moves away and is then deleted", async () => {
    const site = siteOf()
    const words = "one two three four five six seven eight nine ten"
    first.behave({ kind: "chat", text: words, gapMs: 350 })
    const streams = await Promise.all(
      site.instances.map(({ url }) => postChat(url, keyA, { model: "m", stream: true })),
    )
    for (const stream of streams) expect(stream.status).toBe(200)

    await site.apply({ models: { m: "second" }, keys: { a: keyA } })
    await everywhere(site, "m", answeredBy("m-at-second"))
    await site.apply({ models: {}, keys: { a: keyA } }, "--prune")
    await everywhere(site, "m", { status: 404, code: "model_not_found" })
    expect(first.openCalls()).toBe(site.instances.length)

    for (const stream of streams) {
      expect(await readStream(stream)).toEqual({ text: words, models: ["m-at-first"], last: "[DONE]" })
    }
    await site.apply({ models: { m: "first" }, keys: { a: keyA } })
    await everywhere(site, "m", answeredBy("m-at-first"))
  })
}

describe("one instance on SQLite", () => {
  let site: Site
  let data = ""
  beforeAll(async () => {
    site = await open(1, { models: { m: "first" } })
    data = join(bench.folder, `data-${files - 1}`)
  })

  followsChanges(() => site)

  test("export of a running instance goes through it too", async () => {
    const { code, out, err } = await bench.run(["export", "--data", data])
    expect([code, err]).toEqual([0, ""])
    expect(out).toContain("name: m\n")
  })

  test("doctor says that the instance runs, and does not count that as a fault", async () => {
    const { code, out } = await bench.run(["doctor", "--data", data])
    expect(code).toBe(0)
    expect(out).toContain(`tollgate.db is in use by another Tollgate process (pid ${site.instances[0]!.pid})`)
  })

  test("a second serve on the same data is refused with exit code 2, and the first goes on", async () => {
    const file = join(data, "tollgate.db")
    expect(await bench.run(["serve", "--port", "0", "--data", data])).toEqual({
      code: 2,
      out: "",
      err: `${file} is in use by another Tollgate process (pid ${site.instances[0]!.pid}); stop that process, give this one another data folder, or use Postgres (DATABASE_URL) to run several at once\n`,
    })
    expect(await askChat(site.instances[0]!.url, keyA, "m")).toMatchObject(answeredBy("m-at-first"))
  })

  test("killed without warning it leaves nothing that stands in the way: apply and serve work at once", async () => {
    const [instance] = site.instances
    instance!.signal("SIGKILL")
    await instance!.ended
    expect(await site.apply({ models: { m: "second" }, keys: { a: keyA } })).toMatchObject({ code: 0, err: "" })
    const again = await bench.start(["serve", "--port", "0", "--data", data])
    expect(await askChat(again.url, keyA, "m")).toMatchObject(answeredBy("m-at-second"))
  })
})

describe("two instances on Postgres", () => {
  let server: PostgresServer
  let site: Site
  beforeAll(async () => {
    server = await launchPostgres()
    const env = {
      DATABASE_URL: await server.freshDatabase(),
      TOLLGATE_MASTER_KEY: "a master key of 32 characters or so",
    }
    site = await open(2, { models: { m: "first" } }, env)
  }, slowStart)
  afterAll(() => server.stop())

  followsChanges(() => site)

  test("the database stops: known keys are served by the last good catalog, strangers get 503; it returns: all is well", async () => {
    const health = async (path: string) =>
      Promise.all(site.instances.map(async ({ url }) => (await fetch(url + path)).status))
    const stranger = "sk-live-stranger-0123456789"
    await everywhere(site, "m", answeredBy("m-at-first"))
    expect(await health("/health/ready")).toEqual([200, 200])

    await server.kill()
    await until(async () => Bun.deepEquals(await health("/health/ready"), [503, 503]))
    expect(await health("/health")).toEqual([200, 200])
    for (let round = 0; round < 3; round++) {
      for (const { url } of site.instances) {
        expect(await askChat(url, keyA, "m")).toEqual({ status: 200, model: "m-at-first", code: null })
        expect(await askChat(url, stranger, "m")).toEqual({ status: 503, model: null, code: "backend_unavailable" })
      }
      // Long enough for the instances to have looked for changes in vain.
      await Bun.sleep(600)
    }
    const refused = await postChat(site.instances[0]!.url, stranger, { model: "m" })
    expect(await refused.json()).toMatchObject({ error: { type: "overloaded_error", code: "backend_unavailable" } })

    await server.start()
    await until(async () => Bun.deepEquals(await health("/health/ready"), [200, 200]))
    await everywhere(site, "m", { status: 401, code: "invalid_api_key" }, stranger)
    expect(await site.apply({ models: { m: "second" }, keys: { a: keyA } })).toMatchObject({ code: 0, err: "" })
    await everywhere(site, "m", answeredBy("m-at-second"))
  })
})
