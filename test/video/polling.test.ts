import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import { headerOf, upstream } from "../support/gateway.ts"
import { stopWithoutComplaint } from "../support/scene.ts"
import {
  endless,
  expectSold,
  expectUnsold,
  planned,
  type VideoScene,
  type VideoUpstream,
  videoScene,
} from "../support/video-scene.ts"

setDefaultTimeout(30_000)

const kling: VideoUpstream = ["kling", "kling-v3"]
const dayMs = 24 * 3_600_000
const graceMs = 10 * 60_000

let simulator: Simulator
let scene: VideoScene

beforeAll(async () => {
  simulator = await startSimulator()
  scene = await videoScene(simulator, {
    hanging: kling,
    prompt: kling,
    pace: kling,
    old: kling,
    oldDone: kling,
    oldAway: kling,
    lost: kling,
    found: kling,
    replaced: kling,
    fitting: ["kling", "kling-v3", { apiKeys: ["first-key-of-it", "second-key-of-it"] }],
    absorbing: kling,
  })
})

afterAll(async () => {
  await scene.gateway.stop()
  await stopWithoutComplaint(simulator)
})

interface Times {
  readonly created_at?: bigint
  readonly next_look_at?: bigint
  readonly missing_since?: bigint
  readonly polls?: bigint
}

/** Changes a job's row, and has it looked at at once. */
async function set(id: string, times: Times = {}): Promise<void> {
  const changes = { next_look_at: BigInt(Date.now()), ...times }
  await scene.gateway.store.db.updateTable("jobs").set(changes).where("id", "=", id).execute()
}

function ago(ms: number): bigint {
  return BigInt(Date.now() - ms)
}

test.concurrent("a vendor that answers no poll delays no other, and goes on when it answers again", async () => {
  const hang = { kind: "hang" } as const
  const stuck = []
  for (let at = 0; at < 100; at++) stuck.push(await scene.begin("hanging", planned({ polls: [hang] })))
  while (scene.vendor("hanging").openCalls() < 100) await Bun.sleep(20)
  const jobs = []
  for (let at = 0; at < 20; at++) jobs.push(await scene.begin("prompt"))
  for (const { id } of jobs) {
    await scene.ended(id)
    const { finishedAt, submittedAt } = await scene.row(id)
    // The first look is due after two seconds; the vendor that hangs is given fifteen.
    expect(finishedAt! - submittedAt!).toBeLessThan(6000)
    await expectSold(scene, id, 5, "reported")
  }
  expect(scene.vendor("hanging").openCalls()).toBe(100)
  scene.vendor("hanging").down()
  scene.vendor("hanging").up()
  for (const { id } of stuck) await scene.ended(id)
  for (const { id } of stuck) await expectSold(scene, id, 5, "reported")
})

test.concurrent("looks come two seconds after the submit, then more and more seldom, up to fifteen seconds apart", async () => {
  const { id } = await scene.begin("pace", endless)
  const { submittedAt, nextLookAt } = await scene.row(id)
  expect(nextLookAt - submittedAt!).toBe(2000)
  for (const [polls, gap] of [
    [0, 2000],
    [3, 4394],
    [7, 12_550],
    [8, 15_000],
    [500, 15_000],
  ] as const) {
    await set(id, { polls: BigInt(polls) })
    const seen = await scene.rowWhen(id, (job) => job.polls === polls + 1)
    const planned = seen.nextLookAt - seen.lastLookAt!
    expect([polls, planned >= gap * 0.9 - 1 && planned <= gap * 1.1 + 1]).toEqual([polls, true])
  }
})

