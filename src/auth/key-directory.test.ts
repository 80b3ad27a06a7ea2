import { expect, test } from "bun:test"
import type { Principal } from "../core/principal.ts"
import { keyDirectory } from "./key-directory.ts"

function principal(name: string): Principal {
  return {
    keyId: `key-${name}`,
    keyName: name,
    accountId: "acc",
    accountName: "acme",
    planName: "default",
    concurrency: null,
    suspended: false,
  }
}

/** A directory over a database of owners by digest; `asked` lists the look-ups. */
function directory(owners: Record<string, Principal>) {
  const asked: string[] = []
  const keys = keyDirectory(
    (token) => `digest of ${token}`,
    async (digest) => {
      asked.push(digest)
      return owners[digest] ?? null
    },
  )
  return { keys, asked, owners }
}

test("a key is looked up by its digest once, then answered without waiting", async () => {
  const owner = principal("ci")
  const { keys, asked } = directory({ "digest of sk-1": owner })
  expect(await keys.find("sk-1")).toBe(owner)
  expect(keys.find("sk-1")).toBe(owner)
  expect(asked).toEqual(["digest of sk-1"])
})

test("that nobody has a key is remembered too", async () => {
  const { keys, asked } = directory({})
  expect(await keys.find("guess")).toBeNull()
  expect(keys.find("guess")).toBeNull()
  expect(asked).toHaveLength(1)
})

test("after forgetting, the database is asked again", async () => {
  const { keys, owners, asked } = directory({ "digest of sk-1": principal("old") })
  await keys.find("sk-1")
  await keys.find("sk-2")
  delete owners["digest of sk-1"]
  owners["digest of sk-2"] = principal("new")
  keys.forget()
  expect(await keys.find("sk-1")).toBeNull()
  expect((await keys.find("sk-2"))?.keyName).toBe("new")
  expect(asked).toHaveLength(4)
})

test("an answer that was read before a change is given, but not remembered", async () => {
  const answers: ((owner: Principal | null) => void)[] = []
  const keys = keyDirectory(
    (token) => token,
    () => new Promise((resolve) => answers.push(resolve)),
  )
  const early = keys.find("sk-1")
  keys.forget()
  answers[0]!(principal("stale"))
  expect((await early)?.keyName).toBe("stale")
  const late = keys.find("sk-1")
  expect(late).toBeInstanceOf(Promise)
  answers[1]!(null)
  expect(await late).toBeNull()
  expect(keys.find("sk-1")).toBeNull()
})

test("a late stale answer does not replace a fresh one", async () => {
  const answers: ((owner: Principal | null) => void)[] = []
  const keys = keyDirectory(
    (token) => token,
    () => new Promise((resolve) => answers.push(resolve)),
  )
  const early = keys.find("sk-1")
  keys.forget()
  const fresh = keys.find("sk-1")
  answers[1]!(principal("fresh"))
  await fresh
  answers[0]!(principal("stale"))
  await early
  expect(await keys.find("sk-1")).toMatchObject({ keyName: "fresh" })
})

test("a database that is away is told to the caller, and not remembered", async () => {
  let away = true
  const keys = keyDirectory(
    (token) => token,
    async () => {
      if (away) throw new Error("connection lost")
      return principal("ci")
    },
  )
  await expect(Promise.resolve(keys.find("sk-1"))).rejects.toThrow("connection lost")
  away = false
  expect(await keys.find("sk-1")).toMatchObject({ keyName: "ci" })
})

test("guessing many keys pushes out the oldest, not the memory", async () => {
  const { keys, asked } = directory({ "digest of sk-1": principal("ci") })
  await keys.find("sk-1")
  for (let i = 0; i < 20_000; i++) await keys.find(`guess-${i}`)
  await keys.find("sk-1")
  expect(asked.filter((digest) => digest === "digest of sk-1")).toHaveLength(2)
})
