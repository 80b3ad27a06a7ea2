import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import type { ModelConfig } from "../../src/config/document.ts"
import { model } from "../support/gateway.ts"
import { stopWithoutComplaint } from "../support/scene.ts"
import { videoSamples } from "../support/video-samples.ts"
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

/** Answers to a submit that do not tell whether the vendor has the job. */
const doubts: Readonly<Record<string, Behaviour>> = {
  lost: planned({ submit: "lost" }),
  hang: planned({ submit: "hang" }),
  unreadable: { kind: "status", status: 200, body: '{"hello":"world"}' },
  empty: { kind: "status", status: 200, body: "" },
  proxy: { kind: "html", status: 502 },
  late: { kind: "status", status: 504 },
  cut: { kind: "stream", status: 200, body: '{"id":"x', framing: "content-length", end: "rst" },
  garbage: { kind: "garbage" },
  redirect: { kind: "status", status: 307, body: "", headers: { location: "http://127.0.0.1:1/" } },
}

/** Answers that say for certain that the vendor has no job, after which another may be asked. */
const refusals = { crowded: 429, broken: 500, unpaid: 402, keyless: 401 } as const

const kling: VideoUpstream = ["kling", "kling-v3"]
const brief = { timeouts: { nonStream: 1500 } }

setDefaultTimeout(30_000)

let simulator: Simulator
let scene: VideoScene

/** A model that goes to the upstream of its name first and to `then` otherwise. */
function before(then: string, name: string, upstreamModel: string): ModelConfig {
  const routes = [
    { upstream: name, model: upstreamModel },
    { upstream: then, model: "kling-v3" },
  ]
  return model(name, routes, { price: secondPrice })
}

beforeAll(async () => {
  simulator = await startSimulator()
  const upstreams: Record<string, VideoUpstream> = {
    // Nobody listens there.
    dead: ["kling", "kling-v3", { baseUrl: "http://127.0.0.1:1" }],
    spare: kling,
    next: kling,
    wrong: kling,
    small: ["minimax", "T2V-01"],
    left: kling,
    lookup: ["kling", "kling-v3", brief],
  }
  const models = [
    before("next", "dead", "kling-v3"),
    before("spare", "wrong", "kling-v3"),
    before("next", "small", "T2V-01"),
  ]
  for (const { vendor, model: name } of videoSamples) {
    for (const doubt of Object.keys(doubts)) upstreams[`${vendor}-${doubt}`] = [vendor, name, brief]
    for (const doubt of Object.keys(doubts)) models.push(before("spare", `${vendor}-${doubt}`, name))
    for (const refusal of Object.keys(refusals)) upstreams[`${vendor}-${refusal}`] = [vendor, name]
    for (const refusal of Object.keys(refusals)) models.push(before("next", `${vendor}-${refusal}`, name))
  }
  scene = await videoScene(simulator, upstreams, { models })
  scene.vendor("next").behave(planned())
})

afterAll(async () => {
  await scene.gateway.stop()
  await stopWithoutComplaint(simulator)
})

async function submit(name: string, body: object = {}): Promise<JobView> {
  const response = await scene.post(name, body)
  const text = await response.text()
  expect([name, response.status, text]).toEqual([name, 200, expect.any(String)])
  return JSON.parse(text) as JobView
}

function submitsAt(upstream: string): number {
  return scene.vendor(upstream).calls.filter(({ method }) => method === "POST").length
}

test.concurrent("a connection that is refused: the next route has the job, once", async () => {
  const { id } = await submit("dead")
  const { route, attempts } = await scene.row(id)
  expect(route.upstream).toBe("next")
  expect(attempts.map(({ upstream, outcome }) => `${upstream}:${outcome}`)).toEqual([
    "dead:unreachable",
    "dead:unreachable",
    "next:answered",
  ])
  expect(scene.vendor("next").memory.submits.get(id)).toBe(1)
  expect((await scene.ended(id)).status).toBe("completed")
  await expectSold(scene, id, 5, "reported")
})

test.concurrent("a vendor's certain no: the next route has the job, once, and it is charged as its own", async () => {
  const asked = videoSamples.flatMap(({ vendor }) =>
    Object.entries(refusals).map(async ([refusal, status]) => {
      const name = `${vendor}-${refusal}`
      scene.vendor(name).behave({ kind: "status", status })
      const { id } = await submit(name, { duration: 10 })
      expect([name, (await scene.row(id)).route.upstream]).toEqual([name, "next"])
      expect(scene.vendor("next").memory.submits.get(id)).toBe(1)
      await scene.ended(id)
      await expectSold(scene, id, 10, "reported")
      expect((await scene.lines(id))[0]!.measured).toMatchObject({ upstream: "next", model: name })
    }),
  )
  await Promise.all(asked)
})

