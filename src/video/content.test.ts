import { afterAll, beforeEach, describe, expect, test } from "bun:test"
import { mkdtemp, rm } from "node:fs/promises"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { filmBytes, startCutFilm, startFilmVendor } from "../../test/support/film-vendor.ts"
import { GatewayError } from "../core/errors.ts"
import { listen } from "../http/server.ts"
import { mayCarryCredential } from "../vendors/hosts.ts"
import { type ContentJob, type ContentParts, contentResponse } from "./content.ts"
import { folderResults } from "./results-folder.ts"

const id = "0190a0b0-0000-7000-8000-00000000000a"
const film = filmBytes(1_000_003)
const vendor = startFilmVendor(film, "Bearer sk-vendor")
const cut = await startCutFilm()
const folder = await mkdtemp(join(tmpdir(), "tollgate-content-"))
const results = await folderResults(folder)
const at = (host: string, path: string): string => `http://${host}:${vendor.port}${path}`
const home = at("vendor.invalid", "/v1")

const usualJob: ContentJob = {
  id,
  state: "completed",
  resultUrl: at("vendor.invalid", "/film.mp4"),
  resultNeedsCredential: false,
  resultKept: false,
  route: { baseUrl: home },
}

let renewals = 0
const usualParts: ContentParts = {
  results,
  allowPrivateAddresses: true,
  credentialFor: (job, url) =>
    mayCarryCredential(url.href, job.route.baseUrl, []) ? { authorization: "Bearer sk-vendor" } : null,
  async renew() {
    renewals++
    return null
  },
  resolve: async () => ["127.0.0.1"],
}

let job = usualJob
let parts = usualParts
/** The gateway's side: real HTTP, with errors as plain text. */
const gateway = listen("127.0.0.1", 0, async (request) => {
  const method = request.method === "HEAD" ? "HEAD" : "GET"
  const ask = { method, range: request.headers.get("range"), signal: request.signal } as const
  try {
    return await contentResponse(job, ask, parts)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return new Response(`${error.code}: ${error.message}`, { status: error.status })
  }
})
beforeEach(async () => {
  job = usualJob
  parts = usualParts
  renewals = 0
  vendor.calls.length = 0
  await results.delete(id)
})
afterAll(async () => {
  await Promise.all([gateway.stop(true), vendor.stop()])
  cut.stop()
  await rm(folder, { recursive: true, force: true })
})

function content(range?: string, method = "GET"): Promise<Response> {
  return fetch(gateway.url, { method, headers: range === undefined ? {} : { range } })
}

async function isFilm(response: Response, start = 0, end = film.length): Promise<boolean> {
  return Buffer.from(await response.bytes()).equals(film.subarray(start, end))
}

async function keepCopy(): Promise<void> {
  await results.put(id, new Blob([film]).stream(), "video/mp4")
  job = { ...usualJob, resultKept: true, resultUrl: at("vendor.invalid", "/status?code=404") }
}

const ranges = [
  ["bytes=0-0", 0, 1],
  ["bytes=500000-500999", 500_000, 501_000],
  ["bytes=1000000-", 1_000_000, 1_000_003],
  ["bytes=-10", 999_993, 1_000_003],
] as const

