import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import { videoVendors } from "../../src/vendors/video/registry.ts"
import { headerOf } from "../support/gateway.ts"
import { stopWithoutComplaint } from "../support/scene.ts"
import { extra, type SentSample, size, type VideoSample, videoSamples } from "../support/video-samples.ts"
import {
  endless,
  type JobView,
  pngUrl,
  prompt,
  type VideoScene,
  type VideoUpstream,
  videoScene,
} from "../support/video-scene.ts"

/** Files and replies of one vendor beside those of its newer protocol. */
const olderMinimax: VideoSample = {
  ...videoSamples.find(({ vendor }) => vendor === "minimax")!,
  model: "MiniMax-Hailuo-2.3",
  duration: 10,
  usual: 6,
  refused: [8, "6, 10 seconds"],
  text: {
    path: "/v1/video_generation",
    body: { ...extra, model: "MiniMax-Hailuo-2.3", prompt, duration: 10, resolution: "768P" },
  },
  picture: {
    path: "/v1/video_generation",
    body: {
      ...extra,
      model: "MiniMax-Hailuo-2.3",
      prompt,
      first_frame_image: pngUrl,
      duration: 10,
      resolution: "768P",
    },
  },
}

const samples: readonly (readonly [string, VideoSample])[] = [
  ...videoSamples.map((sample) => [sample.vendor, sample] as const),
  ["minimax-older", olderMinimax],
]

setDefaultTimeout(30_000)

let simulator: Simulator
let scene: VideoScene

beforeAll(async () => {
  simulator = await startSimulator()
  const upstreams: Record<string, VideoUpstream> = {}
  for (const [name, { vendor, model, pictureModel }] of samples) {
    upstreams[name] = [vendor, model]
    upstreams[`${name}-picture`] = [vendor, pictureModel ?? model]
    for (const more of ["refuses", "breaks-500", "breaks-503"]) upstreams[`${name}-${more}`] = [vendor, model]
  }
  scene = await videoScene(simulator, upstreams)
})

afterAll(async () => {
  await scene.gateway.stop()
  await stopWithoutComplaint(simulator)
})

test("every vendor of the registry is among those that are asked here", () => {
  expect(videoSamples.map(({ vendor }) => vendor)).toEqual([...videoVendors.keys()])
})

/** What the one submit that an upstream's vendor received was. */
function submitOf(upstream: string) {
  const calls = scene.vendor(upstream).calls.filter(({ method }) => method === "POST")
  expect(calls).toHaveLength(1)
  return calls[0]!
}

function expectSent(
  upstream: string,
  { auth: [header, scheme], headers = {} }: VideoSample,
  sent: SentSample,
  id: string,
) {
  const call = submitOf(upstream)
  expect(call.path).toBe(`/${scene.vendor(upstream).name}${sent.path}`)
  const body = JSON.stringify(sent.body).replaceAll('"JOB"', JSON.stringify(id))
  expect(JSON.parse(Buffer.from(call.body).toString())).toEqual(JSON.parse(body))
  expect(headerOf(call, header)).toBe(`${scheme}credential-of-${upstream}`)
  expect(headerOf(call, "content-type")).toBe("application/json")
  for (const [name, value] of Object.entries(headers)) expect(headerOf(call, name)).toBe(value)
  // The caller's own credential stays here.
  expect(JSON.stringify(call.headers)).not.toContain(scene.gateway.key)
}

