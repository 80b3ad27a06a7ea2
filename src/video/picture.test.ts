import { afterAll, afterEach, describe, expect, test } from "bun:test"
import { createServer, type RequestListener, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { gzipSync } from "node:zlib"
import { GatewayError } from "../core/errors.ts"
import { mebibyte } from "../lib/bytes.ts"
import { type PictureParts, pictureFor } from "./picture.ts"

const most = 20 * mebibyte
const png = Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "latin1")
const jpeg = Buffer.from("\xff\xd8\xff\xe0\0\x10JFIF", "latin1")
const anyWay = { byUrl: true, byData: true }
const onlyData = { byUrl: false, byData: true }
const onlyUrl = { byUrl: true, byData: false }

function pngOf(bytes: number): Buffer {
  return Buffer.concat([png], bytes)
}

const servers: Server[] = []
const seen: string[] = []
afterEach(() => seen.splice(0))
afterAll(() => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
})

/** The base address of a server of pictures that answers in this way. */
async function serving(answer: RequestListener): Promise<string> {
  const server = createServer((request, response) => {
    seen.push(request.url!)
    answer(request, response)
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function servingOnce(type: string | null, body: Uint8Array, headers: Record<string, string> = {}): Promise<string> {
  return serving((_, response) => {
    response.writeHead(200, { ...(type === null ? {} : { "content-type": type }), ...headers })
    response.end(body)
  })
}

function picture(image: string, takes = onlyData, parts: Partial<PictureParts> = {}) {
  return pictureFor(image, takes, { allowPrivateAddresses: true, signal: new AbortController().signal, ...parts })
}

/** The refusal's text; whatever else is thrown goes on. No refusal may name an address of ours. */
async function refusal(asked: Promise<unknown>): Promise<string> {
  const error = await asked.then(
    () => null,
    (problem: unknown) => problem,
  )
  if (!(error instanceof GatewayError)) throw error ?? new Error("it was not refused")
  expect([error.status, error.code]).toEqual([400, "invalid_parameter"])
  expect(error.message).not.toMatch(/\d+\.\d+\.\d+\.\d+|::/)
  return error.message
}

const notThere =
  "image_url: the picture could not be fetched: nothing answers, or the address or one that it redirects to is no public https address"
const tooLarge = "image_url: the picture is larger than 20 MiB"
const kinds = "(image/png, image/jpeg, image/webp, image/gif, image/bmp, image/tiff, image/avif, image/heic)"

describe("an address", () => {
  test("goes to a vendor that takes addresses as it is, unasked", async () => {
    const base = await servingOnce("image/png", png)
    for (const takes of [anyWay, onlyUrl]) {
      expect(await picture(`${base}/fox.png`, takes)).toEqual({ url: `${base}/fox.png` })
    }
    expect(seen).toEqual([])
  })

  test("is fetched for a vendor that takes data only", async () => {
    const base = await servingOnce("image/png", png)
    const expected = { mediaType: "image/png", base64: png.toString("base64") }
    expect(await picture(`${base}/fox.png?size=1`)).toEqual(expected)
    expect(seen).toEqual(["/fox.png?size=1"])
  })

  test("is of no use to a vendor that takes no pictures", async () => {
    const message = await refusal(picture("https://pictures.test/fox.png", { byUrl: false, byData: false }))
    expect(message).toBe("image_url: this model takes no picture")
  })

  test("that leads inside is not asked, nor told from one that is not there", async () => {
    const base = await servingOnce("image/png", png)
    const { port } = new URL(base)
    const strict = { allowPrivateAddresses: false, resolve: async () => ["127.0.0.1"] }
    for (const address of [
      `${base}/`,
      `https://127.0.0.1:${port}/`,
      `https://[::1]:${port}/`,
      "https://inside.test/",
    ]) {
      expect(await refusal(picture(address, onlyData, strict))).toBe(notThere)
    }
    const unknown = { ...strict, resolve: () => Promise.reject(new Error("ENOTFOUND")) }
    expect(await refusal(picture("https://nowhere.test/", onlyData, unknown))).toBe(notThere)
    expect(await refusal(picture("http://127.0.0.1:1/"))).toBe(notThere)
    expect(await refusal(picture(base.replace("//", "//user:secret@")))).toBe(notThere)
    expect(seen).toEqual([])
  })

  test("is followed where it redirects, within the same bounds", async () => {
    const there = await servingOnce("image/png", png)
    const base = await serving((request, response) => {
      const to = new URL(request.url!, "http://x").searchParams.get("to")!
      response.writeHead(302, { location: to }).end()
    })
    const away = (to: string): string => `${base}/?to=${encodeURIComponent(to)}`
    expect(await picture(away(`${there}/fox.png`))).toMatchObject({ mediaType: "image/png" })
    expect(await picture(away(away(away(`${there}/fox.png`))))).toMatchObject({ mediaType: "image/png" })
    const wrong = ["file:///etc/passwd", "ftp://x.test/", "http://a:b@x.test/", "http://[", away(away(away(there)))]
    for (const to of wrong) expect(await refusal(picture(away(to)))).toBe(notThere)
  })

  test.each([404, 403, 500, 304])("that answers %i is told so", async (status) => {
    const base = await serving((_, response) => response.writeHead(status, { "content-type": "image/png" }).end())
    expect(await refusal(picture(base))).toBe(
      `image_url: the picture could not be fetched: its address answers ${status}`,
    )
  })

  test("that breaks off in the middle is no picture", async () => {
    const base = await serving((_, response) => {
      response.writeHead(200, { "content-type": "image/png", "content-length": "1000" })
      response.write(png, () => response.destroy())
    })
    expect(await refusal(picture(base))).toBe("image_url: the picture could not be fetched: the connection broke off")
  })
})

describe("what an address answers with", () => {
  test.each([
    ["text/html; charset=utf-8", 'with "text/html; charset=utf-8"'],
    ["image/svg+xml", 'with "image/svg+xml"'],
    ["application/octet-stream", 'with "application/octet-stream"'],
    [null, "without a content-type"],
  ])("%p is not taken for a picture, whatever the bytes are", async (type, found) => {
    const message = await refusal(picture(await servingOnce(type, png)))
    expect(message).toBe(`image_url: the address answers ${found}, not with a picture ${kinds}`)
  })

  test.each([
    ["a page", Buffer.from("<html>")],
    ["another kind of picture", jpeg],
    ["nothing", Buffer.alloc(0)],
  ])("is no picture where its type is and its bytes are %s", async (_, body) => {
    const message = await refusal(picture(await servingOnce("image/png", body)))
    expect(message).toBe("image_url: the address answers with something else than the image/png it names")
  })

  test("goes on under the proper name of its type", async () => {
    const expected = { mediaType: "image/jpeg", base64: jpeg.toString("base64") }
    expect(await picture(await servingOnce("image/JPG; q=1", jpeg))).toEqual(expected)
  })

  test("is refused unread where it says that it is too large", async () => {
    const base = await serving((_, response) => {
      response.writeHead(200, { "content-type": "image/png", "content-length": String(most + 1) })
      // Nothing follows: whoever waits for it waits too long.
      response.write(png)
    })
    expect(await refusal(picture(base))).toBe(tooLarge)
  })

  test("is read no further than the limit where it does not say", async () => {
    const base = await serving((_, response) => {
      response.writeHead(200, { "content-type": "image/png" })
      response.write(pngOf(most + 1))
    })
    expect(await refusal(picture(base))).toBe(tooLarge)
  })

  test("is measured as it comes out, not as it was packed", async () => {
    const packed = gzipSync(pngOf(most + 1))
    expect(await refusal(picture(await servingOnce("image/png", packed, { "content-encoding": "gzip" })))).toBe(
      tooLarge,
    )
  })

  test("may be as large as the limit", async () => {
    const body = pngOf(most)
    const found = await picture(await servingOnce("image/png", body))
    expect("base64" in found && Buffer.from(found.base64, "base64").equals(body)).toBe(true)
  })
})

describe("whoever waits", () => {
  const soon = { patienceMs: 50 }
  const late = "image_url: the picture did not arrive within 0.05 seconds"

  test("does not wait for ever: for the answer, for its end, or for the name", async () => {
    const silent = await serving(() => {})
    const endless = await serving((_, response) => {
      response.writeHead(200, { "content-type": "image/png" })
      response.write(png)
    })
    expect(await refusal(picture(silent, onlyData, soon))).toBe(late)
    expect(await refusal(picture(endless, onlyData, soon))).toBe(late)
    const resolve = () => new Promise<never>(() => {})
    expect(await refusal(picture("https://slow.test/", onlyData, { ...soon, resolve }))).toBe(late)
  })

  test("and leaves hears no refusal, but why it left", async () => {
    const gone = new Error("the caller is gone")
    const leaving = new AbortController()
    const base = await serving(() => leaving.abort(gone))
    await expect(picture(base, onlyData, { signal: leaving.signal })).rejects.toBe(gone)
    await expect(picture(base, onlyData, { signal: leaving.signal })).rejects.toBe(gone)
    expect(seen).toHaveLength(1)
  })
})

describe("data", () => {
  const dataUrl = (bytes: Buffer, type = "image/png"): string => `data:${type};base64,${bytes.toString("base64")}`

  test("goes to a vendor that takes data, under the name that its bytes have", async () => {
    for (const takes of [anyWay, onlyData]) {
      expect(await picture(dataUrl(png), takes)).toEqual({ mediaType: "image/png", base64: png.toString("base64") })
      const wronglyNamed = await picture(dataUrl(jpeg, "image/png"), takes)
      expect(wronglyNamed).toEqual({ mediaType: "image/jpeg", base64: jpeg.toString("base64") })
    }
  })

  test("is refused where the vendor takes addresses only", async () => {
    expect(await refusal(picture(dataUrl(png), onlyUrl))).toBe(
      "image_url: this model takes a picture by its https URL only, not as data",
    )
  })

  test.each([
    "iVBORw0KGgo", // Without its padding.
    "iVBORw0KGgo==",
    "iVBORw0KGgp=", // Bits that belong to nothing.
    "iVBO Rw0KGgo=",
    "iVBORw0KGgo%3D",
    "iVBORw0-Ggo=",
    "!",
  ])("%s is not base64", async (base64) => {
    const message = await refusal(picture(`data:image/png;base64,${base64}`))
    expect(message).toBe("image_url: the data URL is not valid base64 (with its padding)")
  })

  test("that is no picture is refused, whatever it is called", async () => {
    for (const body of ["", "<svg/>", "<html>"]) {
      const message = await refusal(picture(dataUrl(Buffer.from(body), "image/svg+xml")))
      expect(message).toBe(`image_url: the data is no picture of a known kind ${kinds}`)
    }
  })

  test("may be as large as the limit and no larger", async () => {
    expect(await picture(dataUrl(pngOf(most)))).toMatchObject({ mediaType: "image/png" })
    for (const bytes of [most + 1, most + 3]) expect(await refusal(picture(dataUrl(pngOf(bytes))))).toBe(tooLarge)
  })
})
