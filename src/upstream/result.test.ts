import { afterAll, beforeEach, describe, expect, test } from "bun:test"
import { version } from "../version.ts"
import { Unreachable } from "./client.ts"
import { Forbidden } from "./guard.ts"
import { openResult, type ResultAsk } from "./result.ts"

interface Seen {
  readonly host: string
  readonly path: string
  readonly method: string
  readonly headers: Record<string, string>
}

const seen: Seen[] = []
const film = Buffer.from("0123456789")
/** Serves a film with ranges at any path; `/away` sends to the address in its query, `/round` in a circle. */
function answer(request: Request): Response {
  const { pathname, searchParams } = new URL(request.url)
  seen.push({
    host: request.headers.get("host") ?? "",
    path: pathname,
    method: request.method,
    headers: request.headers.toJSON(),
  })
  if (pathname === "/away") return Response.redirect(searchParams.get("to")!, 302)
  if (pathname === "/round") return new Response(null, { status: 307, headers: { location: "/round" } })
  if (pathname === "/status") return new Response("no", { status: Number(searchParams.get("code")) })
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get("range") ?? "")
  if (range === null) return new Response(film)
  const part = film.subarray(Number(range[1]), Number(range[2]) + 1)
  return new Response(part, { status: 206, headers: { "content-range": `bytes ${range[1]}-${range[2]}/10` } })
}
const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: answer })
afterAll(() => server.stop(true))
beforeEach(() => {
  seen.length = 0
})

/** Every name leads to the server here. */
const resolve = async (): Promise<readonly string[]> => ["127.0.0.1"]
const at = (host: string, path = "/film.mp4"): string => `http://${host}:${server.port}${path}`
const away = (host: string, to: string): string => at(host, `/away?to=${encodeURIComponent(to)}`)

function ask(address: string, more: Partial<ResultAsk> = {}): ResultAsk {
  const signal = AbortSignal.timeout(10_000)
  return { address, method: "GET", range: null, credential: () => null, allowPrivate: true, signal, resolve, ...more }
}

/** The vendor's own host and no other may see the credential. */
const credential = (url: URL): Record<string, string> | null =>
  url.hostname === "vendor.invalid" ? { authorization: "Bearer sk-vendor" } : null

describe("what is asked", () => {
  test("the range goes along, nothing is to be compressed, and the answer is passed as it is", async () => {
    const response = await openResult(ask(at("vendor.invalid"), { range: "bytes=2-4" }))
    expect(response.status).toBe(206)
    expect(response.headers.get("content-range")).toBe("bytes 2-4/10")
    expect(await response.text()).toBe("234")
    const { host: _, connection: __, ...headers } = seen[0]!.headers
    expect(headers).toEqual({
      accept: "*/*",
      "accept-encoding": "identity",
      range: "bytes=2-4",
      "user-agent": `tollgate/${version}`,
    })
  })

  test("HEAD is HEAD", async () => {
    const response = await openResult(ask(at("vendor.invalid"), { method: "HEAD" }))
    expect(response.headers.get("content-length")).toBe("10")
    expect(seen[0]!.method).toBe("HEAD")
  })

  test.each([403, 404, 410, 416, 500])("%i is an answer, not an error", async (code) => {
    expect((await openResult(ask(at("vendor.invalid", `/status?code=${code}`)))).status).toBe(code)
  })
})