describe.each(["vendor", "copy"])("from the %s", (source) => {
  beforeEach(async () => {
    if (source === "copy") await keepCopy()
  })

  test("all of it, with what a player needs and nothing of the vendor's besides", async () => {
    const response = await content()
    expect(response.status).toBe(200)
    expect(
      [...response.headers.keys()].filter((name) => !/^(date|content-length|transfer-encoding)$/.test(name)).sort(),
    ).toEqual([
      "accept-ranges",
      "content-disposition",
      "content-type",
      "etag",
      "last-modified",
      "x-content-type-options",
    ])
    expect(response.headers.get("content-type")).toBe("video/mp4")
    expect(response.headers.get("content-disposition")).toBe(`inline; filename="${id}.mp4"`)
    expect(await isFilm(response)).toBeTrue()
    expect(vendor.calls).toHaveLength(source === "copy" ? 0 : 1)
  })

  test.each([...ranges])("the part %s", async (range, start, end) => {
    const response = await content(range)
    expect(response.status).toBe(206)
    expect(response.headers.get("content-range")).toBe(`bytes ${start}-${end - 1}/${film.length}`)
    expect(await isFilm(response, start, end)).toBeTrue()
  })

  test("no part beyond its end", async () => {
    const response = await content("bytes=1000003-")
    expect(response.status).toBe(416)
    expect(response.headers.get("content-range")).toBe(`bytes */${film.length}`)
    expect(await response.text()).toBe("")
  })

  test("what is no range is as none, and does not reach the vendor", async () => {
    const response = await content("bytes=9-1, x")
    expect(response.status).toBe(200)
    expect(await isFilm(response)).toBeTrue()
    expect(vendor.calls.filter(({ range }) => range !== null)).toEqual([])
  })

  test("HEAD: how long it is, and no body", async () => {
    const whole = await content(undefined, "HEAD")
    expect(whole.status).toBe(200)
    expect(whole.headers.get("content-length")).toBe(String(film.length))
    expect(whole.headers.get("accept-ranges")).toBe("bytes")
    expect(await whole.text()).toBe("")
    const part = await content("bytes=5-9", "HEAD")
    expect(part.status).toBe(206)
    expect(part.headers.get("content-range")).toBe(`bytes 5-9/${film.length}`)
    expect(part.headers.get("content-length")).toBe("5")
  })
})

describe("the copy", () => {
  test("is sent with its length", async () => {
    await keepCopy()
    expect((await content()).headers.get("content-length")).toBe(String(film.length))
    expect((await content("bytes=1-5")).headers.get("content-length")).toBe("5")
  })

  test("that is gone, or cannot be read, is no reason not to ask the vendor", async () => {
    job = { ...usualJob, resultKept: true }
    expect(await isFilm(await content())).toBeTrue()
    parts = { ...usualParts, results: { ...results, open: () => Promise.reject(new Error("bucket away")) } }
    expect(await isFilm(await content())).toBeTrue()
    parts = { ...usualParts, results: null }
    expect(await isFilm(await content())).toBeTrue()
  })
})

describe("the vendor's credential", () => {
  const authorizations = () => vendor.calls.map(({ host, authorization }) => [host, authorization])

  test("opens an address that needs it, and is not shown to the caller", async () => {
    job = { ...usualJob, resultUrl: at("vendor.invalid", "/closed"), resultNeedsCredential: true }
    const response = await content("bytes=1-9")
    expect(response.status).toBe(206)
    expect(JSON.stringify(response.headers.toJSON())).not.toContain("sk-vendor")
    expect(await isFilm(response, 1, 10)).toBeTrue()
  })

  test("does not go along where none is needed", async () => {
    await (await content()).bytes()
    expect(authorizations()).toEqual([["vendor.invalid", null]])
  })

  test("never goes to a foreign host, neither at once nor after a redirect", async () => {
    job = { ...usualJob, resultUrl: at("stranger.invalid", "/film.mp4"), resultNeedsCredential: true }
    await (await content()).bytes()
    const to = encodeURIComponent(at("stranger.invalid", "/film.mp4"))
    job = { ...usualJob, resultUrl: at("vendor.invalid", `/away?to=${to}`), resultNeedsCredential: true }
    expect(await isFilm(await content())).toBeTrue()
    expect(authorizations()).toEqual([
      ["stranger.invalid", null],
      ["vendor.invalid", "Bearer sk-vendor"],
      ["stranger.invalid", null],
    ])
  })
})

