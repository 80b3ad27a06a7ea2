import { afterAll, beforeAll, expect, test } from "bun:test"
import type { Fault } from "../../simulator/behaviour.ts"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import type { Plan } from "../../simulator/testing/video-vendors.ts"
import { stopWithoutComplaint } from "../support/scene.ts"
import { type VideoSample, videoSamples } from "../support/video-samples.ts"
import {
  expectSold,
  expectUnsold,
  planned,
  pngUrl,
  type VideoScene,
  type VideoUpstream,
  videoScene,
} from "../support/video-scene.ts"

/*
 * Vendors are first asked after a job two seconds after they took it, so each test has all its jobs at all vendors at once.
 */

const samples: readonly (readonly [string, VideoSample])[] = [
  ...videoSamples.map((sample) => [sample.vendor, sample] as const),
  [
    "minimax-older",
    {
      ...videoSamples.find(({ vendor }) => vendor === "minimax")!,
      model: "MiniMax-Hailuo-2.3",
      reports: false,
      words: { Preparing: "queued", Queueing: "queued", Processing: "in_progress", Rendering: "in_progress" },
    },
  ],
]

const patienceMs = 30_000
let simulator: Simulator
let scene: VideoScene

beforeAll(async () => {
  simulator = await startSimulator()
  const upstreams: Record<string, VideoUpstream> = {}
  for (const [name, { vendor, model, pictureModel }] of samples) {
    upstreams[name] = [vendor, model]
    upstreams[`${name}-picture`] = [vendor, pictureModel ?? model]
    for (const more of ["ends", "says", "troubled"]) upstreams[`${name}-${more}`] = [vendor, model]
  }
  scene = await videoScene(simulator, upstreams)
})

afterAll(async () => {
  await scene.gateway.stop()
  await stopWithoutComplaint(simulator)
})

/** Does the same with every vendor at once, and tells of all that went wrong. */
async function withEach(work: (name: string, sample: VideoSample) => Promise<void>): Promise<void> {
  const ends = await Promise.allSettled(samples.map(([name, sample]) => work(name, sample)))
  const wrong = ends.flatMap((end, at) => (end.status === "rejected" ? [`${samples[at]![0]}: ${end.reason}`] : []))
  if (wrong.length > 0) throw new Error(wrong.join("\n\n"))
}

async function together<T>(things: Iterable<T>, work: (thing: T) => Promise<void>): Promise<void> {
  await Promise.all([...things].map(work))
}

/** Submits one job after the other, so that each gets its own plan, and waits for none. */
async function begun(name: string, plans: readonly Plan[]): Promise<readonly string[]> {
  const ids: string[] = []
  for (const plan of plans) ids.push((await scene.begin(name, plan)).id)
  return ids
}

test.concurrent("success, from text and from a picture: the state, the address, the seconds and the line", async () => {
  await withEach(async (name, sample) => {
    const seconds = sample.reports ? 7 : 6.25
    await together(
      [
        [name, {}],
        [`${name}-picture`, { image_url: pngUrl }],
      ] as const,
      async ([model, body]) => {
        const { id, created_at } = await scene.begin(model, planned({ seconds }), body)
        const job = await scene.ended(id, patienceMs)
        expect(job).toEqual({
          id,
          object: "video.generation.job",
          status: "completed",
          model,
          created_at,
          video_url: expect.stringMatching(
            sample.open ? /\/cdn\/\w+\.mp4$/ : new RegExp(`^${scene.gateway.url}/v1/videos/${id}/content[?]`),
          ),
          seconds,
        })
        await expectSold(scene, id, seconds, sample.reports ? "reported" : "probed")
        const film = await fetch(job.video_url!)
        expect([film.status, film.headers.get("content-type")]).toEqual([200, "video/mp4"])
        const content = await scene.call("GET", `/v1/videos/${id}/content`)
        expect(Buffer.compare(await content.bytes(), await film.bytes())).toBe(0)
      },
    )
  })
}, 60_000)

