import { expect, test } from "bun:test"
import RunwayML, { APIError, AuthenticationError, BadRequestError, NotFoundError, TaskFailedError } from "@runwayml/sdk"
import { failureOf, standWith } from "../../simulator/testing/stand.ts"
import { ended, key, lasting } from "../../simulator/testing/video-vendors.ts"

const stand = standWith("runway")

function client(apiKey = key): RunwayML {
  return new RunwayML({ apiKey, baseURL: stand.home, maxRetries: 0 })
}

const ask = { model: "gen4.5", promptText: "A fox running through snow", ratio: "1280:720", duration: 5 } as const

test("a film is made from text, and the task tells its way", async () => {
  stand.vendor.behave({ ...lasting.queued, words: ["THROTTLED", "PENDING", "RUNNING", "SUCCEEDED"] })
  const { tasks, textToVideo } = client()
  const { id } = await textToVideo.create(ask)
  const seen: string[] = []
  for (let poll = 0; poll < 4; poll++) seen.push((await tasks.retrieve(id)).status)
  expect(seen).toEqual(["THROTTLED", "PENDING", "RUNNING", "SUCCEEDED"])
})

test("the SDK's own waiting brings the film of a picture", async () => {
  stand.vendor.behave(ended({ seconds: 5.04 }))
  const { tasks, imageToVideo } = client()
  const { id } = await imageToVideo.create({ ...ask, ratio: "960:960", promptImage: "https://example.com/fox.png" })
  const task = await tasks.retrieve(id).waitForTaskOutput()
  const bytes = Buffer.from(await (await fetch(task.output[0]!)).arrayBuffer())
  expect(bytes.readUInt32BE(bytes.indexOf("mvhd") + 20)).toBe(5040)
})

test("a task that failed is thrown with its code", async () => {
  stand.vendor.behave(ended({ outcome: "moderated" }))
  const { tasks, textToVideo } = client()
  const { id } = await textToVideo.create(ask)
  const failure = await failureOf(tasks.retrieve(id).waitForTaskOutput())
  expect(failure).toBeInstanceOf(TaskFailedError)
  expect(failure).toMatchObject({ taskDetails: { status: "FAILED", failureCode: "SAFETY.INPUT.TEXT" } })
})

test("a cancelled task is gone", async () => {
  stand.vendor.behave(lasting.running)
  const { tasks, textToVideo } = client()
  const { id } = await textToVideo.create(ask)
  await tasks.delete(id)
  expect(await failureOf(tasks.retrieve(id))).toBeInstanceOf(NotFoundError)
})

test("refusals are the SDK's own errors", async () => {
  const refused = await failureOf(client().textToVideo.create({ ...ask, duration: 11 }))
  expect(refused).toBeInstanceOf(BadRequestError)
  expect(refused).toMatchObject({ error: { error: "Validation of body failed" } })
  stand.vendor.expectKey("another")
  expect(await failureOf(client().textToVideo.create(ask))).toBeInstanceOf(AuthenticationError)
  stand.vendor.reset()
  stand.vendor.behave({ kind: "status", status: 429 })
  const limited = await failureOf(client().textToVideo.create(ask))
  expect(limited instanceof APIError && limited.status).toBe(429)
})
