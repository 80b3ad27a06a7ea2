import { expect, test } from "bun:test"
import { createHmac } from "node:crypto"
import { standWith } from "../../testing/stand.ts"
import { clientOf, seen } from "../../testing/video-client.ts"
import { at, ended, lasting, videoVendors } from "../../testing/video-vendors.ts"

const stand = standWith("kling")
const client = clientOf(stand, videoVendors, "kling")
const text = "/v1/videos/text2video"
const image = "/v1/videos/image2video"
const ask = { model_name: "kling-v3", prompt: "A calm woman slowly smiles", duration: "5", mode: "std" }

test("a task is told as the vendor's pages show it", async () => {
  const submitted = await client.submit(ended({ seconds: 5.1 }), { ...ask, external_task_id: "vid_01HX" })
  const id = String(at(submitted.body, "data.task_id"))
  expect(id).toMatch(/^\d{18}$/)
  expect(submitted.body).toMatchObject({
    code: 0,
    message: "SUCCEED",
    data: {
      task_status: "submitted",
      task_info: { external_task_id: "vid_01HX" },
    },
  })
  const { body } = await client.look(id)
  expect(body).toMatchObject({
    code: 0,
    data: {
      task_status: "succeed",
      task_status_msg: "",
      final_unit_deduction: "2",
      task_result: { videos: [{ url: expect.stringContaining("/cdn/"), duration: "5.1" }] },
      created_at: expect.any(Number),
    },
  })
})

test("the length is left out if told so", async () => {
  const { body } = await client.outcome(ended({ reports: false }))
  expect(at(body, "data.task_result.videos.0")).not.toHaveProperty("duration")
})

test("the path to ask at is the one that was submitted to", async () => {
  const picture = { model_name: "kling-v2-1", image: "aGVsbG8=", duration: "10" }
  const id = await client.begin(ended(), picture, image)
  expect((await client.get(`${image}/${id}`)).body).toMatchObject({ data: { task_status: "succeed" } })
  expect(await client.get(`${text}/${id}`)).toMatchObject({ status: 404, body: { code: 1203 } })
})

test("the caller's own id finds the task in place of the vendor's, and is used once", async () => {
  const named = { ...ask, external_task_id: "vid_1" }
  const id = await client.begin(lasting.running, named)
  for (const path of [`${text}/vid_1`, `${text}?external_task_id=vid_1`]) {
    const { body } = await client.get(path)
    const task = at(body, "data.0") ?? at(body, "data")
    expect(task).toMatchObject({ task_id: id, task_status: "processing", task_info: { external_task_id: "vid_1" } })
  }
  expect((await client.get(`${text}?external_task_id=vid_2`)).body).toMatchObject({ code: 0, data: [] })
  expect(await client.submit(lasting.running, named)).toMatchObject({ status: 400, body: { code: 1201 } })
  expect(stand.vendor.memory.videos.size).toBe(1)
  // Another account has its own ids.
  const headers = { authorization: "Bearer another" }
  expect((await client.send("POST", text, named, headers)).body).toMatchObject({ code: 0 })
})

test.each([
  [{ duration: 5 }, text],
  [{ duration: "7", model_name: "kling-v2-6" }, text],
  [{ duration: "16" }, text],
  [{ mode: "4k", model_name: "kling-v2-6" }, text],
  [{ aspect_ratio: "4:3" }, text],
  [{ prompt: "" }, text],
  [{ prompt: "x".repeat(2501) }, text],
  [{ model_name: "veo-3" }, text],
  [{}, image],
  [{ image: "data:image/png;base64,aGVsbG8=" }, image],
  [{ image: "https://example.com/a.png", aspect_ratio: "16:9" }, image],
])("what the vendor does not take: %j at %s", async (wrong, path) => {
  expect(await client.submit(undefined, { ...ask, ...wrong }, path)).toMatchObject({
    status: 400,
    body: { code: 1201, message: expect.any(String), request_id: expect.any(String) },
  })
  expect(stand.vendor.memory.videos.size).toBe(0)
})

test("failures have their reason, and refusals the vendor's codes", async () => {
  expect((await client.outcome(ended({ outcome: "moderated" }))).body).toMatchObject({
    code: 0,
    data: { task_status: "failed", task_status_msg: "Failure to pass the risk control system" },
  })
  expect((await client.outcome(ended({ outcome: "expired" }))).body).toMatchObject({ code: 1203 })
  stand.vendor.behave({ kind: "status", status: 429 })
  expect(await client.submit()).toMatchObject({ status: 429, body: { code: 1303 } })
})

function token(claims: object, secret = "sk"): string {
  const [header, payload] = [{ alg: "HS256", typ: "JWT" }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString("base64url"),
  )
  return `${header}.${payload}.${createHmac("sha256", secret).update(`${header}.${payload}`).digest("base64url")}`
}

test("a token signed with a pair of keys opens as well, in its time", async () => {
  stand.vendor.expectKey("ak:sk")
  const now = Math.floor(Date.now() / 1000)
  const tell = async (key: string): Promise<unknown> =>
    (await seen(`${stand.home}${text}/1`, { headers: { authorization: `Bearer ${key}` } })).body.code
  const claims = { iss: "ak", exp: now + 1800, nbf: now - 5 }
  expect(await tell(token(claims))).toBe(1203)
  expect(await tell(token(claims, "other"))).toBe(1002)
  expect(await tell(token({ ...claims, iss: "other" }))).toBe(1002)
  expect(await tell(token({ ...claims, exp: now - 1 }))).toBe(1004)
  expect(await tell(token({ ...claims, nbf: now + 60 }))).toBe(1003)
  expect((await seen(`${stand.home}${text}/1`)).body.code).toBe(1001)
})
