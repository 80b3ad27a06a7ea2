import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import type { AccountConfig } from "../../src/config/document.ts"
import { balanceOf } from "../../src/store/ledger.ts"
import { account, keyOf } from "../support/accounts.ts"
import { model } from "../support/gateway.ts"
import { stopWithoutComplaint } from "../support/scene.ts"
import {
  expectSold,
  expectUnsold,
  type JobView,
  planned,
  secondPrice,
  type VideoScene,
  type VideoUpstream,
  videoScene,
} from "../support/video-scene.ts"

/** A job of ten seconds costs 0.70 dollars. */
const accounts: readonly AccountConfig[] = [
  account("exact", { balance: "0.70" }),
  account("short", { balance: "0.699999999" }),
  account("empty", { balance: "0" }),
  account("twice", { balance: "0.80" }),
  account("dear", { plan: "double", balance: "1.40" }),
  account("dear-short", { plan: "double", balance: "1.399999999" }),
  account("closed", { balance: "0.70" }),
]

const kling: VideoUpstream = ["kling", "kling-v3"]
const fal: VideoUpstream = ["fal", "fal-ai/veo3.1/fast"]

setDefaultTimeout(30_000)

let simulator: Simulator
let scene: VideoScene

beforeAll(async () => {
  simulator = await startSimulator()
  const upstreams = {
    exact: kling,
    together: kling,
    measured: kling,
    film: fal,
    unread: fal,
    crowd: kling,
    pinned: kling,
  }
  scene = await videoScene(
    simulator,
    { ...upstreams, failing: kling, given: kling, closed: kling },
    {
      accounts,
      models: [model("free", [{ upstream: "given", model: "kling-v3" }])],
      plans: [{ name: "double", concurrency: 0, models: ["*"], priceMultiplier: "2" }],
    },
  )
})

afterAll(async () => {
  await scene.gateway.stop()
  await stopWithoutComplaint(simulator)
})

async function balance(name: string): Promise<bigint> {
  const { db } = scene.gateway.store
  const { id } = await db.selectFrom("accounts").select("id").where("name", "=", name).executeTakeFirstOrThrow()
  return balanceOf(db, id)
}

async function begin(asked: string, name: string, duration: number): Promise<string> {
  const response = await scene.post(asked, { duration }, keyOf(name))
  expect(response.status).toBe(200)
  return ((await response.json()) as JobView).id
}

function completed(id: string) {
  return scene.rowWhen(id, ({ state }) => state === "completed")
}

test.concurrent("a balance that covers the seconds exactly is admitted; less is 402, and nothing is sent", async () => {
  const vendor = scene.vendor("exact")
  vendor.behave(planned())
  for (const name of ["short", "empty", "dear-short"]) {
    const refused = await scene.post("exact", { duration: 10 }, keyOf(name))
    expect([name, refused.status, refused.headers.get("x-should-retry")]).toEqual([name, 402, "false"])
    expect(await refused.json()).toMatchObject({ error: { type: "billing_error", code: "insufficient_balance" } })
  }
  expect(vendor.calls).toEqual([])
  // It may have what it covers.
  await begin("exact", "short", 9)
  const [exact, dear] = [await begin("exact", "exact", 10), await begin("exact", "dear", 10)]
  expect([await balance("exact"), await balance("dear")]).toEqual([700_000_000n, 1_400_000_000n])
  expect(await scene.lines(exact)).toEqual([])
  await completed(exact)
  await expectSold(scene, exact, 10, "reported")
  expect((await completed(dear)).charge).toBe(1_400_000_000n)
  expect([await balance("exact"), await balance("dear")]).toEqual([0n, 0n])
})

test.concurrent("the pre-check is the only one: jobs admitted together may take the balance below zero", async () => {
  scene.vendor("together").behave(planned())
  const ids = [await begin("together", "twice", 10), await begin("together", "twice", 10)]
  for (const id of ids) await completed(id)
  for (const id of ids) await expectSold(scene, id, 10, "reported")
  expect(await balance("twice")).toBe(-600_000_000n)
  expect((await scene.post("together", { duration: 3 }, keyOf("twice"))).status).toBe(402)
})

test.concurrent("the line has the vendor's seconds, else the file's, else those that were sent, and says which", async () => {
  const jobs = [
    { job: await scene.begin("measured", planned({ seconds: 7.5 })), seconds: 7.5, source: "reported" },
    { job: await scene.begin("measured", planned({ seconds: 7.5, reports: false })), seconds: 7.5, source: "probed" },
    {
      job: await scene.begin(
        "measured",
        planned({ seconds: 4.04, reports: false, moov: "end", resultBytes: 3_000_000 }),
      ),
      seconds: 4.04,
      source: "probed",
    },
    { job: await scene.begin("film", planned({ seconds: 8.25, moov: "end" })), seconds: 8.25, source: "probed" },
    {
      job: await scene.begin(
        "unread",
        planned({ seconds: 7, file: { fault: { kind: "status", status: 200, body: "no film" } } }),
      ),
      seconds: 8,
      source: "sent",
    },
  ] as const
  for (const { job, seconds, source } of jobs) {
    expect((await scene.ended(job.id)).seconds).toBe(seconds)
    await expectSold(scene, job.id, seconds, source)
    const [line] = await scene.lines(job.id)
    expect(line!.estimated).toBe(source !== "reported")
  }
})

test.concurrent("a hundred clients that ask after one job make one line, and ask the vendor nothing", async () => {
  const { id } = await scene.begin("crowd")
  const crowd = Array.from({ length: 100 }, async () => {
    for (;;) {
      if ((await scene.show(id)).status === "completed") return
      await Bun.sleep(100)
    }
  })
  await Promise.all(crowd)
  await expectSold(scene, id, 5, "reported")
  expect(scene.vendor("crowd").calls.map(({ method }) => method)).toEqual(["POST", "GET"])
})

test.concurrent("the price is the one of the time of the submit", async () => {
  const before = await scene.begin("pinned")
  await scene.gateway.apply({
    models: [model("pinned", [{ upstream: "pinned", model: "kling-v3" }], { price: { second: "9" } })],
  })
  const after = await scene.begin("pinned")
  await scene.ended(before.id)
  await expectSold(scene, before.id, 5, "reported")
  expect((await scene.lines(before.id))[0]!.price).toMatchObject({ units: secondPrice })
  expect((await completed(after.id)).charge).toBe(45_000_000_000n)
})

test.concurrent("failed jobs and free ones make no line", async () => {
  const failed = await scene.begin("failing", planned({ outcome: "failure" }))
  scene.vendor("given").behave(planned())
  const free = (await (await scene.post("free")).json()) as JobView
  expect((await scene.ended(failed.id)).status).toBe("failed")
  await expectUnsold(scene, failed.id)
  expect(await scene.ended(free.id)).toMatchObject({ status: "completed", seconds: 5 })
  expect([(await scene.row(free.id)).charge, await scene.lines(free.id)]).toEqual([0n, []])
})

test.concurrent("an account that was suspended meanwhile is charged all the same", async () => {
  scene.vendor("closed").behave(planned())
  const id = await begin("closed", "closed", 10)
  const { db } = scene.gateway.store
  await db.updateTable("accounts").set({ suspended: 1n }).where("name", "=", "closed").execute()
  await completed(id)
  await expectSold(scene, id, 10, "reported")
})
