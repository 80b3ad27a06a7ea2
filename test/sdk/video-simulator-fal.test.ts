import { expect, test } from "bun:test"
import { ApiError, createFalClient, type FalClient, ValidationError } from "@fal-ai/client"
import { failureOf, standWith } from "../../simulator/testing/stand.ts"
import { ended, key, lasting } from "../../simulator/testing/video-vendors.ts"

const stand = standWith("fal")
const app = "fal-ai/veo3.1/fast"
const input = { prompt: "a fox in snow", aspect_ratio: "16:9", duration: "8s", resolution: "720p" } as const

/** The SDK knows one host only, so requests to it are turned to the simulator. */
function client(credentials = key): FalClient {
  return createFalClient({
    credentials,
    suppressLocalCredentialsWarning: true,
    retry: { maxRetries: 0 },
    requestMiddleware: async (request) => ({
      ...request,
      url: request.url.replace("https://queue.fal.run", stand.home),
    }),
  })
}

test("a film is submitted, waited for and found with the SDK's own code", async () => {
  stand.vendor.behave({ kind: "video_job", queuedMs: 10, runningMs: 20, seconds: 7.9 })
  const seen = new Set<string>()
  const { data, requestId } = await client().subscribe(app, {
    input,
    pollInterval: 5,
    logs: true,
    onQueueUpdate: ({ status }) => void seen.add(status),
  })
  expect([...seen].at(-1)).toBe("COMPLETED")
  expect(stand.vendor.memory.videos.has(requestId)).toBe(true)
  const bytes = Buffer.from(await (await fetch(data.video.url)).arrayBuffer())
  expect(bytes.readUInt32BE(bytes.indexOf("mvhd") + 20)).toBe(7900)
})

test("the queue tells each stage", async () => {
  const { queue } = client()
  stand.vendor.behave(lasting.queued)
  const waiting = await queue.submit(app, { input })
  expect(waiting).toMatchObject({ status: "IN_QUEUE", queue_position: 0 })
  expect(await queue.status(app, { requestId: waiting.request_id })).toMatchObject({ status: "IN_QUEUE" })
  stand.vendor.behave(lasting.running)
  const { request_id: requestId } = await queue.submit(app, { input })
  expect(await queue.status(app, { requestId, logs: true })).toMatchObject({ status: "IN_PROGRESS", logs: [{}] })
  await queue.cancel(app, { requestId })
  expect(await failureOf(queue.result(app, { requestId }))).toMatchObject({ status: 499 })
})

test("a job that failed is completed, and its result is thrown", async () => {
  const { queue } = client()
  stand.vendor.behave(ended({ outcome: "moderated" }))
  const { request_id: requestId } = await queue.submit(app, { input })
  expect((await queue.status(app, { requestId })).status).toBe("COMPLETED")
  const refused = await failureOf(queue.result(app, { requestId }))
  expect(refused).toBeInstanceOf(ValidationError)
  expect(refused instanceof ValidationError && refused.fieldErrors).toMatchObject([
    { type: "content_policy_violation" },
  ])
})

test("a wrong key and a wrong length are the SDK's own errors", async () => {
  stand.vendor.expectKey("another")
  const foreign = await failureOf(client().queue.submit(app, { input }))
  expect(foreign).toBeInstanceOf(ApiError)
  expect(foreign).toMatchObject({ status: 401 })
  stand.vendor.expectKey(null)
  const wrong = await failureOf(client().queue.submit("fal-ai/veo3.1/odd", { input: { ...input, duration: 8 } }))
  expect(wrong instanceof ValidationError && wrong.getFieldErrors("duration")).toHaveLength(1)
})
