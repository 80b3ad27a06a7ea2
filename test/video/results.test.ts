import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import { openVault } from "../../src/lib/seal.ts"
import { contentLinks, linkLifeSeconds } from "../../src/video/links.ts"
import { account, keyOf } from "../support/accounts.ts"
import { testMasterKey } from "../support/gateway.ts"
import { stopWithoutComplaint } from "../support/scene.ts"
import {
  endless,
  expectSold,
  planned,
  type VideoScene,
  type VideoUpstream,
  videoScene,
} from "../support/video-scene.ts"

setDefaultTimeout(30_000)

const kling: VideoUpstream = ["kling", "kling-v3"]
const closed: VideoUpstream = ["openai-compatible", "sora-2"]

let simulator: Simulator
let scene: VideoScene
let copying: VideoScene
const folder = mkdtempSync(join(tmpdir(), "tollgate-results-"))

beforeAll(async () => {
  simulator = await startSimulator()
  const upstreams: Record<string, VideoUpstream> = {
    open: kling,
    closed,
    linked: closed,
    veo: ["gemini", "veo-3.1-generate-preview"],
    running: kling,
    renewing: ["runway", "gen4.5"],
    gone: kling,
    deleted: kling,
    late: kling,
    broken: kling,
  }
  scene = await videoScene(simulator, upstreams, { accounts: [account("other")] })
  copying = await videoScene(
    simulator,
    { kept: kling, keptClosed: closed, unkept: kling, deleted: kling, hidden: kling },
    { results: { kind: "folder", path: folder }, publicUrl: "https://videos.example.com" },
  )
})

afterAll(async () => {
  await scene.gateway.stop()
  await copying.gateway.stop()
  await stopWithoutComplaint(simulator)
  rmSync(folder, { recursive: true, force: true })
})

interface Got {
  readonly status: number
  readonly bytes: Uint8Array
  readonly headers: Headers
}

async function get(url: string, headers: Record<string, string> = {}, method = "GET"): Promise<Got> {
  const response = await fetch(url, { method, headers, redirect: "manual" })
  return { status: response.status, bytes: await response.bytes(), headers: response.headers }
}

/** A film that can be had in whole and in part, with `headers` or without. */
async function expectFilm(url: string, headers: Record<string, string>, length: number): Promise<Uint8Array> {
  const whole = await get(url, headers)
  expect([whole.status, whole.bytes.length]).toEqual([200, length])
  expect(whole.headers.get("content-type")).toBe("video/mp4")
  expect(whole.headers.get("x-request-id")).toStartWith("req_")
  for (const [range, start, end] of [
    ["bytes=0-9", 0, 10],
    ["bytes=100-", 100, length],
    ["bytes=-7", length - 7, length],
    [`bytes=${length - 1}-${length + 50}`, length - 1, length],
  ] as const) {
    const part = await get(url, { ...headers, range })
    expect([range, part.status, part.headers.get("content-range")]).toEqual([
      range,
      206,
      `bytes ${start}-${end - 1}/${length}`,
    ])
    expect(Buffer.compare(part.bytes, whole.bytes.subarray(start, end))).toBe(0)
  }
  const beyond = await get(url, { ...headers, range: `bytes=${length}-` })
  expect([beyond.status, beyond.headers.get("content-range")]).toEqual([416, `bytes */${length}`])
  for (const range of ["bytes=5-2", "pages=1-2", "bytes=0-1,5-9"])
    expect([range, (await get(url, { ...headers, range })).status]).toEqual([range, 200])
  const head = await get(url, headers, "HEAD")
  expect([head.status, head.bytes.length, head.headers.get("content-length")]).toEqual([200, 0, String(length)])
  return whole.bytes
}

function withKey(): Record<string, string> {
  return { authorization: `Bearer ${scene.gateway.key}` }
}

function contentOf(id: string, from = scene): string {
  return `${from.gateway.url}/v1/videos/${id}/content`
}