describe("the credential", () => {
  const authorizations = () => seen.map(({ host, headers }) => [host.split(":")[0], headers.authorization ?? null])

  test("goes where it may", async () => {
    await openResult(ask(at("vendor.invalid"), { credential }))
    expect(authorizations()).toEqual([["vendor.invalid", "Bearer sk-vendor"]])
  })

  test("never goes to a stranger", async () => {
    await openResult(ask(at("stranger.invalid"), { credential }))
    expect(authorizations()).toEqual([["stranger.invalid", null]])
  })

  test("stays behind when the vendor redirects to a stranger", async () => {
    const response = await openResult(ask(away("vendor.invalid", at("stranger.invalid")), { credential }))
    expect(await response.text()).toBe("0123456789")
    expect(authorizations()).toEqual([
      ["vendor.invalid", "Bearer sk-vendor"],
      ["stranger.invalid", null],
    ])
  })

  test("goes along again only on the hop that leads back to the vendor", async () => {
    await openResult(ask(away("stranger.invalid", at("vendor.invalid")), { credential }))
    expect(authorizations()).toEqual([
      ["stranger.invalid", null],
      ["vendor.invalid", "Bearer sk-vendor"],
    ])
  })
})

describe("where it may be asked", () => {
  test("not inside", async () => {
    const inside = openResult(ask(`https://inside.invalid/x`, { allowPrivate: false }))
    await expect(inside).rejects.toBeInstanceOf(Forbidden)
    expect(seen).toEqual([])
  })

  test("not inside after a redirect either, though the first address was the operator's own", async () => {
    const more = { allowPrivate: false, home: at("vendor.invalid", "/v1") }
    await expect(openResult(ask(away("vendor.invalid", at("other.invalid")), more))).rejects.toThrow(
      "only https addresses are fetched",
    )
    const secure = away("vendor.invalid", `https://other.invalid:${server.port}/x`)
    await expect(openResult(ask(secure, more))).rejects.toThrow("other.invalid is not a public address")
    const sameHost = away("vendor.invalid", "http://vendor.invalid:1/x")
    await expect(openResult(ask(sameHost, more))).rejects.toBeInstanceOf(Forbidden)
    expect(seen.map(({ host, path }) => host + path)).toEqual(
      Array.from({ length: 3 }, () => `vendor.invalid:${server.port}/away`),
    )
  })

  test("at the operator's own upstream, wherever it is", async () => {
    const more = { allowPrivate: false, home: at("vendor.invalid", "/v1") }
    expect((await openResult(ask(at("vendor.invalid"), more))).status).toBe(200)
  })

  test("where the name led when it was checked: it is looked up once for each hop", async () => {
    const asked: string[] = []
    const turning = async (host: string): Promise<readonly string[]> => {
      asked.push(host)
      // Whoever asks a second time is led elsewhere.
      return asked.filter((name) => name === host).length === 1 ? ["127.0.0.1"] : ["127.0.0.9"]
    }
    const address = away("first.invalid", at("second.invalid"))
    expect(await (await openResult(ask(address, { resolve: turning }))).text()).toBe("0123456789")
    expect(asked).toEqual(["first.invalid", "second.invalid"])
  })

  test("three redirects and no more", async () => {
    const third = away("c.invalid", at("d.invalid"))
    expect((await openResult(ask(away("a.invalid", away("b.invalid", third))))).status).toBe(200)
    seen.length = 0
    await expect(openResult(ask(at("a.invalid", "/round")))).rejects.toThrow("redirects more than 3 times")
    expect(seen).toHaveLength(4)
  })

  test.each(["", "film.mp4", "//x", "http://[", "data:video/mp4;base64,AA=="])("%p is no address", async (address) => {
    await expect(openResult(ask(address))).rejects.toBeInstanceOf(Forbidden)
  })
})

describe("trouble", () => {
  test("nothing that answers is another thing than a refusal", async () => {
    await expect(openResult(ask("http://127.0.0.1:9/x"))).rejects.toBeInstanceOf(Unreachable)
    const nameless = async (): Promise<readonly string[]> => {
      throw new Error("no such name")
    }
    await expect(openResult(ask(at("gone.invalid"), { resolve: nameless }))).rejects.toBeInstanceOf(Unreachable)
  })

  test("whoever has left is told its own reason", async () => {
    const signal = AbortSignal.abort(new Error("left"))
    await expect(openResult(ask(at("vendor.invalid"), { signal }))).rejects.toThrow("left")
    expect(seen).toEqual([])
  })
})
