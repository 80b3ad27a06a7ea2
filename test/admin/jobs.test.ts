import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { saveLooks } from "../../src/store/job-claims.ts"
import { hideJob } from "../../src/store/job-lists.ts"
import { completeJob, failJob } from "../../src/store/job-settlement.ts"
import { insertJob } from "../../src/store/jobs.ts"
import { engines, type FreshStore, freshStore, slowStart } from "../store/engines.ts"
import { completionOf, klingRoute, lookAt, newJob, queuedJob, submitter } from "../store/job-samples.ts"
import { idOf } from "../store/records.ts"
import { type BackOffice, openBackOffice, refusalOf } from "./back-office.ts"

interface JobPage {
  readonly data: readonly { readonly id: string }[]
  readonly next: string | null
}

const account = { plan: "default", concurrency: null, keys: [] }
const noon = Date.parse("2026-11-15T12:00:00Z")
const seconds = (count: number): number => noon + count * 1000

const done = "00000000-0000-7000-8000-000000000001"
const failed = "00000000-0000-7000-8000-000000000002"
const fresh = "00000000-0000-7000-8000-000000000003"
const running = "00000000-0000-7000-8000-000000000004"

const runwayRoute = {
  ...klingRoute,
  upstream: "runway-eu",
  vendor: "runway",
  upstreamModel: "gen4.5",
  sentSeconds: null,
}

