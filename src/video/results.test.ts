import { afterAll, beforeEach, describe, expect, test } from "bun:test"
import { mkdtemp, readdir, rm, stat, utimes, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { startS3 } from "../../test/support/s3.ts"
import type { BucketTarget } from "../core/results-target.ts"
import { openResults } from "./open-results.ts"
import type { ResultStore, StoredPart } from "./results.ts"

const id = "0190a0b0-0000-7000-8000-00000000000a"
const keys = { accessKeyId: "AKTEST", secretAccessKey: "a secret/with+signs=", region: "eu-test-1", bucket: "films" }
const s3 = startS3(keys)
const target: BucketTarget = { kind: "bucket", endpoint: s3.url, prefix: "made here/", sessionToken: null, ...keys }
const home = await mkdtemp(join(tmpdir(), "tollgate-results-"))
const folder = join(home, "deep", "films")
afterAll(async () => {
  await s3.stop()
  await rm(home, { recursive: true, force: true })
})

/** Bytes that are nowhere the same for long. */
function bytesOf(length: number): Uint8Array {
  const words = new Uint32Array(Math.ceil(length / 4)).map((_, at) => Math.imul(at + 1, 2654435761))
  return new Uint8Array(words.buffer, 0, length)
}

function streamOf(bytes: Uint8Array, pieceBytes = 100_000, trouble?: Error): ReadableStream<Uint8Array> {
  let at = 0
  return new ReadableStream({
    pull(sink) {
      if (at < bytes.length) sink.enqueue(bytes.subarray(at, at + pieceBytes))
      else if (trouble === undefined) sink.close()
      else sink.error(trouble)
      at += pieceBytes
    },
  })
}

async function bytesIn(part: StoredPart | null): Promise<Uint8Array> {
  return part === null ? new Uint8Array() : await new Response(part.body).bytes()
}

const film = bytesOf(250_001)
const stores: readonly (readonly [string, ResultStore])[] = [
  ["folder", (await openResults({ kind: "folder", path: folder }))!],
  ["bucket", (await openResults(target))!],
]

test("nothing is kept where no place is set", async () => {
  expect(await openResults(null)).toBeNull()
})

describe.each(stores)("copies in a %s", (_, store) => {
  beforeEach(async () => {
    await store.delete(id)
  })

  test("come back byte by byte, with what a browser needs to know", async () => {
    await store.put(id, streamOf(film), "video/mp4")
    const part = await store.open(id, null)
    expect(part).toMatchObject({
      status: 200,
      headers: { "content-type": "video/mp4", "content-length": "250001", "accept-ranges": "bytes" },
    })
    expect(Date.parse(part!.headers["last-modified"]!)).toBeGreaterThan(Date.now() - 60_000)
    expect(part!.headers.etag).toMatch(/^".+"$/)
    expect(Buffer.from(await bytesIn(part)).equals(film)).toBeTrue()
  })

  test("keep their type", async () => {
    await store.put(id, streamOf(film), "video/webm")
    expect((await store.open(id, null))?.headers["content-type"]).toBe("video/webm")
  })

  const ranges: readonly (readonly [range: string, start: number, end: number])[] = [
    ["bytes=0-0", 0, 1],
    ["bytes=100-199", 100, 200],
    ["bytes=249990-", 249_990, 250_001],
    ["bytes=249990-999999999", 249_990, 250_001],
    ["bytes=-5", 249_996, 250_001],
    ["bytes=-999999999", 0, 250_001],
  ]
  test.each([...ranges])("give the part that is asked for: %s", async (range, start, end) => {
    await store.put(id, streamOf(film), "video/mp4")
    const part = await store.open(id, range)
    expect(part?.status).toBe(206)
    expect(part?.headers["content-range"]).toBe(`bytes ${start}-${end - 1}/250001`)
    expect(part?.headers["content-length"]).toBe(String(end - start))
    expect(Buffer.from(await bytesIn(part)).equals(film.subarray(start, end))).toBeTrue()
  })

  test.each(["bytes=250001-", "bytes=-0", "bytes=300000-300001"])("have no such part: %s", async (range) => {
    await store.put(id, streamOf(film), "video/mp4")
    const part = await store.open(id, range)
    expect(part).toMatchObject({ status: 416, body: null, headers: { "content-range": "bytes */250001" } })
  })

  test.each(["bytes=5-4", "bytes=-", "bytes=0-1,5-6", "lines=0-1", "bytes=a-b", "0-5"])(
    "are given whole where the range is none, or several: %s",
    async (range) => {
      await store.put(id, streamOf(film), "video/mp4")
      expect(await store.open(id, range)).toMatchObject({ status: 200, headers: { "content-length": "250001" } })
    },
  )

  test("are written over by a second one, and gone when deleted, also twice", async () => {
    await store.put(id, streamOf(film), "video/mp4")
    await store.put(id, streamOf(bytesOf(9)), "video/mp4")
    expect(Buffer.from(await bytesIn(await store.open(id, null)))).toEqual(Buffer.from(bytesOf(9)))
    await store.delete(id)
    expect(await store.open(id, null)).toBeNull()
    await store.delete(id)
  })

  test("are all or nothing: a body that breaks off leaves none, and not what was there before damaged", async () => {
    const large = bytesOf(11 * 1024 * 1024)
    await expect(store.put(id, streamOf(large, 500_000, new Error("it broke")), "video/mp4")).rejects.toThrow(
      "it broke",
    )
    expect(await store.open(id, null)).toBeNull()
    await store.put(id, streamOf(film), "video/mp4")
    await expect(store.put(id, streamOf(large, 500_000, new Error("it broke")), "video/mp4")).rejects.toThrow(
      "it broke",
    )
    expect(Buffer.from(await bytesIn(await store.open(id, null))).equals(film)).toBeTrue()
  })

  test("are kept under ids of jobs and no other names", async () => {
    for (const name of ["../evil", "", "x", `${id}/..`, id.toUpperCase().replaceAll("0", "O")]) {
      await expect((async () => store.open(name, null))()).rejects.toThrow("under a job's id")
      await expect((async () => store.put(name, streamOf(film), "video/mp4"))()).rejects.toThrow("under a job's id")
      await expect((async () => store.delete(name))()).rejects.toThrow("under a job's id")
    }
  })
})

describe("a folder", () => {
  const store = stores[0]![1]

  test("is for its owner alone, and so are its files; nothing half written stays", async () => {
    await store.put(id, streamOf(film), "video/mp4")
    await store.put(id, streamOf(film, 1000, new Error("it broke")), "video/mp4").catch(() => {})
    expect(await readdir(folder)).toEqual([`${id}.mp4`])
    expect((await stat(folder)).mode & 0o777).toBe(0o700)
    expect((await stat(join(folder, `${id}.mp4`))).mode & 0o777).toBe(0o600)
    await store.delete(id)
  })

  test("loses what a killed process left a day ago, not what another may be writing", async () => {
    const [old, young] = [join(folder, "old.part"), join(folder, "young.part")]
    for (const file of [old, young]) await writeFile(file, "half a film")
    const yesterday = new Date(Date.now() - 25 * 3_600_000)
    await utimes(old, yesterday, yesterday)
    await openResults({ kind: "folder", path: folder })
    expect(await readdir(folder)).toEqual(["young.part"])
    await rm(young)
  })
})

describe("a bucket", () => {
  const store = stores[1]![1]

  test("gets large films in parts, and gives back only the part that is asked for", async () => {
    const large = bytesOf(12 * 1024 * 1024 + 7)
    s3.asked.length = 0
    await store.put(id, streamOf(large, 1_000_003), "video/mp4")
    expect(s3.asked.filter((line) => line.includes("partNumber="))).toHaveLength(3)
    const stored = s3.objects.get(`made here/${id}.mp4`)
    expect(stored?.type).toBe("video/mp4")
    expect(stored?.bytes.equals(large)).toBeTrue()
    s3.asked.length = 0
    const part = await bytesIn(await store.open(id, "bytes=6000000-6000099"))
    expect(Buffer.from(part).equals(large.subarray(6_000_000, 6_000_100))).toBeTrue()
    const path = `/films/made%20here/${id}.mp4`
    expect(s3.asked).toEqual([`HEAD ${path}`, `GET ${path} bytes=6000000-6000099`])
    await store.delete(id)
    expect(s3.objects.size).toBe(0)
  })

  test("gives an upload up that breaks off, so that nothing is kept and paid for unseen", async () => {
    const trouble = new Error("it broke")
    await store.put(id, streamOf(bytesOf(11 * 1024 * 1024), 500_000, trouble), "video/mp4").catch(() => {})
    const until = Date.now() + 5000
    while (s3.uploads.size > 0 && Date.now() < until) await Bun.sleep(5)
    expect(s3.uploads.size).toBe(0)
  })

  test("is asked again where it fails for a moment", async () => {
    s3.failNext(1)
    await store.put(id, streamOf(film), "video/mp4")
    expect(s3.objects.has(`made here/${id}.mp4`)).toBeTrue()
    await store.delete(id)
  })

  test.each([
    ["secretAccessKey", "another secret"],
    ["accessKeyId", "AKOTHER"],
    ["region", "us-other-1"],
    ["bucket", "other"],
  ])("refuses a wrong %s, which is trouble and not the same as no copy", async (name, value) => {
    const stranger = (await openResults({ ...target, [name]: value }))!
    const left = Promise.withResolvers<void>()
    const endless = new ReadableStream<Uint8Array>({
      async pull(sink) {
        await Bun.sleep(0)
        sink.enqueue(film)
      },
      cancel: () => left.resolve(),
    })
    await expect(stranger.put(id, endless, "video/mp4")).rejects.toThrow()
    await left.promise
    expect(s3.objects.size).toBe(0)
  })

  test("that cannot be reached is trouble, too", async () => {
    const nowhere = (await openResults({ ...target, endpoint: "http://127.0.0.1:9" }))!
    await expect(nowhere.open(id, null)).rejects.toThrow()
  })
})
