import { afterAll, beforeAll, expect, test } from "bun:test"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import { model, startGateway, type TestGateway, testAdminToken, upstream } from "../support/gateway.ts"

let simulator: Simulator
let gateway: TestGateway
beforeAll(async () => {
  simulator = await startSimulator()
  gateway = await startGateway({
    upstreams: ["strict", "unclear", "kind"].map((name) =>
      upstream(name, simulator.vendor(name).baseUrl, { vendor: "openai-compatible" }),
    ),
    models: [model("film", ["strict", "kind"]), model("doubtful", ["unclear"])],
  })
})
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
})

async function submitted(name: string): Promise<{ story: string; row: string; log: string }> {
  const response = await fetch(`${gateway.url}/v1/videos`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.key}` },
    body: JSON.stringify({ model: name, prompt: "a gate" }),
  })
  const { id } = (await response.json()) as { id: string }
  const told = await fetch(`${gateway.url}/api/jobs/${id}`, { headers: { authorization: `Bearer ${testAdminToken}` } })
  const row = await gateway.store.db.selectFrom("jobs").selectAll().where("id", "=", id).executeTakeFirstOrThrow()
  const columns = JSON.stringify(row, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value))
  return { story: await told.text(), row: columns, log: JSON.stringify(gateway.failedAttempts) }
}

test("a vendor that repeats the credential in its refusal: the job, the back office and the log have it blanked out", async () => {
  const message = "Incorrect API key provided: credential-of-strict."
  simulator
    .vendor("strict")
    .behave({ kind: "video_job", submit: { status: 401, json: { error: { message, code: "invalid_api_key" } } } })
  const { story, row, log } = await submitted("film")
  for (const text of [story, row, log]) {
    expect(text).toContain("Incorrect API key provided: ***.")
    expect(text).not.toContain("credential-of-")
  }
  expect(JSON.parse(story).attempts).toMatchObject([{ status: 401 }, { outcome: "answered", status: 200 }])
})

test("a vendor that repeats it in an answer that nobody can read: neither the attempt nor the trouble has it", async () => {
  const json = { note: "you sent credential-of-unclear" }
  simulator.vendor("unclear").behave({ kind: "video_job", submit: { status: 200, json } })
  const { story, row } = await submitted("doubtful")
  for (const text of [story, row]) {
    expect(text).toContain("you sent ***")
    expect(text).not.toContain("credential-of-")
  }
  expect(JSON.parse(story).attempts).toMatchObject([{ upstream: "unclear", outcome: "in_doubt" }])
})
