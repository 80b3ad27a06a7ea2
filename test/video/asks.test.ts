import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import { freshDatabase, slowStart } from "../store/engines.ts"
import { account, keyOf } from "../support/accounts.ts"
import { stopWithoutComplaint } from "../support/scene.ts"
import { endless, type JobView, planned, pngUrl, type VideoScene, videoScene } from "../support/video-scene.ts"

let simulator: Simulator
let scene: VideoScene

beforeAll(async () => {
  simulator = await startSimulator()
  scene = await videoScene(
    simulator,
    { kling: ["kling", "kling-v3"], runway: ["runway", "gen4_turbo"], listed: ["kling", "kling-v3"] },
    { accounts: [account("acme-too"), account("lister"), account("other")] },
  )
  for (const name of ["kling", "listed"]) scene.vendor(name).behave(endless)
})

afterAll(async () => {
  await scene.gateway.stop()
  await stopWithoutComplaint(simulator)
})

interface Refusal {
  readonly error: {
    readonly type: string
    readonly code: string
    readonly message: string
    readonly request_id: string
  }
}

describe("what cannot be asked for is 400 and names the field, and nothing is sent", () => {
  test.each([
    ["prompt", { prompt: undefined }],
    ["prompt", { prompt: null }],
    ["prompt", { prompt: "" }],
    ["prompt", { prompt: " \n" }],
    ["prompt", { prompt: 7 }],
    ["prompt", { prompt: ["a fox"] }],
    ["prompt", { prompt: "x".repeat(20_001) }],
    ["size", { size: "big" }],
    ["size", { size: "0x720" }],
    ["size", { size: "1280X720" }],
    ["size", { size: "1280x720 " }],
    ["size", { size: "-1x720" }],
    ["size", { size: "99999x1" }],
    ["size", { size: 720 }],
    ["size", { size: { width: 1, height: 1 } }],
    ["duration", { duration: 0 }],
    ["duration", { duration: -1 }],
    ["duration", { duration: 61 }],
    ["duration", { duration: 5.5 }],
    ["duration", { duration: "5" }],
    ["duration", { duration: true }],
    ["duration", { duration: 1e12 }],
    ["duration", { duration: [5] }],
    ["image_url", { image_url: "http://pictures.test/a.png" }],
    ["image_url", { image_url: "ftp://pictures.test/a.png" }],
    ["image_url", { image_url: "file:///etc/passwd" }],
    ["image_url", { image_url: "" }],
    ["image_url", { image_url: 7 }],
    ["image_url", { image_url: "data:text/html;base64,PGI+" }],
    ["image_url", { image_url: "data:image/png;base64,not base64!" }],
    ["image_url", { image_url: "data:image/png;base64,aGVsbG8=" }],
    ["image", { image: "fox.png" }],
    ["image", { image: { url: "https://pictures.test/a.png" } }],
    ["image", { image_url: pngUrl, image: "https://pictures.test/a.png" }],
    ["n", { n: 2 }],
    ["num_videos", { num_videos: 4 }],
    ["sampleCount", { sampleCount: -1 }],
  ])("%s in %j", async (field, body) => {
    const response = await scene.post("kling", body)
    const { error } = (await response.json()) as Refusal
    expect({ status: response.status, type: error.type, code: error.code }).toEqual({
      status: 400,
      type: "invalid_request_error",
      code: "invalid_parameter",
    })
    expect(error.message).toStartWith(`${field}: `)
    expect(error.request_id).toBe(response.headers.get("x-request-id")!)
    expect(scene.vendor("kling").calls).toEqual([])
  })

  test("a model that needs a picture says so", async () => {
    const response = await scene.post("runway")
    expect([response.status, ((await response.json()) as Refusal).error.message]).toEqual([
      400,
      "image_url: this model makes videos from a picture only; give it one",
    ])
  })

  test.each([
    ["invalid_json", "{"],
    ["invalid_json", "[]"],
    ["invalid_json", ""],
    ["missing_model", '{"prompt":"a fox"}'],
    ["missing_model", '{"model":7,"prompt":"a fox"}'],
    ["duplicate_key", '{"model":"kling","m\\u006fdel":"runway","prompt":"a fox"}'],
  ])("%s: %s", async (code, body) => {
    const headers = { authorization: `Bearer ${scene.gateway.key}`, "content-type": "application/json" }
    const response = await fetch(`${scene.gateway.url}/v1/videos`, { method: "POST", headers, body })
    expect([response.status, ((await response.json()) as Refusal).error.code]).toEqual([400, code])
  })

  test("a form, a model nobody has and one that makes no videos", async () => {
    const form = await fetch(`${scene.gateway.url}/v1/videos`, {
      method: "POST",
      headers: { authorization: `Bearer ${scene.gateway.key}` },
      body: new URLSearchParams({ model: "kling" }),
    })
    expect([400, 415]).toContain(form.status)
    const unknown = await scene.post("nobody-has-it")
    expect([unknown.status, ((await unknown.json()) as Refusal).error.code]).toEqual([404, "model_not_found"])
    expect(scene.vendor("kling").calls).toEqual([])
  })
})

