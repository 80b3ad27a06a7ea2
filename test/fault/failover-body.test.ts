import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { eventually, headerOf } from "../support/gateway.ts"
import { expectError, expectSuccess, messages, scene } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => simulator.stop())

const megabyte = 1024 * 1024
const sha256 = (bytes: Uint8Array): string => new Bun.CryptoHasher("sha256").update(bytes).digest("hex")

describe("the body on its way to the next vendor", () => {
  for (const failure of ["reset", "close", "garbage"] as const) {
    test(`20 MB are replayed byte for byte, with the vendor's own model name and credential (${failure})`, async () => {
      await using stage = await scene(simulator, ["a", "b"], {
        routes: [
          { upstream: "a", model: "name-at-a", priority: 1 },
          { upstream: "b", model: "another, rather longer name at b", priority: 2 },
        ],
      })
      const [a, b] = [stage.vendor("a"), stage.vendor("b")]
      a.keepBodies = false
      b.keepBodies = false
      a.behave({ kind: failure })
      const pad = Buffer.alloc(20 * megabyte, "Grüße, 世界! ")
      const bodyFor = (name: string): Buffer =>
        Buffer.concat([
          Buffer.from('{ "messages": [{"role":"user","content":"'),
          pad.subarray(0, pad.lastIndexOf(" ")),
          Buffer.from(`"}],\n "model" : "${name}", "n": 1.0 }`),
        ])
      const response = await stage.gateway.chat(bodyFor("m"))
      expect(response.status).toBe(200)
      await response.bytes()
      expect(a.calls.map(({ bodySha256 }) => bodySha256)).toEqual(Array(2).fill(sha256(bodyFor("name-at-a"))))
      expect(b.calls.map(({ bodySha256 }) => bodySha256)).toEqual([sha256(bodyFor("another, rather longer name at b"))])
      expect(a.calls.map((call) => headerOf(call, "authorization"))).toEqual(Array(2).fill("Bearer credential-of-a"))
      expect(headerOf(b.calls[0]!, "authorization")).toBe("Bearer credential-of-b")
      expect(headerOf(b.calls[0]!, "content-length")).toBe(String(bodyFor("another, rather longer name at b").length))
    })
  }

  test("requests that fail over at the same time do not mix", async () => {
    await using stage = await scene(simulator, ["a", "b"])
    const [a, b] = [stage.vendor("a"), stage.vendor("b")]
    a.behave({ kind: "status", status: 429 })
    const asked = Array.from({ length: 40 }, (_, index) => `question ${index} ${"x".repeat(index * 1000)}`)
    const answers = await Promise.all(
      asked.map((content, index) => stage.ask(index % 2 === 0, { messages: [{ role: "user", content }] })),
    )
    for (const [index, answer] of answers.entries()) {
      expectSuccess(answer, index % 2 === 0)
      expect(answer.attempts).toEqual(["a:first:status", "b:next:answered"])
    }
    const askedOf = (calls: typeof a.calls): string[] =>
      calls.map(({ body }) => JSON.parse(Buffer.from(body).toString()).messages[0].content).sort()
    expect(askedOf(a.calls)).toEqual(asked.toSorted())
    expect(askedOf(b.calls)).toEqual(asked.toSorted())
  })

  test("each client gets the answer to its own question", async () => {
    await using stage = await scene(simulator, ["a", "b"])
    stage.vendor("a").behave({ kind: "status", status: 403 })
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        stage.ask(false, { messages: [{ role: "user", content: `no ${index}.` }] }),
      ),
    )
    for (const [index, answer] of answers.entries()) {
      expect(JSON.parse(answer.text).choices[0].message.content).toContain(`"no ${index}."`)
      expect(JSON.parse(answer.text).model).toBe("m-upstream")
    }
  })
})

describe("which route is asked", () => {
  test("inside one priority by weight, and a lower priority only when the first has failed", async () => {
    await using stage = await scene(simulator, ["a", "b", "c"], {
      routes: [
        { upstream: "a", priority: 1, weight: 300 },
        { upstream: "b", priority: 1, weight: 100 },
        { upstream: "c", priority: 2, weight: 1000 },
      ],
    })
    for (let round = 0; round < 20; round++) {
      const answers = await Promise.all(Array.from({ length: 20 }, () => stage.ask(false)))
      for (const answer of answers) expect(answer.status).toBe(200)
    }
    const [first = 0, second = 0, third] = stage.calls()
    expect(first + second).toBe(400)
    expect(third).toBe(0)
    // Three hundred are expected of the first; six standard deviations are about 52.
    expect(first).toBeGreaterThan(248)
    expect(first).toBeLessThan(352)
  })

  test("the other route of the same priority comes before a lower one", async () => {
    await using stage = await scene(simulator, ["a", "b", "c"], {
      routes: [
        { upstream: "c", priority: 2 },
        { upstream: "a", priority: 1 },
        { upstream: "b", priority: 1 },
      ],
    })
    stage.vendor("a").behave({ kind: "status", status: 403 })
    stage.vendor("b").behave({ kind: "status", status: 403 })
    for (let round = 0; round < 10; round++) expect((await stage.ask(false)).attempts.at(-1)).toBe("c:next:answered")
    expect(stage.calls()).toEqual([10, 10, 10])
  })
})