/** What an end that is no success is told as; null where the vendor has no word for it that is a verdict, "sold" where it calls the job done. */
const endings: Readonly<Record<string, Partial<Record<string, RegExp | "sold" | null>>>> = {
  kling: { moderated: /risk control/, expired: null },
  "volcengine-ark": { moderated: /moderation/, expired: /expired/ },
  dashscope: { moderated: /moderation/, expired: null },
  gemini: { moderated: /content filter/, expired: null },
  runway: { moderated: /moderation/, expired: null },
  minimax: { moderated: /sensitive|policy|moderation/i },
  "minimax-older": { moderated: /moderation/, no_url: null },
  xai: { moderated: /moderation/, expired: /expired/ },
  vidu: { moderated: /moderation/ },
  fal: { moderated: /./ },
  replicate: { moderated: /flagged|sensitive/i, expired: /expired/ },
  zhipu: { moderated: /./ },
  // It has a path for the video, and nobody knows what is there until it is asked for.
  "openai-compatible": { moderated: /moderation|safety|policy/i, expired: "sold", no_url: "sold" },
}

test.concurrent("failed, moderated, expired, cancelled, without a result: failed with a reason, and not charged", async () => {
  await withEach(async (name, sample) => {
    const outcomes = ["failure", "moderated", "expired", "cancelled", "no_url"] as const
    const ids = await begun(
      `${name}-ends`,
      outcomes.map((outcome) => planned({ outcome })),
    )
    await together(outcomes.entries(), async ([at, outcome]) => {
      const told = endings[name]?.[outcome]
      if (told === null) {
        // Nobody says that it failed: it goes on, and is not charged.
        await scene.rowWhen(ids[at]!, ({ polls }) => polls > 0, patienceMs)
        expect(["queued", "in_progress"]).toContain((await scene.show(ids[at]!)).status)
        return
      }
      const job = await scene.ended(ids[at]!, patienceMs)
      if (told === "sold") return expectSold(scene, job.id, sample.usual, "reported")
      expect({ ...job, outcome }).toEqual({
        outcome,
        id: ids[at]!,
        object: "video.generation.job",
        status: "failed",
        model: `${name}-ends`,
        created_at: expect.any(Number),
        error: { message: expect.stringMatching(told ?? /./) },
      })
      await expectUnsold(scene, ids[at]!)
    })
  })
}, 60_000)

test.concurrent("every status word, known or of tomorrow, keeps a job going until the vendor calls it done", async () => {
  await withEach(async (name, { words }) => {
    const told = Object.entries(words)
    const ids = await begun(
      `${name}-says`,
      told.map(([word]) => planned({ words: [word], reports: true })),
    )
    await together(told.entries(), async ([at, [word, state]]) => {
      const seen = await scene.rowWhen(ids[at]!, ({ polls }) => polls > 0, patienceMs)
      expect({ word, state: seen.state }).toEqual({ word, state })
      expect(seen.trouble === null).toBe(word !== "Rendering")
      await scene.ended(ids[at]!, patienceMs)
      expect((await scene.lines(ids[at]!)).length).toBe(1)
    })
  })
  expect(scene.gateway.complaints).toContainEqual({ vendor: "kling", word: "rendering" })
}, 60_000)

/** Answers to a poll that say nothing about the job. */
const troubles: readonly Fault[] = [
  ...[401, 402, 403, 404, 408, 429, 500, 502, 503, 504].map((status) => ({ kind: "status", status }) as const),
  { kind: "html" },
  { kind: "html", status: 502 },
  { kind: "garbage" },
  ...["", "null", "[]", "{}", '"text"', '{"status":', "7"].map(
    (body) => ({ kind: "status", status: 200, body }) as const,
  ),
  { kind: "status", status: 302, body: "", headers: { location: "http://127.0.0.1:1/" } },
]

/** The runtime asks again by itself where a connection that was kept open is gone, so that these may not be seen at all. */
const breaks: readonly Fault[] = [{ kind: "reset" }, { kind: "close" }]

test.concurrent("trouble while asking is no verdict: the job completes afterwards and is charged once", async () => {
  await withEach(async (name) => {
    const faults = [...troubles, ...breaks]
    const ids = await begun(
      `${name}-troubled`,
      faults.map((fault) => planned({ polls: [fault] })),
    )
    await together(faults.entries(), async ([at, fault]) => {
      if (!breaks.includes(fault)) {
        const { state, trouble } = await scene.rowWhen(ids[at]!, ({ polls }) => polls > 0, patienceMs)
        expect({ fault, state, trouble }).toEqual({ fault, state: "queued", trouble: expect.any(String) })
      }
      expect((await scene.ended(ids[at]!, patienceMs)).status).toBe("completed")
      expect(await scene.row(ids[at]!)).toMatchObject({ trouble: null, missingSince: null })
      expect((await scene.lines(ids[at]!)).length).toBe(1)
    })
  })
}, 60_000)
