import { readAsk } from "../admission/ask.ts"
import type { Call } from "../admission/call.ts"
import { modelFor, takeSlot } from "../admission/gates.ts"
import { beginStory, endStory, endStoryWith } from "../admission/story.ts"
import { planOf } from "../catalog/plans.ts"
import { tariffFor } from "../catalog/tariffs.ts"
import { nothingMeasured } from "../core/measured.ts"
import { chargeFor, type Tariff } from "../core/price.ts"
import type { Story } from "../core/story.ts"
import type { VideoJob } from "../core/video-job.ts"
import { mebibyte } from "../lib/bytes.ts"
import { errorFor, type Failure } from "../routing/failure.ts"
import { readVideoAsk } from "./ask.ts"
import { newJob } from "./draft.ts"
import { type Offer, offersFor } from "./offer.ts"
import type { VideoParts } from "./parts.ts"
import { place } from "./place.ts"

const rules = { bodyLimit: 32 * mebibyte, bodies: ["json"], requestFields: [] } as const

/** `POST /v1/videos`, told in order: read it, admit it, write the job down, find a vendor that takes it. */
export async function submitVideo(call: Call, house: VideoParts): Promise<VideoJob | Response> {
  const ask = await readAsk(call.request, rules)
  const wanted = readVideoAsk(ask.json())
  const snapshot = house.snapshot()
  const plan = planOf(snapshot, call.principal)
  const { model, routes } = modelFor(ask.model, snapshot, plan, "video")
  const tariff = tariffFor(snapshot, model, plan)
  const story = beginStory(call, "video", { model: model.name, stream: false }, tariff)
  try {
    const { offers, refusal } = offersFor(wanted, routes)
    await house.ledger.admit(call.principal.accountId, costOf(tariff, offers[0]))
    await takeSlot(call, plan, house.limiter)
    if (refusal !== null && offers.length === 0) throw refusal
    const placed = await place(newJob(call, wanted, story), { wanted, offers, call, story }, house)
    if (placed.kind === "failure") return await refuse(placed, story, call, house)
    await endStory(story, "completed", null, call, house)
    return placed.job
  } catch (error) {
    await endStoryWith(error, story, call, house)
    throw error
  }
}

/** What the video will cost if it comes out as it is asked for. */
function costOf(tariff: Tariff, offer: Offer | undefined): bigint {
  const microseconds = (offer?.seconds ?? 0) * 1_000_000
  return chargeFor(tariff, { ...nothingMeasured, microseconds }).amount
}

/** The vendor's own 4xx is the caller's to read. */
async function refuse(failure: Failure, story: Story, call: Call, house: VideoParts): Promise<Response> {
  const { answer } = failure
  if (answer === undefined || answer.status >= 500) throw errorFor(failure, false)
  story.status = answer.status
  await endStory(story, "refused", null, call, house)
  return new Response(answer.body, {
    status: answer.status,
    headers: { ...answer.headers, "x-request-id": call.requestId },
  })
}