describe("without copies", () => {
  test.concurrent("an open address is handed out as it is, and the content is there with the key", async () => {
    const { id } = await scene.begin("open", planned({ resultBytes: 50_000 }))
    const { video_url } = await scene.ended(id)
    expect(video_url).toStartWith(`${simulator.url}/${scene.vendor("open").name}/cdn/`)
    const film = await expectFilm(contentOf(id), withKey(), 50_000)
    expect(Buffer.compare((await get(video_url!)).bytes, film)).toBe(0)
    expect((await get(contentOf(id))).status).toBe(401)
    expect((await get(contentOf(id), { authorization: `Bearer ${keyOf("other")}` })).status).toBe(404)
  })

  test.concurrent("a result behind the credential has a link of ours, which opens without a key", async () => {
    for (const name of ["closed", "veo"]) {
      const { id } = await scene.begin(name, planned({ resultBytes: 40_000 }))
      const { video_url } = await scene.ended(id)
      expect(video_url).toStartWith(`${contentOf(id)}?expires=`)
      await expectFilm(video_url!, {}, 40_000)
      await expectFilm(contentOf(id), withKey(), 40_000)
    }
  })

  test.concurrent("a link that was changed, borrowed or has expired opens nothing", async () => {
    const [first, second] = [await scene.begin("linked"), await scene.begin("linked")]
    const url = new URL((await scene.ended(first.id)).video_url!)
    await scene.ended(second.id)
    const [expires, signature] = [url.searchParams.get("expires")!, url.searchParams.get("signature")!]
    expect(Math.abs(Number(expires) - Date.now() / 1000 - linkLifeSeconds)).toBeLessThan(60)
    const queries = [
      { expires },
      { signature },
      { expires: String(Number(expires) + 1), signature },
      { expires, signature: `${signature.slice(0, -1)}${signature.endsWith("A") ? "B" : "A"}` },
      { expires, signature: "" },
      { expires: `0${expires}`, signature },
      { expires: "9999999999999", signature },
    ]
    const opened = queries.map(async (query) => get(`${contentOf(first.id)}?${new URLSearchParams(query)}`))
    opened.push(get(`${contentOf(second.id)}${url.search}`))
    // Genuine, but made more than a day ago.
    const old = contentLinks(openVault(testMasterKey), () => Date.now() - linkLifeSeconds * 1000 - 1000)
    opened.push(get(old.make(scene.gateway.url, first.id)))
    for (const { status, bytes } of await Promise.all(opened)) {
      expect([status, JSON.parse(Buffer.from(bytes).toString()).error.code]).toEqual([401, "invalid_api_key"])
    }
    const young = contentLinks(openVault(testMasterKey), () => Date.now() - linkLifeSeconds * 1000 + 30_000)
    expect((await get(young.make(scene.gateway.url, first.id))).status).toBe(200)
    // The link opens the film and nothing else.
    expect((await get(`${scene.gateway.url}/v1/videos/${first.id}${url.search}`)).status).toBe(401)
    expect((await scene.call("DELETE", `/v1/videos/${first.id}`)).status).toBe(200)
    expect((await get(url.href)).status).toBe(404)
  })

  test.concurrent("a job that is not completed has no content", async () => {
    const running = await scene.begin("running", endless)
    const failed = await scene.begin("running", planned({ outcome: "failure" }))
    await scene.ended(failed.id)
    for (const { id } of [running, failed]) {
      const { status, bytes } = await get(contentOf(id), withKey())
      expect([status, JSON.parse(Buffer.from(bytes).toString()).error.code]).toEqual([404, "not_found"])
    }
  })

  test.concurrent("an address that has expired is renewed by asking the vendor", async () => {
    const { id } = await scene.begin("renewing", planned({ resultLivesMs: 1000, resultBytes: 30_000 }))
    const { video_url } = await scene.ended(id)
    await untilStatus(video_url!, 403)
    await expectFilm(contentOf(id), withKey(), 30_000)
    expect((await scene.row(id)).resultUrl).not.toBe(video_url!)
  })

  test.concurrent("a result that the vendor no longer has is 502, and the job stays as it is", async () => {
    const { id } = await scene.begin("gone")
    await scene.ended(id)
    scene.vendor("gone").memory.videoFiles.clear()
    const { status, bytes } = await get(contentOf(id), withKey())
    expect([status, JSON.parse(Buffer.from(bytes).toString()).error.code]).toEqual([502, "upstream_error"])
    await expectSold(scene, id, 5, "reported")
  })

  test.concurrent("a finished job that is deleted is gone for its account, and its line stays", async () => {
    const { id } = await scene.begin("deleted")
    await scene.ended(id)
    const deleted = await scene.call("DELETE", `/v1/videos/${id}`)
    expect([deleted.status, await deleted.json()]).toEqual([200, { id, object: "video.generation.job", deleted: true }])
    for (const [method, path] of [
      ["GET", ""],
      ["DELETE", ""],
      ["GET", "/content"],
    ] as const)
      expect((await scene.call(method, `/v1/videos/${id}${path}`)).status).toBe(404)
    const list = (await (await scene.call("GET", "/v1/videos?limit=100")).json()) as { data: { id: string }[] }
    expect(list.data.map((job) => job.id)).not.toContain(id)
    await expectSold(scene, id, 5, "reported")
  })
})

