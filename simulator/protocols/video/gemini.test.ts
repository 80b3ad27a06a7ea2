import { expect, test } from "bun:test"
import { standWith } from "../../testing/stand.ts"
import { clientOf } from "../../testing/video-client.ts"
import { at, ended, key, lasting, videoVendors } from "../../testing/video-vendors.ts"

const stand = standWith("gemini")
const client = clientOf(stand, videoVendors, "gemini")
const model = "veo-3.1-generate-preview"
const ask = { instances: [{ prompt: "A lion" }], parameters: { aspectRatio: "16:9", durationSeconds: 8 } }
const uriAt = "response.generateVideoResponse.generatedSamples.0.video.uri"

test("an operation says nothing until it is done", async () => {
  const submitted = await client.submit(lasting.running, ask)
  const name = String(submitted.body.name)
  expect(submitted.body).toEqual({
    name: expect.stringMatching(/^models\/veo-3\.1-generate-preview\/operations\/[a-z\d]{12}$/),
  })
  expect((await client.look(name)).body).toEqual({ name })
  const other = name.replace(model, "veo-3.0-generate-001")
  expect(await client.look(other)).toMatchObject({ status: 404, body: { error: { status: "NOT_FOUND" } } })
})

test("the film needs the key, and is behind one redirect", async () => {
  const { body } = await client.outcome(ended(), ask)
  expect(body).toMatchObject({ done: true })
  const uri = String(at(body, uriAt))
  expect(uri).toMatch(/\/v1beta\/files\/\w+:download\?alt=media$/)
  expect((await fetch(uri)).status).toBe(401)
  const headers = { "x-goog-api-key": key }
  const first = await fetch(uri, { headers, redirect: "manual" })
  expect(first.status).toBe(302)
  const film = await fetch(first.headers.get("location") ?? "")
  expect([film.status, film.headers.get("content-type")]).toEqual([200, "video/mp4"])
  expect((await fetch(uri.replace(/files\/\w+/, "files/none"), { headers })).status).toBe(403)
})

test.each([
  ["failure", { done: true, error: { code: 13 } }],
  ["moderated", { done: true, response: { generateVideoResponse: { raiMediaFilteredCount: 1 } } }],
  ["cancelled", { done: true, error: { code: 1 } }],
  ["no_url", { done: true, response: { generateVideoResponse: { generatedSamples: [{ video: {} }] } } }],
  ["odd_status", { done: true }],
] as const)("it ends %s", async (outcome, body) => {
  expect(await client.outcome(ended({ outcome }), ask)).toMatchObject({ status: 200, body })
})

test.each([
  [{ parameters: { durationSeconds: "8" } }],
  [{ parameters: { durationSeconds: 5 } }],
  [{ parameters: { durationSeconds: 6, resolution: "1080p" } }],
  [{ parameters: { aspectRatio: "1:1" } }],
  [{ parameters: { resolution: "480p" } }],
  [{ parameters: { seed: 7 } }],
  [{ parameters: { generateAudio: true } }],
  [{ instances: [] }],
  [{ instances: [{ prompt: "x", image: { inlineData: { data: "aGk=", mimeType: "image/png" } } }] }],
  [{ instances: [{ prompt: "x", image: { gcsUri: "gs://b/a.png", mimeType: "image/png" } }] }],
  [
    {
      instances: [{ prompt: "x", image: { bytesBase64Encoded: "data:image/png;base64,aGk=", mimeType: "image/png" } }],
    },
  ],
])("what the vendor does not take: %j", async (wrong) => {
  expect(await client.submit(undefined, { ...ask, ...wrong })).toMatchObject({
    status: 400,
    body: { error: { code: 400, status: "INVALID_ARGUMENT" } },
  })
})

test("a picture comes as bytes, and other models are not there", async () => {
  const image = { bytesBase64Encoded: "aGVsbG8=", mimeType: "image/png" }
  expect((await client.submit(undefined, { ...ask, instances: [{ prompt: "x", image }] })).status).toBe(200)
  expect((await client.submit(undefined, ask, "/v1beta/models/gemini-3-pro:predictLongRunning")).status).toBe(404)
})
