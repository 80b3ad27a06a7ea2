import { expect, test } from "bun:test"
import { eventually } from "../../testing/raw-client.ts"
import { standWith } from "../../testing/stand.ts"
import { clientOf, videoClient } from "../../testing/video-client.ts"
import { ended, lasting, videoVendors } from "../../testing/video-vendors.ts"

const stand = standWith("kling")
const kling = clientOf(stand, videoVendors, "kling")
const body = videoVendors[0]!.submit[1]

test("submits are counted by the caller's own id, taken or not", async () => {
  const named = { ...body, external_task_id: "job-1" }
  await kling.submit({ kind: "video_job", submit: { status: 429, json: { code: 1303 } } }, named)
  await kling.submit(lasting.queued, named)
  await kling.submit(lasting.queued, { ...body, external_task_id: "job-2" })
  expect([...stand.vendor.memory.submits]).toEqual([
    ["job-1", 2],
    ["job-2", 1],
  ])
})

test("a submit that hangs has begun a job, which the caller can find by its own id", async () => {
  const gone = new AbortController()
  const [path] = videoVendors[0]!.submit
  stand.vendor.behave({ ...lasting.running, submit: "hang" })
  const hanging = fetch(stand.home + path, {
    method: "POST",
    body: JSON.stringify({ ...body, external_task_id: "job-7" }),
    headers: { authorization: "Bearer key-of-the-account" },
    signal: gone.signal,
  }).catch(() => "left")
  await eventually(() => stand.vendor.memory.videos.size === 1)
  gone.abort()
  expect(await hanging).toBe("left")
  expect((await kling.get(`${path}/job-7`)).body).toMatchObject({ data: { task_status: "processing" } })
})

test("one of the vendor's own words brings its state with it", async () => {
  const id = await kling.begin({ ...lasting.queued, words: ["processing", "failed", "succeed"] })
  await kling.look(id)
  expect((await kling.look(id)).body).toMatchObject({ data: { task_status_msg: "Task execution failed" } })
  expect((await kling.look(id)).body).toMatchObject({ data: { task_result: { videos: [{ duration: "5.0" }] } } })
  expect((await kling.look(id)).body).toMatchObject({ data: { task_status: "submitted" } })
})

test("ten thousand jobs are held without a timer, and each can be asked for", async () => {
  const fill = stand.simulator.vendor("crowd")
  // Its ids are short enough that two of them would meet by chance.
  const vendor = { ...videoVendors[1]!, name: "crowd" }
  const client = videoClient(stand, vendor)
  fill.behave(ended())
  fill.keepBodies = false
  const ids: string[] = []
  await Promise.all(
    Array.from({ length: 50 }, async () => {
      for (let made = 0; made < 200; made++) ids.push(await client.begin())
    }),
  )
  expect([ids.length, new Set(ids).size, fill.memory.videos.size]).toEqual([10_000, 10_000, 10_000])
  for (const id of [ids[0]!, ids[5000]!, ids[9999]!]) {
    expect((await client.look(id)).body).toMatchObject({ id, status: "succeeded" })
  }
}, 20_000)

test("the vendor forgets its jobs when it is reset", async () => {
  const id = await kling.begin(lasting.queued, { ...body, external_task_id: "job-9" })
  stand.vendor.reset()
  expect((await kling.look(id)).status).toBe(404)
  expect((await kling.submit(lasting.queued, { ...body, external_task_id: "job-9" })).status).toBe(200)
  expect(stand.vendor.memory.submits.get("job-9")).toBe(1)
})
