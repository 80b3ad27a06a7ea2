import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import { headerOf } from "../support/gateway.ts"
import { stopWithoutComplaint } from "../support/scene.ts"
import { videoSamples } from "../support/video-samples.ts"
import { planned, type VideoScene, type VideoUpstream, videoScene } from "../support/video-scene.ts"

setDefaultTimeout(30_000)

/** A server that is none of the vendor's, and remembers what it is shown. */
function startStranger(answer: (request: Request) => Response) {
  const seen: { readonly path: string; readonly headers: string }[] = []
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      seen.push({ path: new URL(request.url).pathname, headers: JSON.stringify([...request.headers]) })
      return answer(request)
    },
  })
  return { port: server.port!, seen, stop: () => server.stop(true) }
}

let simulator: Simulator
let scene: VideoScene
let guarded: VideoScene
const stranger = startStranger(() => new Response(new Uint8Array(64), { headers: { "content-type": "video/mp4" } }))
/** Repeats the credential it is shown in every place it can. */
const parrot = startStranger((request) => {
  const shown = request.headers.get("authorization")!
  const json = { code: 1201, message: `${shown} is not welcome`, again: [shown.slice("Bearer ".length)] }
  return Response.json(json, { status: 400, headers: { "retry-after": shown } })
})

beforeAll(async () => {
  simulator = await startSimulator()
  const upstreams: Record<string, VideoUpstream> = {
    twoKeys: [
      "kling",
      "kling-v3",
      { baseUrl: `http://127.0.0.1:${parrot.port}`, apiKeys: ["access-key:secret-of-it"] },
    ],
    redirecting: ["openai-compatible", "sora-2"],
    elsewhere: ["kling", "kling-v3"],
  }
  for (const { vendor, model } of videoSamples) {
    upstreams[vendor] = [vendor, model]
    upstreams[`${vendor}-unread`] = [vendor, model]
  }
  const straying: Record<string, VideoUpstream> = {
    fal: ["fal", "fal-ai/veo3.1/fast"],
    replicate: ["replicate", "bytedance/seedance-1-pro"],
  }
  scene = await videoScene(simulator, { ...upstreams, strayFal: straying.fal!, strayReplicate: straying.replicate! })
  guarded = await videoScene(simulator, straying, { allowPrivateAddresses: false })
})

afterAll(async () => {
  await scene.gateway.stop()
  await guarded.gateway.stop()
  await stranger.stop()
  await parrot.stop()
  await stopWithoutComplaint(simulator)
})

/** An answer with everything that came with it. */
async function wholly(response: Response): Promise<string> {
  return JSON.stringify([response.status, [...response.headers], await response.text()])
}

/** All that the gateway has written down of jobs, requests and money, and told its operators. */
async function records({ gateway }: VideoScene): Promise<string> {
  const { db } = gateway.store
  const tables = ["jobs", "requests", "ledger"] as const
  const rows = await Promise.all(tables.map((table) => db.selectFrom(table).selectAll().execute()))
  const told = [rows, gateway.stories, gateway.failedAttempts, gateway.complaints.map(String)]
  return JSON.stringify(told, (_, value) => (typeof value === "bigint" ? String(value) : value))
}

test.concurrent("a credential that a vendor repeats is in no answer, no header and no record", async () => {
  const answers: string[] = []
  const ids: string[] = []
  for (const { vendor } of videoSamples) {
    const echo = `your key credential-of-${vendor} is odd`
    const json = {
      message: echo,
      error: { message: echo, code: echo, status: echo },
      detail: echo,
      reason: echo,
      code: 1,
    }
    const simulated = scene.vendor(vendor)
    simulated.behave(planned({ submit: { status: 400, json, headers: { "retry-after": echo } } }))
    answers.push(await wholly(await scene.post(vendor)))
    simulated.behave(planned({ submit: { status: 500, json: { ...json, status: 500 } } }))
    answers.push(await wholly(await scene.post(vendor)))
    const unread = scene.vendor(`${vendor}-unread`)
    const body = `<html>credential-of-${vendor}-unread`
    unread.behave({ kind: "status", status: 200, body }, planned())
    answers.push(await wholly(await scene.post(`${vendor}-unread`)))
    for (const plan of [
      planned({ outcome: "failure", message: echo }),
      planned({ polls: [{ kind: "status", status: 400, json }] }),
      planned({ polls: [{ kind: "status", status: 200, body: echo }] }),
    ])
      ids.push((await scene.begin(vendor, plan)).id)
  }
  const seen = await Promise.all(
    ids.map(async (id) => {
      await scene.rowWhen(id, ({ polls, state }) => polls > 0 || state === "failed")
      answers.push(await wholly(await scene.call("GET", `/v1/videos/${id}`)))
      return records(scene)
    }),
  )
  await Promise.all(ids.map((id) => scene.ended(id)))
  answers.push(await wholly(await scene.call("GET", "/v1/videos?limit=100")))
  const everything = [...answers, ...seen, await records(scene)].join("\n")
  expect(everything).toContain("your key *** is odd")
  expect(everything).not.toContain("credential-of-")
})

