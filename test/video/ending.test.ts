import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import type { Plan } from "../../simulator/testing/video-vendors.ts"
import { openStore } from "../../src/store/db.ts"
import { account, keyOf } from "../support/accounts.ts"
import { stopWithoutComplaint } from "../support/scene.ts"
import { sampleOf } from "../support/video-samples.ts"
import {
  endless,
  expectSold,
  expectUnsold,
  type JobView,
  planned,
  type VideoScene,
  type VideoUpstream,
  videoScene,
} from "../support/video-scene.ts"

setDefaultTimeout(30_000)

const kling: VideoUpstream = ["kling", "kling-v3"]

let simulator: Simulator
const folder = mkdtempSync(join(tmpdir(), "tollgate-ending-"))

beforeAll(async () => {
  simulator = await startSimulator()
})

afterAll(async () => {
  await stopWithoutComplaint(simulator)
  rmSync(folder, { recursive: true, force: true })
})

describe("a running job that is deleted", () => {
  /** How each vendor that can stop a job is told to. */
  const stops = {
    "volcengine-ark": /^DELETE .*\/contents\/generations\/tasks\/[\w-]+$/,
    dashscope: /^POST .*\/api\/v1\/tasks\/[\w-]+\/cancel$/,
    runway: /^DELETE .*\/v1\/tasks\/[\w-]+$/,
    fal: /^PUT .*\/requests\/[\w-]+\/cancel$/,
    replicate: /^POST .*\/predictions\/\w+\/cancel$/,
  } as const

  let scene: VideoScene
  beforeAll(async () => {
    const upstreams: Record<string, VideoUpstream> = { unstoppable: kling, done: ["fal", sampleOf("fal").model] }
    for (const vendor of Object.keys(stops)) upstreams[vendor] = [vendor, sampleOf(vendor).model]
    scene = await videoScene(simulator, upstreams)
  })
  afterAll(() => scene.gateway.stop())

  async function remove(id: string): Promise<void> {
    const response = await scene.call("DELETE", `/v1/videos/${id}`)
    expect([response.status, await response.json()]).toEqual([
      200,
      { id, object: "video.generation.job", deleted: true },
    ])
    expect((await scene.call("GET", `/v1/videos/${id}`)).status).toBe(404)
  }

  /** Runway does not know a task any more that was stopped; it is believed after ten minutes. */
  async function forgotten(id: string): Promise<void> {
    await scene.rowWhen(id, ({ missingSince }) => missingSince !== null)
    const changes = { missing_since: BigInt(Date.now() - 11 * 60_000), next_look_at: BigInt(Date.now()) }
    await scene.gateway.store.db.updateTable("jobs").set(changes).where("id", "=", id).execute()
  }

  test.concurrent("is stopped where the vendor can, and costs nothing", async () => {
    const waiting: Plan = { kind: "video_job", queuedMs: 600_000 }
    const stopped = Object.entries(stops).map(async ([vendor, call]) => {
      const { id } = await scene.begin(vendor, waiting)
      await remove(id)
      if (vendor === "runway") await forgotten(id)
      await scene.rowWhen(id, ({ state }) => state === "failed")
      await expectUnsold(scene, id)
      const told = scene.vendor(vendor).calls.map(({ method, path }) => `${method} ${path}`)
      expect([vendor, told.filter((line) => call.test(line)).length]).toEqual([vendor, 1])
    })
    await Promise.all(stopped)
  })

  test.concurrent("goes on where it cannot, and is charged if the vendor makes it", async () => {
    const made = await scene.begin("unstoppable")
    const failed = await scene.begin("unstoppable", planned({ outcome: "failure" }))
    const tooLate = await scene.begin("done")
    for (const { id } of [made, failed, tooLate]) await remove(id)
    for (const { id } of [made, failed, tooLate])
      await scene.rowWhen(id, ({ state }) => state === "completed" || state === "failed")
    await expectSold(scene, made.id, 5, "reported")
    await expectUnsold(scene, failed.id)
    await expectSold(scene, tooLate.id, 8, "probed")
    expect((await scene.call("GET", `/v1/videos/${made.id}/content`)).status).toBe(404)
  })
})

