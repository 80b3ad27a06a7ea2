import { Database } from "bun:sqlite"
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import { openJournal } from "../../src/billing/journal.ts"
import { engines, slowStart } from "../store/engines.ts"
import { postChat } from "../support/chat-client.ts"
import { startPostgres } from "../support/postgres.ts"
import { sampleRecord } from "../support/request-records.ts"
import { type Instance, until, type Variables, workbench } from "../support/workbench.ts"

setDefaultTimeout(slowStart)
const bench = workbench()
let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator()
  simulator.vendor("quick").behave({ kind: "chat", text: "quick", headDelayMs: 2 })
})
afterAll(async () => {
  await bench.clear()
  await simulator.stop()
})

const key = "sk-reconcile-0123456789"
const accounts = ["acme", "globex"]

function config(): string {
  const prices = { cheap: { input: 1, output: 2 }, dear: { input: 3, output: 10.123456789 }, free: "free" }
  const models = Object.entries(prices).map(([name, price]) => ({ name, price, routes: [{ upstream: "quick" }] }))
  return JSON.stringify({
    upstreams: [{ name: "quick", vendor: "openai", base_url: simulator.vendor("quick").baseUrl, api_key: "k" }],
    models,
    accounts: accounts.map((name) => ({ name, balance: 100, keys: [{ name: "k", key: `${key}-${name}` }] })),
  })
}

async function databaseOf(engine: (typeof engines)[number]): Promise<Variables> {
  if (engine === "sqlite") return {}
  const server = await startPostgres()
  return { DATABASE_URL: await server.freshDatabase(), TOLLGATE_MASTER_KEY: "a master key of at least 32 characters" }
}

interface Load {
  /** How many answers there were, and how many of them cost something. */
  readonly counted: { answers: number; charged: number }
  stop(): Promise<void>
}

/** Clients that ask without a pause until they are told to stop; anything but a whole answer makes `stop` fail. */
function startLoad({ url }: Instance): Load {
  const counted = { answers: 0, charged: 0 }
  let stopped = false
  const ask = async (n: number): Promise<void> => {
    for (let turn = n; !stopped; turn++) {
      const model = ["cheap", "dear", "free"][turn % 3]
      const response = await postChat(url, `${key}-${accounts[n % 2]}`, { model, stream: turn % 2 === 0 })
      expect([response.status, await response.text()]).toEqual([200, expect.stringContaining("quick")])
      counted.answers += 1
      if (model !== "free") counted.charged += 1
    }
  }
  const clients = Promise.all(Array.from({ length: 8 }, (_, n) => ask(n)))
  return {
    counted,
    async stop() {
      stopped = true
      await clients
    },
  }
}

const clean = /^reconciled 2 accounts, (\d+) lines, (\d+) requests, 0 jobs, (\d+) hours: no differences\n$/

describe.each([...engines])("beside a gateway on %s", (engine) => {
  test("under load and afterwards there are no differences, and the gateway is not disturbed", async () => {
    const env = await databaseOf(engine)
    const data = bench.freshData()
    const file = bench.file(`${engine}.json`, config())
    const instance = await bench.start(["serve", "--port", "0", "--config", file, "--data", data], env)
    const load = startLoad(instance)
    const seen: number[] = []
    try {
      for (let look = 1; look <= 3; look++) {
        const before = load.counted.answers
        await until(() => load.counted.answers > before + 50, 20_000)
        const { code, out, err } = await bench.run(["reconcile", "--data", data], env)
        expect([code, err, out]).toEqual([0, "", expect.stringMatching(clean)])
        seen.push(Number(clean.exec(out)?.[2]))
      }
    } finally {
      await load.stop()
    }
    expect(seen[0]).toBeGreaterThan(0)
    expect(seen[2]).toBeGreaterThan(seen[0]!)
    instance.signal("SIGTERM")
    expect(await instance.ended).toBe(0)

    const { code, out } = await bench.run(["reconcile", "--data", data], env)
    expect([code, out]).toEqual([0, expect.stringMatching(clean)])
    const [, lines, requests] = clean.exec(out) ?? []
    expect(Number(requests)).toBe(load.counted.answers)
    expect(Number(lines)).toBe(accounts.length + load.counted.charged)
  })
})