describe("a job without a verdict for a day", () => {
  test.concurrent("is looked at once more, then it has failed and costs nothing", async () => {
    const { id } = await scene.begin("old", endless)
    await set(id, { created_at: ago(dayMs - 60_000) })
    expect((await scene.rowWhen(id, ({ polls }) => polls > 0)).state).toBe("in_progress")
    const before = scene.vendor("old").calls.length
    await set(id, { created_at: ago(dayMs + 1000) })
    expect(await scene.ended(id)).toMatchObject({
      status: "failed",
      error: { message: "the vendor gave no verdict within 24 hours" },
    })
    expect(scene.vendor("old").calls.length - before).toBe(1)
    await expectUnsold(scene, id)
  })

  test.concurrent("is completed and charged if that look finds it done", async () => {
    const { id } = await scene.begin("oldDone")
    await set(id, { created_at: ago(dayMs + 1000) })
    expect((await scene.ended(id)).status).toBe("completed")
    await expectSold(scene, id, 5, "reported")
  })

  test.concurrent("has failed if the vendor cannot even be asked", async () => {
    const { id } = await scene.begin("oldAway", planned({ polls: [{ kind: "html", status: 502 }] }))
    await set(id, { created_at: ago(dayMs + 1000) })
    expect((await scene.ended(id)).status).toBe("failed")
    expect((await scene.row(id)).trouble).toContain("502")
    await expectUnsold(scene, id)
  })
})

test.concurrent("a vendor that knows no such job is asked again, and believed after ten minutes", async () => {
  const { id } = await scene.begin("lost", endless)
  scene.vendor("lost").memory.videos.clear()
  const missing = await scene.rowWhen(id, ({ polls }) => polls > 0)
  expect([missing.state, Math.abs(missing.missingSince! - Date.now()) < 5000]).toEqual(["queued", true])
  await set(id, { missing_since: ago(graceMs - 60_000) })
  expect((await scene.rowWhen(id, ({ polls }) => polls > 1)).state).toBe("queued")
  await set(id, { missing_since: ago(graceMs + 1000) })
  expect((await scene.ended(id)).error!.message).toBe("the vendor does not know the job any more")
  await expectUnsold(scene, id)
})

test.concurrent("a job that is found again is not missing any more", async () => {
  const { id } = await scene.begin("found", { ...endless, polls: [{ kind: "status", status: 404 }] })
  expect((await scene.rowWhen(id, ({ polls }) => polls > 0)).missingSince).not.toBeNull()
  await set(id, { missing_since: ago(graceMs - 1000) })
  expect(await scene.rowWhen(id, ({ polls }) => polls > 1)).toMatchObject({ missingSince: null, state: "in_progress" })
})

test.concurrent("a job is asked after with the key of several that it was sent with", async () => {
  const jobs = []
  for (let at = 0; at < 6; at++) jobs.push(await scene.begin("fitting", planned({ ownerOnly: true })))
  for (const { id } of jobs) expect((await scene.ended(id)).status).toBe("completed")
  const submits = scene.vendor("fitting").calls.filter(({ method }) => method === "POST")
  expect(new Set(submits.map((call) => headerOf(call, "authorization"))).size).toBe(2)
})

test.concurrent("a key that was replaced meanwhile gives way to the new one", async () => {
  const { id } = await scene.begin("replaced")
  const base = `${simulator.url}/${scene.vendor("replaced").name}`
  await scene.gateway.apply({
    upstreams: [upstream("replaced", base, { vendor: "kling", apiKeys: ["the-new-key-of-it"] })],
  })
  expect((await scene.ended(id)).status).toBe("completed")
  const poll = scene.vendor("replaced").calls.find(({ method }) => method === "GET")!
  expect(headerOf(poll, "authorization")).toBe("Bearer the-new-key-of-it")
})

test.concurrent("a verdict is the last word: nobody asks after a job that is over", async () => {
  const jobs = [await scene.begin("absorbing"), await scene.begin("absorbing", planned({ outcome: "failure" }))]
  for (const { id } of jobs) await scene.ended(id)
  const [calls, rows] = [scene.vendor("absorbing").calls.length, await Promise.all(jobs.map(({ id }) => scene.row(id)))]
  for (const { id } of jobs) await set(id, { polls: 0n })
  // The poller has gone round many times when a job that was begun now is over.
  await scene.ended((await scene.begin("absorbing")).id)
  expect(scene.vendor("absorbing").calls.length).toBe(calls + 2)
  for (const [at, { id }] of jobs.entries()) expect((await scene.row(id)).state).toBe(rows[at]!.state)
})