describe("addresses that may not be fetched", () => {
  test("inside, though a vendor names them or redirects there", async () => {
    parts = { ...usualParts, allowPrivateAddresses: false }
    job = { ...usualJob, resultUrl: at("inside.invalid", "/film.mp4") }
    expect(await (await content()).text()).toBe(
      "upstream_error: the vendor's address of this result may not be fetched",
    )
    const to = encodeURIComponent("https://inside.invalid/film.mp4")
    job = { ...usualJob, resultUrl: at("vendor.invalid", `/away?to=${to}`), resultNeedsCredential: true }
    const response = await content()
    expect(response.status).toBe(502)
    expect(await response.text()).toBe("upstream_error: the vendor's address of this result may not be fetched")
    expect(vendor.calls.map(({ host, path }) => host + path)).toEqual(["vendor.invalid/away"])
  })
})

describe("an address that has expired", () => {
  const gone = "upstream_error: the vendor no longer has this result"

  test.each([400, 401, 403, 404, 410])("%i: the vendor is asked once for another", async (code) => {
    job = { ...usualJob, resultUrl: at("vendor.invalid", `/status?code=${code}`) }
    parts = { ...usualParts, renew: async () => at("vendor.invalid", "/fresh.mp4") }
    const response = await content("bytes=7-9")
    expect(response.status).toBe(206)
    expect(await isFilm(response, 7, 10)).toBeTrue()
    expect(vendor.calls.map(({ path }) => path)).toEqual(["/status", "/fresh.mp4"])
  })

  test("the vendor has no other: 502, asked once", async () => {
    job = { ...usualJob, resultUrl: at("vendor.invalid", "/status?code=403") }
    const response = await content()
    expect([response.status, await response.text(), renewals]).toEqual([502, gone, 1])
  })

  test("the other has expired, too: 502, and no third is asked for", async () => {
    job = { ...usualJob, resultUrl: at("vendor.invalid", "/status?code=403") }
    parts = {
      ...usualParts,
      renew: async () => {
        renewals++
        return at("vendor.invalid", "/status?code=404")
      },
    }
    const response = await content()
    expect([response.status, await response.text(), renewals]).toEqual([502, gone, 1])
    expect(vendor.calls).toHaveLength(2)
  })

  test("none at all: the vendor is asked for one", async () => {
    job = { ...usualJob, resultUrl: null }
    parts = { ...usualParts, renew: async () => at("vendor.invalid", "/fresh.mp4") }
    expect(await isFilm(await content())).toBeTrue()
  })

  test("one that is good for GET alone has not: HEAD is answered by it all the same", async () => {
    job = { ...usualJob, resultUrl: at("vendor.invalid", "/signed-for-get") }
    const response = await content(undefined, "HEAD")
    expect([response.status, response.headers.get("content-length"), renewals]).toEqual([200, String(film.length), 0])
    expect(vendor.calls.map(({ method }) => method)).toEqual(["HEAD", "GET"])
  })
})