describe.each(samples)("%s", (name, sample) => {
  test("from text: the exact request, and the answer is the job, queued", async () => {
    const job = await scene.begin(name, endless, { size, duration: sample.duration, ...extra })
    expectSent(name, sample, sample.text, job.id)
    expectQueued(job, name)
  })

  test("from a picture: the exact request", async () => {
    const asked = { size, duration: sample.duration, image_url: pngUrl, ...extra }
    const job = await scene.begin(`${name}-picture`, endless, asked)
    expectSent(`${name}-picture`, sample, sample.picture, job.id)
    expect((await scene.row(job.id)).withImage).toBe(true)
  })

  test("a picture's address goes to the vendor as it is, where it takes one; else it is fetched first", async () => {
    const image_url = "https://pictures.invalid/fox.png"
    const response = await scene.post(`${name}-picture`, { image_url, duration: sample.duration })
    if (videoVendors.get(sample.vendor)!.images.byUrl) {
      expect(response.status).toBe(200)
      const sent = Buffer.from(scene.vendor(`${name}-picture`).calls.findLast(({ method }) => method === "POST")!.body)
      expect(sent.toString()).toContain(JSON.stringify(image_url))
    } else {
      const { error } = (await response.json()) as { error: { message: string } }
      expect([response.status, error.message]).toEqual([
        400,
        expect.stringMatching(/^image_url: the picture could not/),
      ])
    }
  })

  test("the length that is sent where none is asked for is the one that is written down", async () => {
    const job = await scene.begin(name, endless)
    expect((await scene.row(job.id)).route.sentSeconds).toBe(sample.usual)
  })

  test("a length or a size that it does not make is refused with what it makes, and nothing is sent", async () => {
    const before = scene.vendor(name).calls.length
    const [duration, takes] = sample.refused
    expect(await refusalOf(name, { duration })).toMatch(
      `duration: this model does not make ${duration} seconds; it takes ${takes}`,
    )
    expect(await refusalOf(name, { size: "8192x1" })).toMatch(/^size: .*it takes \S/)
    const submits = scene
      .vendor(name)
      .calls.slice(before)
      .filter(({ method }) => method === "POST")
    expect(submits).toEqual([])
  })

  test("its refusals are passed under the status they amount to, with their bodies, and the job never was", async () => {
    const upstream = `${name}-refuses`
    const vendor = scene.vendor(upstream)
    for (const status of [400, 401, 402, 403, 404, 422, 429]) {
      vendor.behave({ kind: "status", status })
      const response = await scene.post(upstream)
      expect({ asked: status, answered: response.status }).toEqual({
        asked: status,
        answered: amountsTo[name]?.[status] ?? status,
      })
      expect(response.headers.get("x-request-id")).toStartWith("req_")
      expect(await response.text()).not.toContain("req_")
    }
    const json = { words: ["of", "the", "vendor's own"], 1.5: null }
    vendor.behave({ kind: "video_job", submit: { status: 418, json, headers: { "retry-after": "7", server: "x" } } })
    const response = await scene.post(upstream)
    expect([response.status, await response.text()]).toEqual([418, JSON.stringify(json)])
    expect([response.headers.get("retry-after"), response.headers.get("server")]).toEqual(["7", null])
    expect(vendor.calls).toHaveLength(8)
    expect(await jobsOf(upstream)).toEqual([])
  })
})

/** Codes that say more than the status they come with, where the two differ. */
const amountsTo: Readonly<Record<string, Readonly<Record<number, number>>>> = {
  kling: { 422: 400 },
  "volcengine-ark": { 403: 402, 503: 429 },
  "minimax-older": { 404: 400 },
  zhipu: { 503: 429 },
}

test.each([500, 503])(
  "a vendor's own %i is a certain no: it is asked once more, then 502, and the job never was",
  async (status) => {
    await Promise.all(
      samples.map(async ([name]) => {
        const vendor = scene.vendor(`${name}-breaks-${status}`)
        vendor.behave({ kind: "status", status })
        const response = await scene.post(`${name}-breaks-${status}`)
        const other = amountsTo[name]?.[status]
        expect([name, response.status, vendor.calls.length]).toEqual([name, other ?? 502, other === undefined ? 2 : 1])
        if (other === undefined) expect(await response.json()).toMatchObject({ error: { code: "upstream_error" } })
        expect(await jobsOf(`${name}-breaks-${status}`)).toEqual([])
      }),
    )
  },
)

function expectQueued(job: JobView, model: string): void {
  expect(job).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
    object: "video.generation.job",
    status: "queued",
    model,
    created_at: expect.any(Number),
  })
  expect(Math.abs(job.created_at - Date.now() / 1000)).toBeLessThan(60)
}

async function refusalOf(model: string, body: object): Promise<string> {
  const response = await scene.post(model, body)
  const { error } = (await response.json()) as { error: { type: string; code: string; message: string } }
  expect({ status: response.status, type: error.type, code: error.code }).toEqual({
    status: 400,
    type: "invalid_request_error",
    code: "invalid_parameter",
  })
  return error.message
}

async function jobsOf(upstream: string): Promise<unknown[]> {
  return scene.gateway.store.db.selectFrom("jobs").select("id").where("upstream", "=", upstream).execute()
}
