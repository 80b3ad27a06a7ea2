import { expect } from "bun:test"
import type { Simulator } from "../../simulator/simulator.ts"
import type { Plan } from "../../simulator/testing/video-vendors.ts"
import type { SimulatedVendor } from "../../simulator/vendor.ts"
import type { AccountConfig, ModelConfig, PlanConfig, UpstreamConfig } from "../../src/config/document.ts"
import { isOver, type VideoJob } from "../../src/core/video-job.ts"
import type { DatabaseTarget } from "../../src/store/db.ts"
import { jobOf } from "../../src/store/jobs.ts"
import { jobReference, type LedgerLine, lineOf } from "../../src/store/ledger.ts"
import { account } from "./accounts.ts"
import { type GatewayOptions, model, startGateway, type TestGateway, testKey, upstream } from "./gateway.ts"

/** A gateway that sells videos, with simulated vendors of its own. */
export interface VideoScene extends AsyncDisposable {
  readonly gateway: TestGateway
  /** The simulated vendor behind an upstream. */
  vendor(upstream: string): SimulatedVendor
  /** Calls the gateway with the key of "acme" unless told another, or null for none. */
  call(
    method: string,
    path: string,
    more?: { key?: string | null; headers?: Record<string, string> },
  ): Promise<Response>
  /** POSTs a job for a model, with a prompt unless the body has one. */
  post(model: string, body?: object, key?: string): Promise<Response>
  /** Has the upstream of the model's name take a job that goes as planned, and gives the job as it is answered. */
  begin(model: string, plan?: Plan, body?: object): Promise<JobView>
  show(id: string): Promise<JobView>
  /** The job when it is over. */
  ended(id: string, patienceMs?: number): Promise<JobView>
  /** The job as the database has it. */
  row(id: string): Promise<VideoJob>
  /** The same once it is as wanted. */
  rowWhen(id: string, isSo: (job: VideoJob) => boolean, patienceMs?: number): Promise<VideoJob>
  /** Ledger lines of a job. */
  lines(id: string): Promise<readonly LedgerLine[]>
}

export interface JobView {
  readonly id: string
  readonly object: string
  readonly status: "queued" | "in_progress" | "completed" | "failed"
  readonly model: string
  readonly created_at: number
  readonly video_url?: string
  readonly seconds?: number
  readonly error?: { readonly message: string }
}

export interface VideoSceneOptions extends GatewayOptions {
  readonly database?: DatabaseTarget
  /** Besides one for each upstream, under its name. */
  readonly models?: readonly ModelConfig[]
  readonly accounts?: readonly AccountConfig[]
  /** Besides "default", which limits nothing. */
  readonly plans?: readonly PlanConfig[]
}

/** An upstream by its vendor and the vendor's name for the model. */
export type VideoUpstream = readonly [vendor: string, model: string, more?: Partial<UpstreamConfig>]

export const secondPrice = { second: "0.07" } as const
/** The same in 1e-9 dollar. */
export const perSecond = 70_000_000n
export const prompt = "a fox in the snow"

/** A 1x1 PNG. */
export const pngBase64 =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
export const pngUrl = `data:image/png;base64,${pngBase64}`

/** A job that is over when it is first asked after. */
export function planned(more: Partial<Plan> = {}): Plan {
  return { kind: "video_job", queuedMs: 0, runningMs: 0, ...more }
}

/** A job that never ends by itself. */
export const endless: Plan = { kind: "video_job", queuedMs: 0, runningMs: 3_600_000 }

let scenes = 0

/** Each upstream is sold as a model of the same name. */
export async function videoScene(
  simulator: Simulator,
  upstreams: Readonly<Record<string, VideoUpstream>>,
  { models = [], accounts = [], plans = [], database, ...options }: VideoSceneOptions = {},
): Promise<VideoScene> {
  const number = ++scenes
  const entries = Object.entries(upstreams)
  const vendor = (name: string): SimulatedVendor => simulator.vendor(`${name}-video-${number}`)
  const acme = accounts.find(({ name }) => name === "acme") ?? account("acme", { keys: [{ name: "k", key: testKey }] })
  const gateway = await startGateway(
    {
      upstreams: entries.map(([name, [preset, , more]]) =>
        upstream(name, `${simulator.url}/${vendor(name).name}`, { vendor: preset, ...more }),
      ),
      models: [
        ...entries.map(([name, [, upstreamModel]]) =>
          model(name, [{ upstream: name, model: upstreamModel }], { price: secondPrice }),
        ),
        ...models,
      ],
      plans: [{ name: "default", concurrency: 0, models: ["*"], priceMultiplier: "1" }, ...plans],
      accounts: [acme, ...accounts.filter(({ name }) => name !== "acme")],
    },
    database,
    options,
  )
  return sceneOf(gateway, vendor)
}