describe("odd vendors", () => {
  test.each([500, 503, 304, 204])("%i is no result, and no reason to ask for another address", async (code) => {
    job = { ...usualJob, resultUrl: at("vendor.invalid", `/status?code=${code}`) }
    const response = await content()
    expect(response.status).toBe(502)
    expect(await response.text()).toBe("upstream_error: the vendor's address of this result does not give it")
    expect(renewals).toBe(0)
  })

  test("nothing answers: 502", async () => {
    job = { ...usualJob, resultUrl: "http://127.0.0.1:9/film.mp4" }
    const response = await content()
    expect(response.status).toBe(502)
    expect(await response.text()).toBe("upstream_unreachable: the vendor's address of this result cannot be reached")
  })

  test("a page is never shown as one", async () => {
    job = { ...usualJob, resultUrl: at("vendor.invalid", "/page") }
    const { headers } = await content()
    expect(headers.get("content-type")).toBe("application/octet-stream")
    expect(headers.get("x-content-type-options")).toBe("nosniff")
  })

  test("a store that ignores ranges gives all of it", async () => {
    job = { ...usualJob, resultUrl: at("vendor.invalid", "/deaf") }
    const response = await content("bytes=5-9")
    expect(response.status).toBe(200)
    expect(await isFilm(response)).toBeTrue()
  })

  test("a store that packs what nobody asked it to: the film comes out, without a length that is not its own", async () => {
    job = { ...usualJob, resultUrl: at("vendor.invalid", "/packed") }
    expect(await isFilm(await content())).toBeTrue()
    const { signal } = new AbortController()
    const answered = await contentResponse(job, { method: "GET", range: null, signal }, parts)
    expect([answered.headers.get("content-length"), answered.headers.get("accept-ranges")]).toEqual([null, null])
    await answered.body?.cancel()
  })

  test("one that breaks off: so does the answer, instead of ending as if it were whole", async () => {
    job = { ...usualJob, resultUrl: cut.url }
    await expect(content().then((response) => response.bytes())).rejects.toThrow()
  })

  test("one that never answers is given up", async () => {
    job = { ...usualJob, resultUrl: at("vendor.invalid", "/never") }
    parts = { ...usualParts, limits: { answerMs: 50, silenceMs: 50 } }
    expect((await content()).status).toBe(502)
  })

  test("one that falls silent is given up, and the answer breaks off", async () => {
    job = { ...usualJob, resultUrl: at("vendor.invalid", "/silent") }
    parts = { ...usualParts, limits: { answerMs: 5000, silenceMs: 50 } }
    await expect(content().then((response) => response.bytes())).rejects.toThrow()
  })

  test("a job without a result has no content", async () => {
    job = { ...usualJob, state: "in_progress" }
    expect((await content()).status).toBe(404)
  })
})

async function until(isSo: () => boolean): Promise<void> {
  const end = Date.now() + 5000
  while (!isSo() && Date.now() < end) await Bun.sleep(5)
}

/** Waits until the vendor has not sent anything for a while. */
async function blocksAtRest(): Promise<number> {
  let before = -1
  for (let waited = 0; before !== vendor.endless.blocks && waited < 20; waited++) {
    before = vendor.endless.blocks
    await Bun.sleep(200)
  }
  return vendor.endless.blocks
}

test("a slow reader holds the vendor back, and one that leaves ends the vendor's call", async () => {
  job = { ...usualJob, resultUrl: at("vendor.invalid", "/endless") }
  const left = vendor.endless.left
  const socket = connect(gateway.port, "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n"))
  let read = 0
  socket.on("data", (bytes) => {
    read += bytes.length
    if (read > 1_000_000) socket.pause()
  })
  await until(() => read > 1_000_000)
  // Once the buffers in between are full nothing more is sent, and on goes the film when the reader does.
  const held = await blocksAtRest()
  expect(held).toBeLessThan(1000)
  socket.resume()
  socket.removeAllListeners("data")
  socket.on("data", () => {})
  await until(() => vendor.endless.blocks > held + 100)
  expect(vendor.endless.blocks).toBeGreaterThan(held + 100)
  socket.destroy()
  await until(() => vendor.endless.left > left)
  expect(vendor.endless.left).toBe(left + 1)
})

describe("the vendor's call ends", () => {
  async function begun(signal: AbortSignal) {
    job = { ...usualJob, resultUrl: at("vendor.invalid", "/endless") }
    const reader = (await contentResponse(job, { method: "GET", range: null, signal }, parts)).body!.getReader()
    await reader.read()
    return reader
  }

  test("with the caller's signal alone", async () => {
    const left = vendor.endless.left
    const caller = new AbortController()
    const reader = await begun(caller.signal)
    caller.abort()
    await until(() => vendor.endless.left > left)
    expect(vendor.endless.left).toBe(left + 1)
    await reader.cancel().catch(() => {})
  })

  test("with the end of the body alone", async () => {
    const left = vendor.endless.left
    await (await begun(new AbortController().signal)).cancel()
    await until(() => vendor.endless.left > left)
    expect(vendor.endless.left).toBe(left + 1)
  })
})
