import { expect, test } from "bun:test"
import { standWith } from "../../testing/stand.ts"
import { clientOf } from "../../testing/video-client.ts"
import { at, ended, lasting, videoVendors } from "../../testing/video-vendors.ts"

const stand = standWith("runway")
const client = clientOf(stand, videoVendors, "runway")
const ask = { model: "gen4.5", promptText: "A fox running through snow", ratio: "1280:720", duration: 5 }
const text = "/v1/text_to_video"
const image = "/v1/image_to_video"

test("a task is told as the vendor's pages show it", async () => {
  const submitted = await client.submit(ended(), ask)
  expect(submitted.body).toEqual({ id: expect.any(String), estimatedCost: { credits: 60 } })
  expect((await client.look(String(submitted.body.id))).body).toEqual({
    id: submitted.body.id,
    status: "SUCCEEDED",
    createdAt: expect.any(String),
    output: [expect.stringContaining("/cdn/")],
    cost: { credits: 60 },
  })
  const running = (await client.outcome(lasting.running)).body
  expect(running).toMatchObject({ status: "RUNNING", progress: expect.any(Number), estimatedCost: { credits: 60 } })
})

test.each([undefined, "2023-01-01"])("every call names the version: %p", async (version) => {
  const headers = { "x-runway-version": version ?? "" }
  expect(await client.send("POST", text, ask, headers)).toMatchObject({
    status: 400,
    body: { error: expect.stringContaining("ersion") },
  })
  const id = await client.begin(ended())
  expect((await client.get(`/v1/tasks/${id}`, headers)).status).toBe(400)
})

test("a task that is looked at again has a fresh address", async () => {
  const id = await client.begin(ended({ resultLivesMs: 60_000 }))
  const first = at((await client.look(id)).body, "output.0")
  await Bun.sleep(2)
  const second = at((await client.look(id)).body, "output.0")
  expect(second).not.toBe(first)
  expect((await fetch(String(second))).status).toBe(200)
})

test.each([
  ["failure", { status: "FAILED", failureCode: "INTERNAL.BAD_OUTPUT.CODE01", cost: { credits: 0 } }],
  ["moderated", { status: "FAILED", failureCode: "SAFETY.INPUT.TEXT" }],
  ["cancelled", { status: "CANCELLED" }],
  ["no_url", { status: "SUCCEEDED", output: [] }],
] as const)("it ends %s", async (outcome, body) => {
  expect(await client.outcome(ended({ outcome }))).toMatchObject({ status: 200, body })
})

test("a task that is waiting for its turn can be told so", async () => {
  expect((await client.outcome({ ...lasting.queued, words: ["THROTTLED"] })).body.status).toBe("THROTTLED")
})

test.each(["queued", "running", "over"] as const)("a task that is %s is gone after it was deleted", async (stage) => {
  const id = await client.begin(lasting[stage])
  expect((await client.send("DELETE", `/v1/tasks/${id}`)).status).toBe(204)
  expect(await client.look(id)).toMatchObject({ status: 404, body: { error: "Task not found" } })
})

test.each([
  [{ ratio: "1920:1080" }, text, "ratio"],
  [{ ratio: "1280x720" }, text, "ratio"],
  [{ duration: "5" }, text, "duration"],
  [{ duration: undefined }, text, "duration"],
  [{ duration: 11 }, text, "duration"],
  [{ promptText: "x".repeat(1001) }, text, "promptText"],
  [{ model: "gen4_turbo" }, text, "model"],
  [{ model: "gen2" }, text, "model"],
  [{}, image, "promptImage"],
  [{ promptImage: "http://x/a.png" }, image, "promptImage"],
  [{ promptImage: [{ uri: "https://x/a.png" }] }, image, "promptImage"],
  [{ seed: -1 }, text, "seed"],
])("what the vendor does not take: %j at %s", async (wrong, path, field) => {
  expect(await client.submit(undefined, { ...ask, ...wrong }, path)).toMatchObject({
    status: 400,
    body: { error: "Validation of body failed", issues: [{ path: [field] }] },
  })
})

test("a picture makes more shapes possible", async () => {
  const promptImage = [{ uri: "data:image/png;base64,aGVsbG8=", position: "first" }]
  expect((await client.submit(undefined, { ...ask, ratio: "960:960", promptImage }, image)).status).toBe(200)
})
