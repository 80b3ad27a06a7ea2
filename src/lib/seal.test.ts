import { afterEach, beforeEach, expect, test } from "bun:test"
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { loadMasterKey, openVault, SealError } from "./seal.ts"

const vault = openVault("a master key with enough characters in it")

test("a sealed secret opens again, empty and non-ASCII text included", () => {
  for (const secret of ["sk-live-1", "", "ключ 🔑", "x".repeat(10_000)]) {
    expect(vault.unseal(vault.seal(secret, "upstream/a/0"), "upstream/a/0")).toBe(secret)
  }
})

test("the sealed bytes neither hold the secret nor repeat", () => {
  const first = vault.seal("sk-live-secret", "here")
  expect(Buffer.from(first).includes("sk-live-secret")).toBe(false)
  expect(vault.seal("sk-live-secret", "here")).not.toEqual(first)
})

test("another master key is refused with a message that says what to do", () => {
  const other = openVault("another master key with enough characters")
  const sealed = vault.seal("secret", "upstream/openai/0")
  expect(() => other.unseal(sealed, "upstream/openai/0")).toThrow(SealError)
  expect(() => other.unseal(sealed, "upstream/openai/0")).toThrow(
    /cannot unseal upstream\/openai\/0: the master key is not the one .* TOLLGATE_MASTER_KEY/,
  )
})

test("a sealed value moved to another place does not open", () => {
  expect(() => vault.unseal(vault.seal("secret", "upstream/a/0"), "upstream/b/0")).toThrow(SealError)
})

test("every changed byte is noticed", () => {
  const sealed = vault.seal("secret", "here")
  for (let position = 0; position < sealed.length; position++) {
    const changed = Uint8Array.from(sealed)
    changed[position] = changed[position]! ^ 1
    expect(() => vault.unseal(changed, "here")).toThrow(SealError)
  }
  for (let length = 0; length < sealed.length; length++) {
    expect(() => vault.unseal(sealed.slice(0, length), "here")).toThrow(SealError)
  }
})

test("a digest is the same for the same text and key only", () => {
  expect(vault.digest("key")).toBe(openVault("a master key with enough characters in it").digest("key"))
  expect(vault.digest("key")).not.toBe(vault.digest("kez"))
  expect(vault.digest("key")).not.toBe(openVault("another master key with enough characters").digest("key"))
  expect(vault.digest("key")).toMatch(/^[\w-]{43}$/)
})

test("a signature is another thing than a digest, and the same for the same text and key only", () => {
  expect(vault.sign("key")).toBe(openVault("a master key with enough characters in it").sign("key"))
  expect(vault.sign("key")).not.toBe(vault.digest("key"))
  expect(vault.sign("key")).not.toBe(vault.sign("kez"))
  expect(vault.sign("key")).not.toBe(openVault("another master key with enough characters").sign("key"))
})

test("a short master key is refused", () => {
  expect(() => openVault("short")).toThrow("the master key has 5 characters; it needs at least 32")
})

let folder = ""
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tollgate-key-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test("made once, readable by its owner alone, and the same at the next start", () => {
  const data = join(folder, "data")
  const key = loadMasterKey(data, undefined)
  expect(key.length).toBeGreaterThanOrEqual(43)
  expect(loadMasterKey(data, undefined)).toBe(key)
  expect(readdirSync(data)).toEqual(["master.key"])
  expect(statSync(join(data, "master.key")).mode & 0o777).toBe(0o600)
})

test("the environment wins and leaves no file", () => {
  const given = "given by the environment, long enough"
  expect(loadMasterKey(folder, given)).toBe(given)
  expect(readdirSync(folder)).toEqual([])
})

test("a short key is refused by the name of where it came from", () => {
  expect(() => loadMasterKey(folder, "")).toThrow("TOLLGATE_MASTER_KEY has 0 characters; it needs at least 32")
  writeFileSync(join(folder, "master.key"), "cut off\n")
  expect(() => loadMasterKey(folder, undefined)).toThrow(/master\.key has 7 characters/)
})

test("processes that start at the same moment agree on one key", async () => {
  const source = join(import.meta.dir, "seal.ts")
  const program = `console.log((await import(${JSON.stringify(source)})).loadMasterKey(${JSON.stringify(folder)}))`
  const starters = Array.from({ length: 6 }, () => Bun.spawn([process.execPath, "-e", program], { stdout: "pipe" }))
  const keys = await Promise.all(starters.map((starter) => starter.stdout.text()))
  expect(keys[0]!.trim().length).toBe(43)
  expect(new Set(keys).size).toBe(1)
  expect(readdirSync(folder)).toEqual(["master.key"])
})
