import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { engines, type FreshStore, freshStore, slowStart } from "../store/engines.ts"
import { sampleRecord } from "../support/request-records.ts"
import { type BackOffice, openBackOffice, refusalOf } from "./back-office.ts"
import { record } from "./samples.ts"

interface Posted {
  readonly id: string
  readonly amount: string
  readonly balance: string
  readonly balance_after: string
  readonly reference: string
  readonly [field: string]: unknown
}

const largest = "9223372036.854775807"
const smallest = "-9223372036.854775808"
const account = { plan: "default", concurrency: null, balance: null, keys: [] }

describe.each([...engines])("postings on %s", (engine) => {
  let fresh: FreshStore
  let office: BackOffice
  const changed: string[] = []
  beforeAll(async () => {
    fresh = await freshStore(engine)
    office = await openBackOffice(
      fresh.store,
      {
        plans: [{ name: "default", concurrency: 0, models: ["*"], priceMultiplier: "1" }],
        accounts: ["payer", "other", "rich", "busy", "wrong", "untouched"].map((name) => ({ ...account, name })),
      },
      { balanceChanged: (accountId) => changed.push(accountId) },
    )
  }, slowStart)
  afterAll(async () => {
    await office.stop()
    await fresh.close()
  })

  async function post(who: string, kind: "topups" | "adjustments", body: object) {
    const response = await office.send(`/api/accounts/${who}/${kind}`, body)
    return { status: response.status, body: (await response.json()) as Posted }
  }

  async function refused(who: string, kind: "topups" | "adjustments", body: unknown): Promise<string> {
    const refusal = await refusalOf(await office.send(`/api/accounts/${who}/${kind}`, body))
    expect([refusal.status, refusal.code]).toEqual([400, "invalid_parameter"])
    return refusal.message
  }

  const balance = async (who: string): Promise<string> =>
    (await office.read<{ balance: string }>(`/api/accounts/${who}`)).balance

  test("a top-up answers with its line and the balance, and tells the instance whose money it was", async () => {
    const { id } = await office.read<{ id: string }>("/api/accounts/payer")
    changed.length = 0
    const first = await post("payer", "topups", { amount: "25.00", note: "invoice 7", reference: "pay-1" })
    expect(first).toEqual({
      status: 201,
      body: {
        id: expect.stringMatching(/^\d+$/),
        account: "payer",
        kind: "topup",
        amount: "25",
        balance_after: "25",
        reference: "pay-1",
        note: "invoice 7",
        measured: null,
        price: null,
        estimated: false,
        usage_invalid: false,
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        balance: "25",
      },
    })
    expect(changed).toEqual([id])
    expect(await balance("payer")).toBe("25")
    expect(await post(id, "topups", { amount: "0.000000001" })).toMatchObject({
      status: 201,
      body: { account: "payer", amount: "0.000000001", balance: "25.000000001", note: null },
    })
  })

  test("a reference posts once: later it answers 200 with the same line and today's balance", async () => {
    const first = await post("payer", "topups", { amount: "3.50", reference: "pay-2" })
    const line = { ...first.body, balance: undefined }
    await post("payer", "topups", { amount: "1" })
    const before = await balance("payer")
    const again = await post("payer", "topups", { amount: "3.5", reference: "pay-2", note: "told differently" })
    expect([again.status, again.body.balance]).toEqual([200, before])
    expect({ ...again.body, balance: undefined }).toEqual(line)
    expect(await balance("payer")).toBe(before)
  })

  test("without a reference every post counts, each under a reference of its own", async () => {
    const before = Number(await balance("other"))
    const posts = [await post("other", "topups", { amount: "1" }), await post("other", "topups", { amount: "1" })]
    expect(posts.map(({ status }) => status)).toEqual([201, 201])
    const [first, second] = posts.map(({ body }) => body.reference)
    expect(first).toMatch(/^topup_[0-9a-f-]{36}$/)
    expect(second).not.toBe(first)
    expect(Number(await balance("other"))).toBe(before + 2)
    const adjustment = await post("other", "adjustments", { amount: "-2", note: "undone" })
    expect(adjustment.body.reference).toMatch(/^adjustment_[0-9a-f-]{36}$/)
  })

  test("20 posts of one reference at once post once, and all are told the same line", async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => post("busy", "topups", { amount: "7", reference: "at-once" })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array<number>(19).fill(200), 201])
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1)
    expect(await balance("busy")).toBe("7")
    expect((await office.read<{ data: object[] }>("/api/ledger?account=busy")).data).toHaveLength(1)
  })

  test("one reference for two accounts at once goes to one of them; the other is told which", async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, async (_, n) => {
        const who = n % 2 === 0 ? "busy" : "other"
        const response = await office.send(`/api/accounts/${who}/topups`, { amount: "1", reference: "contested" })
        return { who, status: response.status, text: await response.text() }
      }),
    )
    const [winner] = (await office.read<{ data: Posted[] }>("/api/ledger?reference=contested")).data
    for (const { who, status, text } of answers) {
      if (who === winner!.account) expect([200, 201]).toContain(status)
      else expect([status, text]).toEqual([400, expect.stringContaining(`on account \\"${winner!.account}\\"`)])
    }
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
  })

  test("a reference that was used for something else is refused and says for what", async () => {
    const charged = "req_00000000000070008000000000000001"
    await record(fresh.store, sampleRecord(charged, { accountId: "wrong", charge: 1_500_000_000n }))
    await post("wrong", "topups", { amount: "10", reference: "used" })
    const before = await balance("wrong")
    const topup = 'reference "used" was already used for a top-up of 10 dollars on account "wrong"'
    expect(await refused("wrong", "topups", { amount: "10.000000001", reference: "used" })).toBe(topup)
    expect(await refused("other", "topups", { amount: "10", reference: "used" })).toBe(topup)
    expect(await refused("wrong", "adjustments", { amount: "10", reference: "used", note: "n" })).toBe(topup)
    expect(await refused("wrong", "adjustments", { amount: "-1.5", reference: charged, note: "n" })).toBe(
      `reference "${charged}" was already used for a charge of -1.5 dollars on account "wrong"`,
    )
    const toCome = "req_00000000000070008000000000000002"
    expect(await refused("wrong", "topups", { amount: "1", reference: toCome })).toContain(`"refund:${toCome}"`)
    expect(await balance("wrong")).toBe(before)
  })

  test("an adjustment goes up or down, also below zero, and posts once per reference", async () => {
    const down = await post("wrong", "adjustments", { amount: "-100.25", note: "billed by mistake", reference: "fix" })
    expect(down).toMatchObject({
      status: 201,
      body: { kind: "adjustment", amount: "-100.25", note: "billed by mistake", balance: "-91.75" },
    })
    expect(await post("wrong", "adjustments", { amount: "-100.25", note: "again", reference: "fix" })).toMatchObject({
      status: 200,
      body: { note: "billed by mistake", balance: "-91.75" },
    })
    expect((await post("wrong", "adjustments", { amount: "91.75", note: "back" })).body.balance).toBe("0")
  })

  test("amounts up to 2^63 - 1 billionths are exact; what the balance could not hold is refused in dollars", async () => {
    const most = await post("rich", "topups", { amount: largest, reference: "most" })
    expect(most).toMatchObject({ status: 201, body: { amount: largest, balance: largest, balance_after: largest } })
    expect((await post("rich", "topups", { amount: largest, reference: "most" })).status).toBe(200)
    expect(await refused("rich", "topups", { amount: "0.000000001" })).toBe(
      `amount would take the balance to 9223372036.854775808 dollars, beyond what can be kept (${smallest} to ${largest})`,
    )
    await post("rich", "adjustments", { amount: `-${largest}`, note: "n" })
    expect((await post("rich", "adjustments", { amount: smallest, note: "n" })).body.balance).toBe(smallest)
    expect(await balance("rich")).toBe(smallest)
    expect(await refused("rich", "adjustments", { amount: "-0.000000001", note: "n" })).toContain(
      "beyond what can be kept",
    )
  })

  const text = 'amount must be text such as "25.00", with at most nine decimals; a JSON number is not exact'
  const control = "must not contain control characters"
  test.each<[why: string, kind: "topups" | "adjustments", body: object, message: string]>([
    ["a number", "topups", { amount: 25 }, text],
    ["no amount", "topups", {}, text],
    ["null", "topups", { amount: null }, text],
    ["nothing in it", "topups", { amount: "" }, text],
    ["ten decimals", "topups", { amount: "1.0000000000" }, text],
    ["an exponent", "topups", { amount: "1e3" }, text],
    ["a comma", "topups", { amount: "1,5" }, text],
    ["a plus", "topups", { amount: "+1" }, text],
    ["spaces", "topups", { amount: " 1 " }, text],
    ["a line break", "topups", { amount: "1\n" }, text],
    ["zero", "topups", { amount: "0.00" }, "amount must be above zero"],
    ["below zero", "topups", { amount: "-1" }, "amount must be above zero"],
    ["too much", "topups", { amount: "9223372036.854775808" }, `amount must be at most ${largest}`],
    ["far too much", "topups", { amount: "9".repeat(31) }, text],
    ["zero", "adjustments", { amount: "0", note: "n" }, "amount must not be zero"],
    ["minus zero", "adjustments", { amount: "-0", note: "n" }, "amount must not be zero"],
    [
      "too little",
      "adjustments",
      { amount: "-9223372036.854775809", note: "n" },
      `amount must be at least ${smallest}`,
    ],
    ["a long note", "topups", { amount: "1", note: "x".repeat(501) }, "note must have at most 500 characters"],
    [
      "a long reference",
      "topups",
      { amount: "1", reference: "x".repeat(201) },
      "reference must have at most 200 characters",
    ],
    ["no reference in it", "topups", { amount: "1", reference: "" }, "reference must not be empty"],
    ["a null character", "topups", { amount: "1", reference: "a\0" }, `reference ${control}`],
    ["a null character", "topups", { amount: "1", note: "a\0" }, `note ${control}`],
    ["an unknown field", "topups", { amount: "1", nota: "n" }, "nota is not a field of this body (did you mean note?)"],
    ["no note", "adjustments", { amount: "1" }, "note must be text"],
    ["a number", "topups", { amount: "1", reference: 5 }, "reference must be text"],
    ["a note of spaces", "adjustments", { amount: "1", note: " " }, "note must say what the adjustment is for"],
  ])("refused: %s in %s %j", async (_, kind, body, message) => {
    expect(await refused("untouched", kind, body)).toBe(message)
    expect(await balance("untouched")).toBe("0")
  })

  test("the longest note and reference are kept as they are", async () => {
    const note = "ö".repeat(500)
    const reference = `€ %/"\\ ${"x".repeat(193)}`
    const { status, body } = await post("other", "topups", { amount: "1", note, reference })
    expect([status, body.note, body.reference]).toEqual([201, note, reference])
    const found = await office.read<{ data: Posted[] }>(`/api/ledger?reference=${encodeURIComponent(reference)}`)
    expect(found.data.map(({ id }) => id)).toEqual([body.id])
  })

  test("a body that is no JSON object, not said to be JSON or too large is refused; nothing is posted", async () => {
    const path = "/api/accounts/untouched/topups"
    const code = async (response: Response) => {
      const { status, code: told } = await refusalOf(response)
      return [status, told]
    }
    for (const body of ["", "{", "amount=1", '{"amount":"1"}x']) {
      expect(await code(await office.send(path, body))).toEqual([400, "invalid_json"])
    }
    for (const body of ["[]", "null", '"1"', "5"]) {
      expect(await code(await office.send(path, body))).toEqual([400, "invalid_json"])
    }
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonx"]) {
      const response = await office.send(path, { amount: "1" }, { "content-type": type })
      expect(await code(response)).toEqual([415, "unsupported_media_type"])
    }
    const large = JSON.stringify({ amount: "1", note: "x".repeat(70_000) })
    expect(await code(await office.send(path, large))).toEqual([413, "request_body_too_large"])
    const chunked = new ReadableStream({
      pull(sink) {
        sink.enqueue(new TextEncoder().encode(large))
        sink.close()
      },
    })
    const headers = { ...office.headers, "content-type": "application/json" }
    expect(await code(await fetch(office.url + path, { method: "POST", headers, body: chunked }))).toEqual([
      413,
      "request_body_too_large",
    ])
    expect(await balance("untouched")).toBe("0")
  })

  test("a body with a charset is JSON too", async () => {
    const type = { "content-type": "Application/JSON; charset=utf-8" }
    expect((await office.send("/api/accounts/other/topups", { amount: "1" }, type)).status).toBe(201)
  })

  test("an account that does not exist is 404, and no parameters are taken", async () => {
    expect(await refusalOf(await office.send("/api/accounts/nobody/topups", { amount: "1" }))).toEqual({
      status: 404,
      code: "not_found",
      message: 'there is no account "nobody"',
    })
    const refusal = await refusalOf(await office.send("/api/accounts/other/topups?reference=x", { amount: "1" }))
    expect(refusal.message).toBe("reference is not a parameter of this address")
  })
})