describe("what it says", () => {
  const applied = async (name: string): Promise<string> => {
    const data = bench.freshData()
    expect(await bench.run(["apply", bench.file(`${name}.json`, config()), "--data", data])).toMatchObject({ code: 0 })
    return data
  }
  const spoil = (data: string, ...statements: readonly string[]): void => {
    const database = new Database(join(data, "tollgate.db"))
    for (const statement of ["drop trigger ledger_no_update", ...statements]) database.run(statement)
    database.close()
  }

  test("a difference is printed before the summary, exit code 1", async () => {
    const data = await applied("wrong")
    spoil(data, "update ledger set amount = 0 where id = 2")
    const { code, out, err } = await bench.run(["reconcile", "--data", data])
    expect([code, err]).toEqual([1, ""])
    expect(out.trimEnd().split("\n")).toEqual([
      expect.stringMatching(/^account "globex", line 2 \(".+"\): expected a top-up above 0, found 0$/),
      expect.stringMatching(/^account "globex", line 2 \(".+"\): expected a balance of 0 after it, found 100$/),
      'account "globex": expected a balance of 0, the sum of its lines, found 100',
      "reconciled 2 accounts, 2 lines, 0 requests, 0 jobs, 0 hours: 3 differences",
    ])
  })

  test("a thousand differences are printed, of more only the number", async () => {
    const data = await applied("many")
    const number = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1003) "
    const columns = "account_id, kind, amount, balance_after, reference, created_at"
    const values =
      "select (select id from accounts where name = 'acme'), 'adjustment', 0, 100000000000, 'z-' || i, 0 from n"
    spoil(data, `insert into ledger (${columns}) ${number} ${values}`)
    const { code, out } = await bench.run(["reconcile", "--data", data])
    const lines = out.trimEnd().split("\n")
    expect(code).toBe(1)
    expect(lines).toHaveLength(1002)
    expect(lines[999]).toEndWith(": expected an adjustment other than 0, found 0")
    expect(lines.slice(1000)).toEqual([
      "and 3 more",
      "reconciled 2 accounts, 1005 lines, 0 requests, 0 jobs, 0 hours: 1003 differences",
    ])
  })

  test("charges that wait in the journal are told, and are no difference", async () => {
    const data = await applied("journal")
    const journal = await openJournal(join(data, "journal"), () => {})
    await journal.append([sampleRecord("req_1", { charge: 5n }), sampleRecord("req_2", { charge: 6n })])
    const told = {
      code: 0,
      out: "2 charges wait in the journal\nreconciled 2 accounts, 2 lines, 0 requests, 0 jobs, 0 hours: no differences\n",
      err: "",
    }
    expect(await bench.run(["reconcile", "--data", data])).toEqual(told)
    await journal.close()
    expect(await bench.run(["reconcile", "--data", data])).toEqual(told)
  })

  test("charges that were set aside are told, and are no difference", async () => {
    const data = await applied("aside")
    const journal = await openJournal(join(data, "journal"), () => {})
    await journal.setAside(sampleRecord("req_1", { charge: 5n }), "its account does not exist any more")
    await journal.setAside(sampleRecord("req_2", { charge: 5n }), "its account does not exist any more")
    await journal.close()
    const told = "2 charges were set aside and need a person\n"
    const out = `${told}reconciled 2 accounts, 2 lines, 0 requests, 0 jobs, 0 hours: no differences\n`
    expect(await bench.run(["reconcile", "--data", data])).toEqual({ code: 0, out, err: "" })
  })

  test("without a database: one message, exit code 1, no data folder made", async () => {
    const data = bench.freshData()
    const err = `cannot open the database ${join(data, "tollgate.db")}: there is no such file\n`
    expect(await bench.run(["reconcile", "--data", data])).toEqual({ code: 1, out: "", err })
    expect(existsSync(data)).toBe(false)
  })
})