test.concurrent("nor is the token that is made of a key and its secret", async () => {
  const answer = await wholly(await scene.post("twoKeys"))
  const token = /Bearer ([\w.-]+)/.exec(parrot.seen[0]!.headers)![1]!
  expect(token.split(".")).toHaveLength(3)
  expect(answer).toContain("*** is not welcome")
  const everything = answer + (await records(scene))
  for (const secret of [token, "secret-of-it", "access-key"]) expect(everything).not.toContain(secret)
})

test.concurrent("a redirect to another host does not take the credential along", async () => {
  const redirectTo = `http://localhost:${stranger.port}/film.mp4`
  const { id } = await scene.begin("redirecting", planned({ reports: false, file: { redirectTo } }))
  await scene.ended(id)
  const content = await scene.call("GET", `/v1/videos/${id}/content`)
  expect([content.status, (await content.bytes()).length]).toEqual([200, 64])
  const { calls } = scene.vendor("redirecting")
  expect(calls.filter(({ path }) => path.endsWith("/content")).map((call) => headerOf(call, "authorization"))).toEqual([
    "Bearer credential-of-redirecting",
    "Bearer credential-of-redirecting",
  ])
  // Once to learn how long it is, once for the caller.
  expect(stranger.seen.filter(({ path }) => path === "/film.mp4")).toHaveLength(2)
  expect(JSON.stringify(stranger.seen)).not.toContain("credential-of-")
  expect(JSON.stringify(stranger.seen)).not.toContain(scene.gateway.key)
})

test.concurrent("an open result is fetched without the credential, wherever it is", async () => {
  const { id } = await scene.begin("elsewhere", planned({ reports: false, file: { host: "localhost" } }))
  const { video_url } = await scene.ended(id)
  expect(new URL(video_url!).hostname).toBe("localhost")
  expect((await scene.call("GET", `/v1/videos/${id}/content`)).status).toBe(200)
  const fetched = scene.vendor("elsewhere").calls.filter(({ path }) => path.includes("/cdn/"))
  expect(fetched).toHaveLength(2)
  for (const call of fetched) expect(headerOf(call, "authorization")).toBeUndefined()
})

test.concurrent("a vendor that sends polls to another host gets them there without the credential, and no verdict", async () => {
  for (const name of ["strayFal", "strayReplicate"]) {
    const { id } = await scene.begin(name, planned({ pollHost: "localhost" }))
    const { state, trouble } = await scene.rowWhen(id, ({ polls }) => polls > 0)
    expect([name, state]).toEqual([name, "queued"])
    expect(trouble).toContain("401")
    const [submit, ...polls] = scene.vendor(name).calls
    expect(headerOf(submit!, "authorization")).toEndWith(`credential-of-${name}`)
    expect(polls.length).toBeGreaterThan(0)
    for (const poll of polls) {
      expect(headerOf(poll, "host")).toStartWith("localhost:")
      expect(JSON.stringify(poll.headers)).not.toContain("credential-of-")
    }
  }
})

test.concurrent("where private addresses are not allowed such an address is not called at all", async () => {
  for (const name of ["fal", "replicate"]) {
    const { id } = await guarded.begin(name, planned({ pollHost: "localhost" }))
    const { state, trouble } = await guarded.rowWhen(id, ({ polls }) => polls > 0)
    expect([name, state]).toEqual([name, "queued"])
    expect(trouble).toMatch(/^the vendor points to .*(https|public)/)
    expect(guarded.vendor(name).calls).toHaveLength(1)
  }
})
