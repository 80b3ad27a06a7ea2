import { expect, test } from "bun:test"
import Replicate from "replicate"
import { failureOf, standWith } from "../../simulator/testing/stand.ts"
import { ended, key, lasting } from "../../simulator/testing/video-vendors.ts"

const stand = standWith("replicate")
const model = "bytedance/seedance-1-pro"
const input = { prompt: "a fox", duration: 5, resolution: "720p" }

function client(auth = key): Replicate {
  return new Replicate({ auth, baseUrl: `${stand.home}/v1` })
}

test("run waits for the film and hands it over", async () => {
  stand.vendor.behave({ kind: "video_job", queuedMs: 10, runningMs: 20, seconds: 4.9 })
  // The SDK makes a file of addresses that begin with https; others it hands over as they are.
  const output = await client().run(model, { input })
  const bytes = Buffer.from(await (await fetch(String(output))).arrayBuffer())
  expect(bytes.readUInt32BE(bytes.indexOf("mvhd") + 20)).toBe(4900)
  expect(stand.vendor.calls.map(({ method }) => method)).toEqual(["POST", "GET"])
})

test("a prediction is created, polled and waited for", async () => {
  stand.vendor.behave({ kind: "video_job", queuedMs: 20, runningMs: 20 })
  const replicate = client()
  const created = await replicate.predictions.create({ model, input })
  expect(created).toMatchObject({ status: "starting", model, input, output: null })
  const done = await replicate.wait(created, { interval: 5 })
  expect(done).toMatchObject({ status: "succeeded", error: null, metrics: { predict_time: 0.02 } })
  expect((await fetch(String(done.output))).status).toBe(200)
})

test("a prediction is cancelled, or fails", async () => {
  const replicate = client()
  stand.vendor.behave(lasting.running)
  const { id } = await replicate.predictions.create({ model, input })
  expect((await replicate.predictions.cancel(id)).status).toBe("canceled")
  expect((await replicate.predictions.get(id)).status).toBe("canceled")
  stand.vendor.behave(ended({ outcome: "moderated" }))
  const failure = await failureOf(replicate.run(model, { input, wait: { mode: "poll", interval: 5 } }))
  expect(String(failure)).toContain("E005")
})

test("a wrong key and wrong input are the SDK's own errors", async () => {
  const wrong = await failureOf(client().predictions.create({ model, input: { ...input, duration: "5" } }))
  expect(wrong).toMatchObject({ name: "ApiError", response: { status: 422 } })
  stand.vendor.expectKey("another")
  expect(await failureOf(client().predictions.create({ model, input }))).toMatchObject({ response: { status: 401 } })
})