test("null is as good as left out, both names of one picture are one, and other fields go along", async () => {
  const body = {
    size: null,
    duration: null,
    image: pngUrl,
    image_url: pngUrl,
    n: 1,
    cfg_scale: 0.5,
    callback_url: "https://x.test",
  }
  const response = await scene.post("kling", body)
  expect(response.status).toBe(200)
  const sent = JSON.parse(Buffer.from(scene.vendor("kling").calls.at(-1)!.body).toString())
  expect(sent).toMatchObject({ duration: "5", cfg_scale: 0.5 })
  expect(["callback_url", "n", "size", "mode"].filter((name) => name in sent)).toEqual([])
})

test("unknown, malformed and other people's ids have one answer, on every path", async () => {
  const { id } = await scene.begin("kling", endless)
  const foreign = keyOf("acme-too")
  const never = "01a1ddec-b2b2-76b0-8cb3-f657f7cda8a6"
  const strange = [
    "x",
    "0",
    id.toUpperCase(),
    `${id}x`,
    id.slice(1),
    "..%2f..",
    "%00",
    "a%20b",
    "'--",
    "%F0%9F",
    "x".repeat(5000),
  ]
  const asks: [string, string, string | undefined][] = []
  for (const method of ["GET", "DELETE"]) {
    for (const unknown of [never, ...strange]) asks.push([method, `/v1/videos/${unknown}`, undefined])
    asks.push([method, `/v1/videos/${id}`, foreign])
  }
  for (const unknown of [never, ...strange]) asks.push(["GET", `/v1/videos/${unknown}/content`, undefined])
  asks.push(["GET", `/v1/videos/${id}/content`, foreign])
  const answers = await Promise.all(
    asks.map(async ([method, path, key]) => {
      const response = await scene.call(method, path, key === undefined ? {} : { key })
      const requestId = response.headers.get("x-request-id")!
      const headers = [...response.headers.keys()].sort().join()
      return `${response.status} ${headers} ${(await response.text()).replaceAll(requestId, "ID")}`
    }),
  )
  expect(new Set(answers).size).toBe(1)
  expect(answers[0]).toStartWith("404 ")
  expect(answers[0]).toContain('"code":"job_not_found"')
  // It is there all the same, and as it was.
  expect((await scene.show(id)).status).toBe("queued")
})

test("paths and methods beside those that there are", async () => {
  const { id } = await scene.begin("kling", endless)
  for (const path of ["/v1/videos/", `/v1/videos/${id}/`, `/v1/videos/${id}/content/`, `/v1/videos/${id}/other`])
    expect([path, (await scene.call("GET", path)).status]).toEqual([path, 404])
  for (const [method, path, allow] of [
    ["PUT", "/v1/videos", "GET, HEAD, POST"],
    ["POST", `/v1/videos/${id}`, "GET, HEAD, DELETE"],
    ["DELETE", `/v1/videos/${id}/content`, "GET, HEAD"],
  ] as const) {
    const response = await scene.call(method, path)
    expect([response.status, response.headers.get("allow")]).toEqual([405, allow])
  }
  for (const path of ["/v1/videos", `/v1/videos/${id}`, `/v1/videos/${id}/content`]) {
    const response = await scene.call("GET", path, { key: null })
    expect([response.status, ((await response.json()) as Refusal).error.code]).toEqual([401, "invalid_api_key"])
  }
  const head = await scene.call("HEAD", `/v1/videos/${id}`)
  expect([head.status, await head.text()]).toEqual([200, ""])
})

