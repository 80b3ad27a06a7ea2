import { beforeEach, describe, expect, test } from "bun:test"
import { standWith } from "../../testing/stand.ts"
import { seen, videoClient } from "../../testing/video-client.ts"
import { at, ended, key, lasting, videoVendors } from "../../testing/video-vendors.ts"

const stand = standWith("kling")

beforeEach(() => {
  for (const { name } of videoVendors) stand.simulator.vendor(name).reset()
})

describe.each(videoVendors)("$name", (vendor) => {
  const client = videoClient(stand, vendor)
  const house = () => stand.simulator.vendor(vendor.name)
  const wordOf = (body: unknown): unknown => (vendor.wordAt === null ? "" : (at(body, vendor.wordAt) ?? ""))

  test("a job waits, is worked on, and ends as told", async () => {
    const [waiting, working, done, failed] = vendor.words
    expect(wordOf((await client.outcome(lasting.queued)).body)).toBe(waiting)
    expect(wordOf((await client.outcome(lasting.running)).body)).toBe(working)
    expect(wordOf((await client.outcome(ended())).body)).toBe(done)
    expect(wordOf((await client.outcome(ended({ outcome: "failure" }))).body)).toBe(failed)
  })

  test("it moves on by the clock alone", async () => {
    const id = await client.begin({ kind: "video_job", queuedMs: 20, runningMs: 20 })
    await Bun.sleep(45)
    expect(wordOf((await client.look(id)).body)).toBe(vendor.words[2])
  })

  test("the film is a real one, of the length that was told", async () => {
    if (vendor.urlAt === null) return
    const { body } = await client.outcome(ended({ seconds: 7.25 }))
    const film = await fetch(String(at(body, vendor.urlAt)))
    expect([film.status, film.headers.get("content-type")]).toEqual([200, "video/mp4"])
    const bytes = Buffer.from(await film.arrayBuffer())
    const header = bytes.indexOf("mvhd")
    expect(bytes.readUInt32BE(header + 20) / bytes.readUInt32BE(header + 16)).toBe(7.25)
  })

  test("a success without an address, and an odd status, have no film", async () => {
    for (const outcome of ["no_url", "odd_status"] as const) {
      const { status, body } = await client.outcome(ended({ outcome }))
      expect(status).toBe(200)
      expect(JSON.stringify(body)).not.toContain("/cdn/")
    }
    const odd = wordOf((await client.outcome(ended({ outcome: "odd_status" }))).body)
    if (vendor.wordAt !== null) expect(vendor.words).not.toContain(odd)
  })

  test("words that were told come first, one for each poll", async () => {
    if (vendor.wordAt === null) return
    const id = await client.begin(ended({ words: ["Warming_Up", "Thinking"] }))
    const words = [await client.look(id), await client.look(id), await client.look(id)].map(({ body }) => wordOf(body))
    expect(words).toEqual(["Warming_Up", "Thinking", vendor.words[2]])
  })

  test("no key, another scheme and a foreign key are refused in the vendor's words, and nothing begins", async () => {
    const [path, body] = vendor.submit
    const url = `${stand.simulator.url}/${vendor.name}${path}`
    const [status, words] = vendor.refusal
    const ask = (headers: Record<string, string>) =>
      seen(url, { method: "POST", body: JSON.stringify(body), headers: { ...vendor.headers, ...headers } })
    expect((await ask({})).status).toBe(status)
    for (const other of ["Bearer ", "Token ", "Key "].filter((scheme) => scheme !== vendor.auth[1])) {
      expect((await ask({ authorization: other + key })).status).toBe(status)
    }
    house().expectKey("another")
    expect(await client.submit()).toMatchObject({ status, body: words })
    expect(house().memory.videos.size).toBe(0)
    expect(house().calls.every(({ answeredWith }) => answeredWith === "unauthorized")).toBe(true)
    house().expectKey(key)
    expect(await client.begin()).not.toBe("undefined")
  })

  test("an id that never was is told so", async () => {
    const id = await client.begin(lasting.queued)
    house().memory.videos.clear()
    const [status, body] = vendor.unknown
    expect(await client.look(id)).toMatchObject({ status, body })
  })

  test("a body that is not JSON is refused, and does not begin a job", async () => {
    const { status, body } = await client.send("POST", vendor.submit[0], undefined, {
      "content-type": "application/json",
    })
    expect(status === 200 ? at(body, "base_resp.status_code") : status).toBeOneOf([400, 404, 422, 2013])
    expect(house().memory.videos.size).toBe(0)
  })

  test("a submit can be answered with anything else, and is counted", async () => {
    const submit = { status: 429, json: { slow: "down" }, headers: { "retry-after": "3" } }
    const refused = await client.submit({ kind: "video_job", submit })
    expect([refused.status, refused.body, refused.headers.get("retry-after")]).toEqual([429, { slow: "down" }, "3"])
    expect(house().memory.videos.size).toBe(0)
    await client.submit(lasting.queued)
    expect([...house().memory.submits.values()]).toEqual([2])
  })

  test("a lost submit has begun a job all the same", async () => {
    expect(await client.submit({ ...lasting.queued, submit: "lost" }).catch(() => "lost")).toBe("lost")
    expect(house().memory.videos.size).toBe(1)
    expect(house().calls[0]).toMatchObject({ finished: true, bytesSent: 0 })
  })

  test("the first polls meet the faults they were told to", async () => {
    const id = await client.begin(ended({ polls: [{ kind: "status", status: 503 }, { kind: "html" }] }))
    expect((await client.look(id)).status).toBe(503)
    expect((await client.look(id)).status).toBe(502)
    expect(wordOf((await client.look(id)).body)).toBe(vendor.words[2])
  })

  test("another account finds nothing, where accounts are kept apart", async () => {
    const id = await client.begin(ended({ ownerOnly: true }))
    const [status, body] = vendor.unknown
    expect(await videoClient(stand, vendor, "another").look(id)).toMatchObject({ status, body })
    expect(wordOf((await client.look(id)).body)).toBe(vendor.words[2])
  })
})
