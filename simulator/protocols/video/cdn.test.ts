import { expect, test } from "bun:test"
import { standWith } from "../../testing/stand.ts"
import { clientOf } from "../../testing/video-client.ts"
import { at, ended, type Plan, videoVendors } from "../../testing/video-vendors.ts"

const stand = standWith("xai")
const client = clientOf(stand, videoVendors, "xai")

/** The address of a film made as told. */
async function film(plan: Partial<Plan> = {}): Promise<string> {
  return String(at((await client.outcome(ended(plan))).body, "video.url"))
}

const get = (url: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(url, { headers, redirect: "manual" })

test("a film is served whole, and HEAD tells the same without it", async () => {
  const url = await film({ resultBytes: 100_000 })
  const whole = await get(url)
  const bytes = await whole.arrayBuffer()
  expect(bytes.byteLength).toBe(100_000)
  const head = await fetch(url, { method: "HEAD" })
  expect([head.status, await head.text()]).toEqual([200, ""])
  for (const name of ["content-type", "content-length", "accept-ranges", "etag", "last-modified"]) {
    expect([name, head.headers.get(name)]).toEqual([name, whole.headers.get(name)])
  }
  expect(whole.headers.get("content-length")).toBe("100000")
})

test.each([
  ["bytes=0-99", 0, 100],
  ["bytes=5000-5000", 5000, 5001],
  ["bytes=90000-", 90_000, 100_000],
  ["bytes=-700", 99_300, 100_000],
  ["bytes=99990-200000", 99_990, 100_000],
  ["bytes=-200000", 0, 100_000],
])("a part of it: %s", async (range, start, end) => {
  const url = await film({ resultBytes: 100_000, moov: "end" })
  const whole = Buffer.from(await (await get(url)).arrayBuffer())
  const part = await get(url, { range })
  expect(part.status).toBe(206)
  expect(part.headers.get("content-range")).toBe(`bytes ${start}-${end - 1}/100000`)
  expect(Buffer.from(await part.arrayBuffer()).equals(whole.subarray(start, end))).toBe(true)
})

test("a part that is not there is 416; a part of another file, or several parts, are the whole", async () => {
  const url = await film({ resultBytes: 100_000 })
  for (const range of ["bytes=100000-", "bytes=-0", "bytes=7-3"]) {
    const refused = await get(url, { range })
    expect([refused.status, refused.headers.get("content-range")]).toEqual([416, "bytes */100000"])
  }
  const { headers } = await get(url)
  const tag = headers.get("etag") ?? ""
  expect((await get(url, { range: "bytes=0-1", "if-range": tag })).status).toBe(206)
  expect((await get(url, { range: "bytes=0-1", "if-range": '"other"' })).status).toBe(200)
  expect((await get(url, { range: "bytes=0-1,4-5" })).status).toBe(200)
  expect((await get(url, { "if-none-match": tag })).status).toBe(304)
})

test("an address dies when its time is over, and an unknown one never lived", async () => {
  expect((await get(await film({ resultLivesMs: 60_000 }))).status).toBe(200)
  const dead = await film({ resultLivesMs: 0 })
  expect((await get(dead)).status).toBe(403)
  const head = await fetch(dead, { method: "HEAD" })
  expect([head.status, await head.text()]).toEqual([403, ""])
  expect((await get(dead.replace(/\/cdn\/\w+/, "/cdn/none"))).status).toBe(404)
})

test("a key, redirects, another host and faults are as told", async () => {
  const locked = await film({ file: { needsKey: true } })
  expect((await get(locked)).status).toBe(403)
  expect((await get(locked, { authorization: "Bearer x" })).status).toBe(200)
  const far = await film({ file: { redirects: 2 }, resultLivesMs: 60_000 })
  expect((await get(far)).status).toBe(302)
  const followed = await fetch(far)
  expect([followed.status, followed.headers.get("content-type")]).toEqual([200, "video/mp4"])
  expect((await get(await film({ file: { redirectTo: "http://127.0.0.1:9/x" } }))).headers.get("location")).toBe(
    "http://127.0.0.1:9/x",
  )
  expect(await film({ file: { host: "localhost" } })).toStartWith(`http://localhost:${stand.simulator.port}/`)
  expect((await get(await film({ file: { fault: { kind: "status", status: 500 } } }))).status).toBe(500)
  expect((await get(await film({ file: { contentType: "text/html" } }))).headers.get("content-type")).toBe("text/html")
})