test.concurrent("a submit takes a slot while it is being made, a job takes none, and asking after it never does", async () => {
  await using scene = await videoScene(simulator, { slow: kling }, { accounts: [account("one", { concurrency: 1 })] })
  const key = keyOf("one")
  scene.vendor("slow").behave({ ...endless, headDelayMs: 1000 })
  const first = scene.post("slow", {}, key)
  while (scene.vendor("slow").calls.length === 0) await Bun.sleep(5)
  const refused = await scene.post("slow", {}, key)
  expect([refused.status, await refused.json()]).toEqual([
    429,
    expect.objectContaining({
      error: expect.objectContaining({ type: "rate_limit_error", code: "concurrency_limit" }),
    }),
  ])
  expect((await scene.call("GET", "/v1/videos", { key })).status).toBe(200)
  const { id } = (await (await first).json()) as JobView
  expect((await scene.call("GET", `/v1/videos/${id}`, { key })).status).toBe(200)
  // It is still being made, and the slot is free.
  scene.vendor("slow").behave(endless)
  expect((await scene.post("slow", {}, key)).status).toBe(200)
  scene.vendor("slow").behave({ kind: "status", status: 400 })
  expect((await scene.post("slow", {}, key)).status).toBe(400)
  expect((await scene.post("slow", { size: "1x1" }, key)).status).toBe(400)
  scene.vendor("slow").behave(endless)
  expect((await scene.post("slow", {}, key)).status).toBe(200)
})

test.concurrent("an instance that drains takes no job, ends the submit it has begun, and leaves its jobs to the next one", async () => {
  const database = { kind: "sqlite", file: join(folder, "drained.db") } as const
  const upstreams = { slow: kling, polled: kling, probed: kling }
  const first = await videoScene(simulator, upstreams, { database })
  const vendor = first.vendor
  const hang = { kind: "hang" } as const
  const polled = await first.begin("polled", planned({ polls: [hang] }))
  const probed = await first.begin("probed", planned({ seconds: 6.5, reports: false, file: { fault: hang } }))
  const isFetched = () => vendor("probed").calls.some(({ path }) => path.includes("/cdn/"))
  while (vendor("polled").calls.length < 2 || !isFetched()) await Bun.sleep(20)
  vendor("slow").behave(planned({ headDelayMs: 500 }))
  const slow = first.post("slow")
  while (vendor("slow").calls.length === 0) await Bun.sleep(5)
  const drained = first.gateway.drain()
  const refused = await first.post("slow")
  expect([refused.status, await refused.text()]).toEqual([503, '{"error":"instance draining"}'])
  const accepted = await slow
  expect(accepted.status).toBe(200)
  const { id } = (await accepted.json()) as JobView
  await drained
  await first.gateway.stop()
  const store = await openStore(database)
  const rows = await store.db.selectFrom("jobs").select(["id", "state", "lease_owner", "charge"]).execute()
  await store.close()
  const byId = Object.fromEntries(rows.map(({ id: jobId, ...row }) => [jobId, row]))
  const left = { lease_owner: null, charge: 0n, state: "queued" } as const
  expect(byId).toEqual({
    [polled.id]: left,
    // Reading was broken off: nobody knows the length yet, and nothing is charged by a guess.
    [probed.id]: { ...left, state: "in_progress" },
    [id]: left,
  })
  const { videoFiles } = vendor("probed").memory
  for (const [file, job] of videoFiles) videoFiles.set(file, { ...job, plan: planned({ seconds: 6.5 }) })
  await using second = await videoScene(simulator, upstreams, { database })
  for (const job of [polled.id, probed.id, id]) expect((await second.ended(job)).status).toBe("completed")
  await expectSold(second, polled.id, 5, "reported")
  await expectSold(second, probed.id, 6.5, "probed")
  await expectSold(second, id, 5, "reported")
  for (const name of ["slow", "polled", "probed"])
    expect([...vendor(name).memory.submits.values()].every((count) => count === 1)).toBe(true)
})