describe.each([...engines])("jobs on %s", (engine) => {
  let database: FreshStore
  let office: BackOffice
  beforeAll(async () => {
    database = await freshStore(engine)
    const { store } = database
    office = await openBackOffice(store, {
      plans: [{ name: "default", concurrency: 0, models: ["*"], priceMultiplier: "1" }],
      accounts: [
        { ...account, name: "acme", balance: "10" },
        { ...account, name: "other", balance: null },
        { ...account, name: "many", balance: null },
      ],
    })
    const [acme, other] = [await idOf(store, "acme"), await idOf(store, "other")]
    await queuedJob(store, acme, { id: done, requestId: "req_done", createdAt: noon, nextLookAt: seconds(2) })
    await saveLooks(store, [lookAt(done, 1, { state: "in_progress", lookedAt: seconds(2), nextLookAt: seconds(5) })])
    await completeJob(
      store,
      completionOf(done, 1, {
        finishedAt: seconds(5),
        needsCredential: true,
        microseconds: 5_041_667,
        secondsSource: "probed",
        charge: { amount: 529_375_035n, price: { version: 3, multiplier: "1.5", units: { second: "0.07" } } },
      }),
    )
    await queuedJob(store, other, { id: failed, createdAt: seconds(10), route: runwayRoute, model: "runway" })
    const verdict = { finishedAt: seconds(12), error: "the picture was refused", trouble: "moderation: input" }
    await failJob(store, { id: failed, fence: 1, ...verdict })
    await insertJob(store.db, newJob(acme, { id: fresh, createdAt: seconds(20), withImage: false }), submitter)
    await queuedJob(store, acme, { id: running, createdAt: seconds(30) })
    const trouble = { trouble: "429 slow down", missingSince: seconds(31), nextLookAt: seconds(40) }
    await saveLooks(store, [lookAt(running, 1, { state: "in_progress", lookedAt: seconds(35), ...trouble })])
    await hideJob(store.db, acme, running)
  }, slowStart)
  afterAll(async () => {
    await office.stop()
    await database.close()
  })

  const ids = async (query: string): Promise<readonly string[]> =>
    (await office.read<JobPage>(`/api/jobs?${query}`)).data.map(({ id }) => id)

  test("one job tells its whole story, and nothing of the credential it was sent with", async () => {
    const accountId = await idOf(database.store, "acme")
    expect(await office.read(`/api/jobs/${done}`)).toEqual({
      id: done,
      account: "acme",
      account_id: accountId,
      key: "ci",
      key_id: "key-1",
      request_id: "req_done",
      model: "kling-video",
      with_image: true,
      upstream: "kling-main",
      vendor: "kling",
      upstream_model: "kling-v3",
      reference: "task-1",
      state: "completed",
      deleted: false,
      created_at: "2026-11-15T12:00:00.000Z",
      submitted_at: expect.any(String),
      finished_at: "2026-11-15T12:00:05.000Z",
      last_look_at: "2026-11-15T12:00:02.000Z",
      next_look_at: null,
      missing_since: null,
      polls: 1,
      sent_seconds: 5,
      seconds: "5.041667",
      seconds_source: "probed",
      attempts: [
        {
          upstream: "azure-east",
          upstream_model: "gpt5-deploy",
          why: "first by priority",
          started_ms: 1.5,
          ended_ms: 20.25,
          outcome: "upstream_error",
          status: 500,
          detail: expect.stringContaining('said "no"'),
        },
        {
          upstream: "openai-main",
          upstream_model: "gpt-5-2026-08",
          why: "next by priority",
          started_ms: 21,
          ended_ms: null,
          outcome: "answered",
          status: 200,
          detail: null,
        },
      ],
      result: { url: "https://cdn.kling.example/v.mp4", needs_credential: true, kept: false },
      price: { version: 3, multiplier: "1.5", units: { second: "0.07" } },
      charge: "0.529375035",
      balance_after: "9.470624965",
      error: null,
      trouble: null,
    })
  })

  test("the ledger line of a job is found by the job's id and says how its length was known", async () => {
    const { data } = await office.read<{ data: readonly object[] }>(`/api/ledger?reference=video_${done}`)
    expect(data).toMatchObject([
      {
        account: "acme",
        kind: "charge",
        amount: "-0.529375035",
        estimated: true,
        measured: { model: "kling-video", endpoint: "video", seconds: "5.041667", seconds_source: "probed" },
      },
    ])
  })

  test("a job that failed says what its caller was told and what was behind it, and costs nothing", async () => {
    expect(await office.read(`/api/jobs/${failed}`)).toMatchObject({
      account: "other",
      state: "failed",
      sent_seconds: null,
      error: "the picture was refused",
      trouble: "moderation: input",
      next_look_at: null,
      seconds: null,
      seconds_source: null,
      result: null,
      price: null,
      charge: "0",
      balance_after: null,
    })
  })

  test("a job that nobody has taken yet has no reference and no attempts", async () => {
    expect(await office.read(`/api/jobs/${fresh}`)).toMatchObject({
      state: "submitting",
      with_image: false,
      reference: null,
      submitted_at: null,
      finished_at: null,
      last_look_at: null,
      polls: 0,
      attempts: [],
    })
  })

  test("a job that its caller has deleted is still there, marked, with the trouble of its last look", async () => {
    expect(await office.read(`/api/jobs/${running}`)).toMatchObject({
      state: "in_progress",
      deleted: true,
      trouble: "429 slow down",
      missing_since: "2026-11-15T12:00:31.000Z",
      last_look_at: "2026-11-15T12:00:35.000Z",
      next_look_at: "2026-11-15T12:00:40.000Z",
      polls: 1,
    })
  })

  test("a list has the jobs without the rest of their stories, newest first", async () => {
    const { data } = await office.read<JobPage>("/api/jobs")
    expect(data.map(({ id }) => id)).toEqual([running, fresh, failed, done])
    const whole = await office.read(`/api/jobs/${done}`)
    for (const field of ["attempts", "result", "price", "balance_after", "sent_seconds", "missing_since"])
      delete whole[field]
    expect(data[3] as object).toEqual(whole)
  })

  test("an id that nothing has is 404", async () => {
    expect(await refusalOf(await office.ask("/api/jobs/nothing"))).toEqual({
      status: 404,
      code: "not_found",
      message: 'there is no job "nothing"',
    })
  })

  test.each([
    ["account=other", [failed]],
    ["model=kling-video", [running, fresh, done]],
    ["upstream=runway-eu", [failed]],
    ["vendor=kling&state=completed", [done]],
    ["vendor=vidu", []],
    ["state=submitting", [fresh]],
    ["state=in_progress", [running]],
    ["since=2026-11-15T12:00:20Z", [running, fresh]],
    ["since=2026-11-15T12:00:10Z&until=2026-11-15T12:00:20Z", [failed]],
    ["account=acme&until=2026-11-15T12:00:01Z", [done]],
  ])("filter %s", async (query, expected) => {
    expect(await ids(query)).toEqual(expected)
  })

  test("a filter that nothing could fit is refused and says what could", async () => {
    const message = async (query: string) => (await refusalOf(await office.ask(`/api/jobs?${query}`))).message
    expect(await message("state=done")).toBe("state must be one of submitting, queued, in_progress, completed, failed")
    expect(await message("account=nobody")).toBe('there is no account "nobody"')
    expect(await message("vender=kling")).toBe("vender is not a parameter of this address (did you mean vendor?)")
    const { next } = await office.read<JobPage>("/api/ledger?limit=1")
    expect(await message(`cursor=${next}`)).toBe("cursor must be the `next` of an earlier page of this list")
  })

  test("pages show each job once and in order where many were made in the same millisecond", async () => {
    const many = await idOf(database.store, "many")
    const idAt = (n: number): string => `00000000-0000-7000-8000-00000000010${n}`
    for (const [n, second] of [3, 2, 2, 2, 2, 2, 1].entries())
      await queuedJob(database.store, many, { id: idAt(n), createdAt: seconds(second) })
    const seen: string[] = []
    let cursor: string | null = ""
    while (cursor !== null) {
      const more: string = cursor === "" ? "" : `&cursor=${cursor}`
      const page: JobPage = await office.read<JobPage>(`/api/jobs?account=many&limit=2${more}`)
      seen.push(...page.data.map(({ id }) => id))
      cursor = page.next
    }
    expect(seen).toEqual([0, 5, 4, 3, 2, 1, 6].map(idAt))
  })
})