describe("a pool of keys", () => {
  const apiKeys = ["key-one-0001", "key-two-0002", "key-three-0003"]
  const pool = { each: { a: { apiKeys } } }

  test("keys are used in turn", async () => {
    await using stage = await scene(simulator, ["a"], pool)
    for (let round = 0; round < 9; round++) await stage.ask(round % 2 === 0)
    const used = stage.vendor("a").calls.map((call) => headerOf(call, "authorization"))
    expect(used).toEqual(
      Array(3)
        .fill(apiKeys.map((key) => `Bearer ${key}`))
        .flat(),
    )
  })

  for (const status of [401, 402, 403, 429]) {
    test(`a key that got ${status} rests while others remain`, async () => {
      await using stage = await scene(simulator, ["a", "b"], pool)
      const vendor = stage.vendor("a")
      vendor.behave({ kind: "chat" }, { kind: "status", status }, { kind: "chat" })
      for (let round = 0; round < 7; round++) expect((await stage.ask(false)).status).toBe(200)
      const used = vendor.calls.map((call) => headerOf(call, "authorization")?.slice("Bearer ".length))
      const [one, two, three] = apiKeys
      expect(used).toEqual([one, two, three, one, three, one, three])
      expect(stage.vendor("b").calls).toHaveLength(1)
    })
  }

  test("when every key rests, one is used all the same", async () => {
    await using stage = await scene(simulator, ["a"], pool)
    stage.vendor("a").behave({ kind: "status", status: 401 })
    for (let round = 0; round < 5; round++) expect((await stage.ask(false)).status).toBe(401)
    stage.vendor("a").behave({ kind: "chat" })
    expectSuccess(await stage.ask(false), false)
  })

  test("no key of the pool shows in a passed error", async () => {
    await using stage = await scene(simulator, ["a"], pool)
    for (const key of apiKeys) {
      stage.vendor("a").behave({ kind: "status", status: 422, body: `{"error":"${key} may not"}` })
      expect((await stage.ask(false)).text).toBe('{"error":"*** may not"}')
    }
  })
})

describe("an upstream's own limit of requests in flight", () => {
  const limited = { each: { a: { concurrency: 2 } } }

  for (const stream of [false, true]) {
    test(`a full route is passed over, and free again afterwards, ${stream ? "streamed" : "not streamed"}`, async () => {
      await using stage = await scene(simulator, ["a", "b"], limited)
      stage.vendor("a").behave({ kind: "chat", headDelayMs: 600 })
      const slow = [stage.ask(stream), stage.ask(stream)]
      await eventually(() => stage.vendor("a").openCalls() === 2)
      const others = await Promise.all([stage.ask(stream), stage.ask(stream), stage.ask(stream)])
      for (const answer of others) {
        expectSuccess(answer, stream)
        expect(answer.attempts).toEqual(["b:first:answered"])
      }
      for (const answer of await Promise.all(slow)) expect(answer.attempts).toEqual(["a:first:answered"])
      stage.vendor("a").behave({ kind: "chat" })
      expect((await stage.ask(stream)).attempts).toEqual(["a:first:answered"])
      expect(stage.calls()).toEqual([3, 3])
    })
  }

  test("with no other route the request is refused, and reaches nobody", async () => {
    await using stage = await scene(simulator, ["a"], limited)
    stage.vendor("a").behave({ kind: "hang" })
    const leaving = new AbortController()
    const asks = Array.from({ length: 2 }, () =>
      stage.gateway.chat({ model: "m", stream: true, messages }, { signal: leaving.signal }).catch(() => null),
    )
    await eventually(() => stage.vendor("a").openCalls() === 2)
    for (const stream of [false, true]) {
      const refused = await stage.ask(stream)
      expectError(refused, 503, "overloaded_error", "backend_unavailable")
      expect(refused.story.attempts).toEqual([])
    }
    expect(stage.calls()).toEqual([2])
    leaving.abort()
    await Promise.all(asks)
    await eventually(() => stage.gateway.inFlight === 0)
    stage.vendor("a").behave({ kind: "chat" })
    expectSuccess(await stage.ask(false), false)
  })

  test("a stream holds its place until its end, and a failed attempt does not hold one", async () => {
    await using stage = await scene(simulator, ["a"], { each: { a: { concurrency: 1 } } })
    stage.vendor("a").behave({ kind: "status", status: 422 })
    for (let round = 0; round < 3; round++) expect((await stage.ask(true)).status).toBe(422)
    stage.vendor("a").behave({ kind: "chat", text: "a b", gapMs: 300 })
    const response = await stage.gateway.chat({ model: "m", stream: true, messages })
    expect((await stage.ask(false)).status).toBe(503)
    await response.text()
    expectSuccess(await stage.ask(false), false)
  })
})