test.concurrent("an answer that leaves doubt: no other vendor is asked, the job fails and costs nothing", async () => {
  const others = videoSamples.filter(({ vendor }) => vendor !== "kling")
  const asked = others.flatMap(({ vendor }) =>
    Object.entries(doubts).map(async ([doubt, answer]) => {
      const name = `${vendor}-${doubt}`
      scene.vendor(name).behave(answer)
      const { id, status } = await submit(name)
      expect(status).toBe("queued")
      expect([name, (await scene.ended(id)).error?.message]).toEqual([
        name,
        "the vendor did not say whether it took the job, so it was not sent again; nothing is charged",
      ])
      await expectUnsold(scene, id)
      expect([name, submitsAt(name)]).toEqual([name, 1])
      expect((await scene.row(id)).attempts.map(({ outcome }) => outcome)).toEqual(["in_doubt"])
    }),
  )
  await Promise.all(asked)
  expect(scene.vendor("spare").calls).toEqual([])
})

test.concurrent("Kling is asked by our own id: what it has completes and is charged once", async () => {
  await Promise.all(
    ["lost", "hang"].map(async (doubt) => {
      const name = `kling-${doubt}`
      scene.vendor(name).behave(doubts[doubt]!)
      const { id } = await submit(name)
      expect(await scene.row(id)).toMatchObject({ state: "submitting", ref: null })
      expect((await scene.show(id)).status).toBe("queued")
      expect((await scene.ended(id)).status).toBe("completed")
      await expectSold(scene, id, 5, "reported")
      expect(scene.vendor(name).memory.submits.get(id)).toBe(1)
      expect(scene.vendor(name).calls[1]!.path).toEndWith(`/v1/videos/text2video/${id}`)
    }),
  )
  expect(scene.vendor("spare").calls).toEqual([])
})

test.concurrent("what Kling does not have has failed when it has had the time to arrive, and costs nothing", async () => {
  const names = Object.keys(doubts).filter((doubt) => doubt !== "lost" && doubt !== "hang")
  await Promise.all(
    names.map(async (doubt) => {
      const name = `kling-${doubt}`
      scene.vendor(name).behave(doubts[doubt]!, planned())
      const { id } = await submit(name)
      // Not to be found at once is no verdict: it may be on its way.
      const first = await scene.rowWhen(id, ({ polls }) => polls > 0)
      expect([name, first.state, first.trouble]).toEqual([
        name,
        "submitting",
        "the vendor does not have it, or not yet",
      ])
      await older(id, 61_000)
      expect(await scene.ended(id)).toMatchObject({
        status: "failed",
        error: { message: "the job never reached the vendor; nothing is charged" },
      })
      await expectUnsold(scene, id)
      expect(submitsAt(name)).toBe(1)
    }),
  )
})

test.concurrent("a look-up that fails is asked again", async () => {
  const trouble: Behaviour = { kind: "status", status: 503 }
  scene.vendor("lookup").behave(planned({ submit: "lost" }), trouble, planned())
  const { id } = await submit("lookup")
  await scene.rowWhen(id, ({ polls }) => polls > 0)
  expect((await scene.ended(id)).status).toBe("completed")
  await expectSold(scene, id, 5, "reported")
})

test.concurrent("a request that the vendor calls wrong is the caller's: no other vendor is asked, no job is left", async () => {
  scene.vendor("wrong").behave({ kind: "status", status: 400 })
  const response = await scene.post("wrong")
  expect([response.status, ((await response.json()) as { code: number }).code]).toEqual([400, 1201])
  const jobs = await scene.gateway.store.db.selectFrom("jobs").select("id").where("model", "=", "wrong").execute()
  expect(jobs).toEqual([])
})

test.concurrent("a route that cannot make what is asked for is passed over", async () => {
  const { id } = await submit("small", { duration: 10 })
  expect((await scene.row(id)).route.upstream).toBe("next")
  expect(scene.vendor("small").calls).toEqual([])
})

test.concurrent("a caller who leaves while the vendor is asked has a job all the same", async () => {
  scene.vendor("left").behave(planned({ headDelayMs: 600 }))
  const leaving = new AbortController()
  const asked = fetch(`${scene.gateway.url}/v1/videos`, {
    method: "POST",
    headers: { authorization: `Bearer ${scene.gateway.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "left", prompt: "a fox" }),
    signal: leaving.signal,
  })
  while (scene.vendor("left").calls.length === 0) await Bun.sleep(10)
  leaving.abort()
  await asked.catch(() => {})
  const { db } = scene.gateway.store
  const { id } = await db.selectFrom("jobs").select("id").where("model", "=", "left").executeTakeFirstOrThrow()
  expect((await scene.ended(id)).status).toBe("completed")
  await expectSold(scene, id, 5, "reported")
  expect(submitsAt("left")).toBe(1)
})

/** Moves a job into the past, and its next look to now. */
async function older(id: string, ms: number): Promise<void> {
  const past = BigInt(Date.now() - ms)
  const changes = { created_at: past, next_look_at: past }
  await scene.gateway.store.db.updateTable("jobs").set(changes).where("id", "=", id).execute()
}