function sceneOf(gateway: TestGateway, vendor: VideoScene["vendor"]): VideoScene {
  const { db } = gateway.store
  const call: VideoScene["call"] = (method, path, { key = gateway.key, headers = {} } = {}) =>
    fetch(gateway.url + path, {
      method,
      redirect: "manual",
      headers: { ...(key === null ? {} : { authorization: `Bearer ${key}` }), ...headers },
    })
  const post: VideoScene["post"] = (name, body = {}, key = gateway.key) =>
    fetch(`${gateway.url}/v1/videos`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: name, prompt, ...body }),
    })
  const row: VideoScene["row"] = async (id) =>
    jobOf(await db.selectFrom("jobs").selectAll().where("id", "=", id).executeTakeFirstOrThrow())
  const show: VideoScene["show"] = async (id) => {
    const response = await call("GET", `/v1/videos/${id}`)
    expect(response.status).toBe(200)
    return (await response.json()) as JobView
  }
  const rowWhen: VideoScene["rowWhen"] = async (id, isSo, patienceMs = 15_000) => {
    const until = performance.now() + patienceMs
    for (;;) {
      const job = await row(id)
      if (isSo(job)) return job
      if (performance.now() > until) throw new Error(`not so within ${patienceMs} ms: ${told(job)}`)
      await Bun.sleep(50)
    }
  }
  return {
    gateway,
    vendor,
    call,
    post,
    async begin(name, plan = planned(), body = {}) {
      vendor(name).behave(plan)
      const response = await post(name, body)
      const text = await response.text()
      if (response.status !== 200) throw new Error(`${name} answers ${response.status}: ${text}`)
      return JSON.parse(text) as JobView
    },
    show,
    async ended(id, patienceMs) {
      await rowWhen(id, ({ state }) => isOver(state), patienceMs)
      return show(id)
    },
    row,
    rowWhen,
    async lines(id) {
      const lines = await db.selectFrom("ledger").selectAll().where("reference", "=", jobReference(id)).execute()
      return lines.map(lineOf)
    },
    [Symbol.asyncDispose]: () => gateway.stop(),
  }
}

function told({ id, state, polls, trouble, error, route }: VideoJob): string {
  return JSON.stringify({ id, vendor: route.vendor, upstream: route.upstream, state, polls, trouble, error })
}

/** The job is completed and was charged by one line, for so many seconds known in that way. */
export async function expectSold(
  scene: VideoScene,
  id: string,
  seconds: number,
  source: "reported" | "probed" | "sent",
): Promise<void> {
  const { state, secondsSource, microseconds, charge } = await scene.row(id)
  const amount = BigInt(Math.round(seconds * 1_000_000)) * (perSecond / 1_000_000n)
  expect({ state, secondsSource, microseconds, charge }).toEqual({
    state: "completed",
    secondsSource: source,
    microseconds: Math.round(seconds * 1_000_000),
    charge: amount,
  })
  const lines = await scene.lines(id)
  expect(lines.map(({ kind, amount: posted }) => ({ kind, posted }))).toEqual([{ kind: "charge", posted: -amount }])
  expect(lines[0]!.measured).toMatchObject({ secondsSource: source, endpoint: "video" })
}

/** The job failed, and nothing was charged. */
export async function expectUnsold(scene: VideoScene, id: string): Promise<string> {
  const { state, error, charge } = await scene.row(id)
  expect({ state, charge }).toEqual({ state: "failed", charge: 0n })
  expect(await scene.lines(id)).toEqual([])
  return error!
}
