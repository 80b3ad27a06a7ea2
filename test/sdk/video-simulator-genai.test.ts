import { expect, test } from "bun:test"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { ApiError, type GenerateVideosOperation, GoogleGenAI } from "@google/genai"
import { failureOf, standWith } from "../../simulator/testing/stand.ts"
import { ended, key, lasting } from "../../simulator/testing/video-vendors.ts"

const stand = standWith("gemini")
const model = "veo-3.1-generate-preview"

function client(apiKey = key): GoogleGenAI {
  return new GoogleGenAI({ apiKey, httpOptions: { baseUrl: stand.home } })
}

async function begin(ai = client()): Promise<GenerateVideosOperation> {
  const config = { durationSeconds: 6, aspectRatio: "16:9", resolution: "720p", numberOfVideos: 1 }
  return ai.models.generateVideos({ model, source: { prompt: "A lion in the savannah" }, config })
}

/** Polls as the vendor's own examples do. */
async function finish(ai: GoogleGenAI, operation: GenerateVideosOperation): Promise<GenerateVideosOperation> {
  let latest = operation
  while (latest.done !== true) {
    await Bun.sleep(5)
    latest = await ai.operations.getVideosOperation({ operation: latest })
  }
  return latest
}

test("a film is made, waited for and downloaded with the SDK's own code", async () => {
  stand.vendor.behave({ kind: "video_job", queuedMs: 10, runningMs: 20, seconds: 6.04 })
  const ai = client()
  const started = await begin(ai)
  expect(started.done).not.toBe(true)
  const done = await finish(ai, started)
  const [made] = done.response?.generatedVideos ?? []
  const folder = mkdtempSync(join(tmpdir(), "tollgate-veo-"))
  try {
    const downloadPath = join(folder, "film.mp4")
    await ai.files.download({ file: made!, downloadPath })
    const bytes = readFileSync(downloadPath)
    expect(bytes.toString("latin1", 4, 8)).toBe("ftyp")
    expect(bytes.readUInt32BE(bytes.indexOf("mvhd") + 20)).toBe(6040)
  } finally {
    rmSync(folder, { recursive: true })
  }
  expect(stand.vendor.memory.submits.get("A lion in the savannah")).toBe(1)
})

test("pictures come in the way the SDK sends them", async () => {
  stand.vendor.behave(ended())
  const image = { imageBytes: Buffer.from("picture").toString("base64"), mimeType: "image/png" }
  const config = { durationSeconds: 8, lastFrame: image }
  const operation = await client().models.generateVideos({ model, source: { prompt: "A lion", image }, config })
  expect(operation.name).toContain(`models/${model}/operations/`)
})

test("a filtered film and a failed one are told apart", async () => {
  const ai = client()
  stand.vendor.behave(ended({ outcome: "moderated" }))
  const filtered = await finish(ai, await begin(ai))
  expect(filtered.response).toMatchObject({ raiMediaFilteredCount: 1, raiMediaFilteredReasons: [expect.any(String)] })
  stand.vendor.behave(ended({ outcome: "failure" }))
  const failed = await finish(ai, await begin(ai))
  expect(failed.error).toMatchObject({ code: 13, message: "Internal error" })
})

test("a wrong key and a wrong length are errors of the API", async () => {
  stand.vendor.expectKey("another")
  expect(await failureOf(begin())).toMatchObject({ status: 401 })
  stand.vendor.expectKey(null)
  stand.vendor.behave(lasting.queued)
  const config = { durationSeconds: 5 }
  const refused = await failureOf(client().models.generateVideos({ model, source: { prompt: "A lion" }, config }))
  expect(refused).toBeInstanceOf(ApiError)
  expect(refused).toMatchObject({ status: 400, message: expect.stringContaining("INVALID_ARGUMENT") })
})
