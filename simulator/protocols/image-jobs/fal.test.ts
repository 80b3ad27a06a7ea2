import { expect, test } from "bun:test"
import type { BehaviourOf } from "../../behaviour.ts"
import { call, polls, postJson, type Seen } from "../../testing/job-client.ts"
import { standWith } from "../../testing/stand.ts"

const stand = standWith("queue")
const key = { authorization: "Key id:secret" }
const ask = { prompt: "a fox", num_images: 2 }

interface Links {
  readonly status_url: string
  readonly response_url: string
  readonly cancel_url: string
}

function submit(step: Partial<BehaviourOf<"image_job">> = {}, body: object = ask): Promise<Seen> {
  stand.vendor.behave({ kind: "image_job", ...step })
  return postJson(`${stand.home}/fal-ai/flux/dev/image-to-image`, body, key)
}

const get = (url: string): Promise<Seen> => call(url, { headers: key })
const linksOf = ({ body }: Seen): Links => body as unknown as Links

/** A job that is over at once: what its status says, and its result. */
async function outcome(step: Partial<BehaviourOf<"image_job">>, body: object = ask): Promise<readonly [Seen, Seen]> {
  const links = linksOf(await submit({ waitPolls: 0, ...step }, body))
  return [await get(links.status_url), await get(links.response_url)]
}

test("a request waits in the queue, is in progress, then completed, with pictures in its result", async () => {
  const submitted = await submit()
  const { status_url, response_url, cancel_url } = linksOf(submitted)
  expect(submitted).toMatchObject({ status: 200, body: { status: "IN_QUEUE", queue_position: 0 } })
  // The addresses have owner and app only.
  expect(response_url).toBe(`${stand.home}/fal-ai/flux/requests/${submitted.body.request_id}`)
  expect([status_url, cancel_url]).toEqual([`${response_url}/status`, `${response_url}/cancel`])
  expect(await get(response_url)).toMatchObject({ status: 400, body: { detail: "Request is still in progress" } })
  const seen = await polls(3, () => get(`${status_url}?logs=0`))
  expect(seen.map(({ status, body }) => [status, body.status])).toEqual([
    [202, "IN_QUEUE"],
    [202, "IN_PROGRESS"],
    [200, "COMPLETED"],
  ])
  const result = await get(response_url)
  expect(result.body).toMatchObject({
    images: [{ content_type: "image/png", width: 8 }, {}],
    has_nsfw_concepts: [false, false],
  })
  const [image] = result.body.images as { url: string }[]
  expect((await fetch(image!.url)).status).toBe(200)
})

test("a failure is completed too, and only its result tells", async () => {
  const [status, result] = await outcome({ outcome: "failed" })
  expect(status).toMatchObject({ status: 200, body: { status: "COMPLETED" } })
  expect(result).toMatchObject({ status: 500, body: { error_type: "internal_error" } })
  expect(result.headers.get("x-fal-error-type")).toBe("internal_error")
  const [, moderated] = await outcome({ outcome: "moderated" })
  expect(moderated).toMatchObject({ status: 422, body: { detail: [{ type: "content_policy_violation" }] } })
  const [gone] = await outcome({ outcome: "expired" })
  expect(gone).toMatchObject({ status: 404, body: { detail: "Request not found" } })
})

test("words, shapes and data in place of addresses are as told", async () => {
  const [odd] = await outcome({ waitPolls: 1, waitingWord: "WARMING_UP" })
  expect(odd.body.status).toBe("WARMING_UP")
  const [, single] = await outcome({ shape: "single" })
  expect(single.body).toMatchObject({ image: { url: expect.stringContaining("/files/") } })
  const [, data] = await outcome({}, { ...ask, sync_mode: true })
  expect(data.body).toMatchObject({ images: [{ url: expect.stringContaining("data:image/png;base64,") }, {}] })
})

test("a request can be cancelled until it is completed", async () => {
  const { cancel_url, status_url, response_url } = linksOf(await submit())
  const cancel = (url: string): Promise<Seen> => call(url, { method: "PUT", headers: key })
  expect(await cancel(cancel_url)).toMatchObject({ status: 202, body: { status: "CANCELLATION_REQUESTED" } })
  expect((await get(status_url)).body.status).toBe("COMPLETED")
  expect(await get(response_url)).toMatchObject({ status: 499, body: { error_type: "client_cancelled" } })
  expect(await cancel(cancel_url)).toMatchObject({ status: 400, body: { status: "ALREADY_COMPLETED" } })
})

test("a submit is refused in the vendor's words", async () => {
  expect(await submit({}, {})).toMatchObject({ status: 422, body: { detail: [{ loc: ["body", "prompt"] }] } })
  for (const status of [401, 402, 429]) {
    stand.vendor.behave({ kind: "status", status })
    const refused = await postJson(`${stand.home}/fal-ai/flux`, ask, key)
    expect(refused).toMatchObject({ status, body: { detail: expect.any(String), error_type: expect.any(String) } })
  }
})

test("any app's path is the vendor's only if its key or its name says so", async () => {
  const statusAt = async (vendor: string): Promise<number> =>
    (await postJson(`${stand.simulator.url}/${vendor}/fal-ai/flux`, ask)).status
  expect(await statusAt("fal")).toBe(200)
  expect(await statusAt("fal-2")).toBe(200)
  expect(await statusAt("fallback")).toBe(404)
})
