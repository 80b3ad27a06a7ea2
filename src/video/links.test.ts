import { expect, test } from "bun:test"
import { openVault } from "../lib/seal.ts"
import { contentLinks, linkLifeSeconds } from "./links.ts"

const id = "0190a0b0-0000-7000-8000-00000000000a"
const other = "0190a0b0-0000-7000-8000-00000000000b"
const vault = openVault("the master key of the link tests, long enough")
const clock = { now: 1_800_000_000_999 }
const links = contentLinks(vault, () => clock.now)
const made = new URL(links.make("https://gateway.example/base", id))

function changed(changes: Record<string, string>): URLSearchParams {
  const query = new URLSearchParams(made.search)
  for (const [name, value] of Object.entries(changes)) query.set(name, value)
  return query
}

test("a link leads to the job's content, names its end and opens", () => {
  expect(made.origin + made.pathname).toBe(`https://gateway.example/base/v1/videos/${id}/content`)
  expect([...made.searchParams.keys()]).toEqual(["expires", "signature"])
  expect(made.searchParams.get("expires")).toBe(String(1_800_000_000 + 24 * 60 * 60))
  expect(links.check(id, made.searchParams)).toBeTrue()
})

test("it opens for a day and not a second longer", () => {
  clock.now = (1_800_000_000 + linkLifeSeconds) * 1000 - 1
  expect(links.check(id, made.searchParams)).toBeTrue()
  clock.now += 1
  expect(links.check(id, made.searchParams)).toBeFalse()
  clock.now = 1_800_000_000_999
})

test("it opens no other job, lasts no longer than it was made to, and is made by nobody else", () => {
  expect(links.check(other, made.searchParams)).toBeFalse()
  expect(links.check(id, changed({ expires: "1900000000" }))).toBeFalse()
  const stranger = contentLinks(openVault("another master key, which is long enough, too"), () => clock.now)
  expect(stranger.check(id, made.searchParams)).toBeFalse()
})

test.each([
  { signature: "" },
  { signature: "x" },
  { signature: "é".repeat(43) },
  { expires: "" },
  { expires: "-1" },
  { expires: "1e12" },
  { expires: "9".repeat(13) },
  { expires: "0x77359400" },
])("%o does not open it", (changes) => {
  expect(links.check(id, changed(changes))).toBeFalse()
})

test("every character of the signature counts", () => {
  const signature = made.searchParams.get("signature")!
  expect(signature).toHaveLength(43)
  for (let at = 0; at < signature.length; at++) {
    const wrong = signature.slice(0, at) + (signature[at] === "A" ? "B" : "A") + signature.slice(at + 1)
    expect(links.check(id, changed({ signature: wrong }))).toBeFalse()
  }
  expect(links.check(id, new URLSearchParams())).toBeFalse()
})

test("the digest of a text that looks like a link's is no signature", () => {
  const expires = made.searchParams.get("expires")!
  expect(links.check(id, changed({ signature: vault.digest(`video content\n${id}\n${expires}`) }))).toBeFalse()
})