interface Page {
  readonly object: string
  readonly data: readonly JobView[]
  readonly first_id: string | null
  readonly last_id: string | null
  readonly has_more: boolean
}

async function page(query: string, name = "lister"): Promise<Page> {
  const response = await scene.call("GET", `/v1/videos${query}`, { key: keyOf(name) })
  expect(response.status).toBe(200)
  return (await response.json()) as Page
}

test("the list: newest first, without gaps whatever comes meanwhile, and only the caller's", async () => {
  expect(await page("")).toEqual({ object: "list", data: [], first_id: null, last_id: null, has_more: false })
  const ids: string[] = []
  for (let at = 0; at < 25; at++)
    ids.unshift(((await (await scene.post("listed", {}, keyOf("lister"))).json()) as JobView).id)
  await scene.post("listed", {}, keyOf("other"))
  const first = await page("")
  expect(first.data.map(({ id }) => id)).toEqual(ids.slice(0, 20))
  expect(first).toMatchObject({ first_id: ids[0]!, last_id: ids[19]!, has_more: true })
  const found: string[] = []
  let query = "?limit=4"
  for (let pages = 0; pages < 10; pages++) {
    const { data, last_id, has_more } = await page(query)
    found.push(...data.map(({ id }) => id))
    // Newer ones do not move what is left.
    await scene.post("listed", {}, keyOf("lister"))
    if (!has_more) break
    query = `?limit=4&after=${last_id}`
  }
  expect(found).toEqual(ids)
  const [job] = (await page(`?limit=1&after=${ids[3]}`)).data
  expect(job).toEqual({
    id: ids[4]!,
    object: "video.generation.job",
    status: expect.stringMatching(/^(queued|in_progress)$/),
    model: "listed",
    created_at: expect.any(Number),
  })
  expect((await page("", "other")).data).toHaveLength(1)
})

test.each([
  ["limit", "?limit=0"],
  ["limit", "?limit=101"],
  ["limit", "?limit=-1"],
  ["limit", "?limit=ten"],
  ["limit", "?limit="],
  ["after", "?after=nobody"],
  ["after", "?after=%00"],
  ["after", "?after="],
])("a list cannot be asked for with that %s: %s", async (field, query) => {
  const response = await scene.call("GET", `/v1/videos${query}`)
  const { error } = (await response.json()) as Refusal
  expect([response.status, error.code]).toEqual([400, "invalid_parameter"])
  expect(error.message).toStartWith(`${field}: `)
})

test("after another account's job there is nothing to list", async () => {
  const [theirs] = (await page("", "lister")).data
  const response = await scene.call("GET", `/v1/videos?after=${theirs!.id}`, { key: keyOf("other") })
  expect(response.status).toBe(400)
})

test(
  "no text of the caller's is too odd for Postgres",
  async () => {
    const { target: database } = await freshDatabase("postgres")
    await using other = await videoScene(simulator, { kling: ["kling", "kling-v3"] }, { database })
    for (const path of ["?after=%00", "?after=%ED%A0%80", "?after=a%00b", "?limit=%00"])
      expect([path, (await other.call("GET", `/v1/videos${path}`)).status]).toEqual([path, 400])
    for (const path of ["%00", "%00/content", "%ED%A0%80"])
      expect([path, (await other.call("GET", `/v1/videos/${path}`)).status]).toEqual([path, 404])
    const { id } = await other.begin("kling", planned({ outcome: "failure", message: "no\u0000thing" }), {
      prompt: "a\u0000fox",
    })
    expect((await other.ended(id)).error?.message).toBe("nothing")
  },
  slowStart,
)
