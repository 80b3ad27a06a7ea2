import { afterAll, expect, test } from "bun:test"
import { resultsExample } from "../../test/support/certificate.ts"
import { fetchAt } from "./client.ts"
import { download } from "./result.ts"

const limit = 1024
const seen: string[] = []
/** Answers with the host it was asked for, and sends `/away` to the address in its query. */
function answer(request: Request): Response {
  const { pathname, searchParams } = new URL(request.url)
  const host = request.headers.get("host") ?? ""
  seen.push(`${host}${pathname}`)
  if (pathname === "/away") return new Response(null, { status: 302, headers: { location: searchParams.get("to")! } })
  return new Response(host, { headers: { "content-type": "image/png" } })
}
const plain = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: answer })
const secure = Bun.serve({ hostname: "127.0.0.1", port: 0, tls: resultsExample, fetch: answer })
afterAll(() => Promise.all([plain.stop(true), secure.stop(true)]))

const loopback = async (): Promise<readonly string[]> => ["127.0.0.1"]
const signal = (): AbortSignal => AbortSignal.timeout(10_000)
const textOf = ({ bytes }: { readonly bytes: Uint8Array }): string => Buffer.from(bytes).toString()

test("the name is asked for once, and what it said then is where the result comes from", async () => {
  const asked: string[] = []
  // A name that no resolver knows, so that asking for it a second time could only fail.
  const resolve = async (host: string): Promise<readonly string[]> => {
    asked.push(host)
    return ["127.0.0.1"]
  }
  const address = `http://rebinding.invalid:${plain.port}/x.png`
  const downloaded = await download(address, limit, true, signal(), resolve)
  expect(downloaded.type).toBe("image/png")
  expect(textOf(downloaded)).toBe(`rebinding.invalid:${plain.port}`)
  expect(asked).toEqual(["rebinding.invalid"])
})

test("each redirect is resolved and checked anew", async () => {
  const asked: string[] = []
  const resolve = async (host: string): Promise<readonly string[]> => {
    asked.push(host)
    return ["127.0.0.1"]
  }
  const to = encodeURIComponent(`http://second.invalid:${plain.port}/x.png`)
  const address = `http://first.invalid:${plain.port}/away?to=${to}`
  expect(textOf(await download(address, limit, true, signal(), resolve))).toBe(`second.invalid:${plain.port}`)
  expect(asked).toEqual(["first.invalid", "second.invalid"])
  const file = `http://first.invalid:${plain.port}/away?to=${encodeURIComponent("file:///etc/passwd")}`
  await expect(download(file, limit, true, signal(), loopback)).rejects.toThrow("only https addresses are fetched")
})

test("the next address is tried where one cannot be reached", async () => {
  const resolve = async (): Promise<readonly string[]> => ["127.0.0.2", "127.0.0.1"]
  const address = `http://two.invalid:${plain.port}/x.png`
  expect(textOf(await download(address, limit, true, signal(), resolve))).toBe(`two.invalid:${plain.port}`)
})

test("a name that leads inside is never asked", async () => {
  const before = seen.length
  const address = `https://results.example:${secure.port}/x.png`
  await expect(download(address, limit, false, signal(), loopback)).rejects.toThrow("is not a public address")
  expect(seen).toHaveLength(before)
})

const at = (name: string): URL => new URL(`https://${name}:${secure.port}/x.png`)
const trusting = { tls: { ca: resultsExample.cert } }

test("over TLS the certificate must be the name's, though the connection goes to an address", async () => {
  const response = await fetchAt(at("results.example"), "127.0.0.1", trusting)
  expect(await response.text()).toBe(`results.example:${secure.port}`)
  await expect(fetchAt(at("other.example"), "127.0.0.1", trusting)).rejects.toThrow("ALTNAME")
  // Also right after a connection to the same address that was good for another name.
  expect((await fetchAt(at("results.example"), "127.0.0.1", trusting)).status).toBe(200)
  await expect(fetchAt(at("other.example"), "127.0.0.1", trusting)).rejects.toThrow("ALTNAME")
})

test("over TLS a certificate that nobody vouches for is refused", async () => {
  const before = seen.length
  await expect(fetchAt(at("results.example"), "127.0.0.1", {})).rejects.toThrow("self signed")
  await expect(download(at("results.example").href, limit, true, signal(), loopback)).rejects.toThrow("self signed")
  expect(seen).toHaveLength(before)
})