describe("a result that cannot be read just now", () => {
  const unreadable = (fault: "status" | "reset") =>
    planned({
      seconds: 6.5,
      reports: false,
      file: { fault: fault === "status" ? { kind: "status", status: 503 } : { kind: "reset" } },
    })

  /** The vendor's files are as they should be from now on. */
  function mend(name: string): void {
    const { videoFiles } = scene.vendor(name).memory
    for (const [file, job] of videoFiles) videoFiles.set(file, { ...job, plan: planned({ seconds: 6.5 }) })
  }

  test.concurrent("is looked for again before the length that was asked for counts, however long the job took", async () => {
    for (const fault of ["status", "reset"] as const) {
      const { id } = await scene.begin("late", unreadable(fault))
      // As after a job of half an hour, which is asked after many times.
      await scene.gateway.store.db.updateTable("jobs").set({ polls: 50n }).where("id", "=", id).execute()
      const { state, trouble } = await scene.rowWhen(id, ({ polls }) => polls > 50)
      expect([state, trouble]).toEqual(["in_progress", "the length of the video cannot be read"])
      expect(await scene.lines(id)).toEqual([])
      mend("late")
      await soon(id)
      await scene.ended(id)
      await expectSold(scene, id, 6.5, "probed")
    }
  })

  test.concurrent("and stays so: the length that was asked for counts", async () => {
    const { id } = await scene.begin("broken", unreadable("status"))
    for (let looks = 1; looks <= 5; looks++) {
      await scene.rowWhen(id, ({ polls }) => polls === looks)
      await soon(id)
    }
    await scene.ended(id)
    await expectSold(scene, id, 5, "sent")
  })
})

describe("with copies in a folder, and a public address", () => {
  test.concurrent("the copy is served, with ranges, after the vendor's file is gone", async () => {
    for (const name of ["kept", "keptClosed"]) {
      const { id } = await copying.begin(name, planned({ resultBytes: 60_000 }))
      const { video_url } = await copying.ended(id)
      expect(video_url).toStartWith(`https://videos.example.com/v1/videos/${id}/content?expires=`)
      const vendor = copying.vendor(name)
      for (const things of [vendor.memory.videos, vendor.memory.videoFiles]) things.clear()
      const before = vendor.calls.length
      await expectFilm(contentOf(id, copying) + new URL(video_url!).search, {}, 60_000)
      await expectFilm(contentOf(id, copying), { authorization: `Bearer ${copying.gateway.key}` }, 60_000)
      expect(vendor.calls.length).toBe(before)
      await expectSold(copying, id, name === "kept" ? 5 : 4, "reported")
      expect(readdirSync(folder)).toContain(`${id}.mp4`)
    }
  })

  test.concurrent("what cannot be copied now is copied later, before the job is completed", async () => {
    const { id } = await copying.begin("unkept", planned({ file: { fault: { kind: "status", status: 503 } } }))
    const { state, trouble } = await copying.rowWhen(id, ({ polls }) => polls > 0)
    expect([state, trouble]).toEqual(["in_progress", "the result cannot be copied: the result's address answers 503"])
    const { videoFiles } = copying.vendor("unkept").memory
    for (const [file, job] of videoFiles) videoFiles.set(file, { ...job, plan: planned() })
    await copying.ended(id)
    expect((await copying.row(id)).resultKept).toBe(true)
    await expectSold(copying, id, 5, "reported")
  })

  test.concurrent("the copy goes with the job that is deleted, and of one that is deleted before none is made", async () => {
    const { id } = await copying.begin("deleted")
    await copying.ended(id)
    const { video_url } = await copying.show(id)
    await copying.call("DELETE", `/v1/videos/${id}`)
    expect(readdirSync(folder)).not.toContain(`${id}.mp4`)
    expect((await get(contentOf(id, copying) + new URL(video_url!).search)).status).toBe(404)
    const hidden = await copying.begin("hidden")
    await copying.call("DELETE", `/v1/videos/${hidden.id}`)
    await copying.rowWhen(hidden.id, ({ state }) => state === "completed")
    await expectSold(copying, hidden.id, 5, "reported")
    expect(readdirSync(folder)).not.toContain(`${hidden.id}.mp4`)
  })
})

async function untilStatus(url: string, status: number): Promise<void> {
  while ((await fetch(url)).status !== status) await Bun.sleep(50)
}

/** Has the job looked at at once. */
async function soon(id: string): Promise<void> {
  await scene.gateway.store.db
    .updateTable("jobs")
    .set({ next_look_at: BigInt(Date.now()) })
    .where("id", "=", id)
    .execute()
}
