import { afterAll, afterEach, describe, expect, test } from "bun:test"
import fc from "fast-check"
import type { RecordedCall } from "../../simulator/calls.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { headerOf, model, startGateway, testKey, upstream } from "../support/gateway.ts"
import { rawChunk, rawConnection, rawExchange, rawHead, rawRequest } from "../support/raw-http.ts"
import { chunksOf, dataOf, usageChunksOf } from "../support/sse-events.ts"

const chatPath = "/v1/chat/completions"
const credential = `Authorization: Bearer ${testKey}`
const runs = 400

const simulator = await startSimulator()
const vendor = simulator.vendor("a")
const same = simulator.vendor("same")
const quirky = simulator.vendor("quirky")
// Names that are longer and shorter than the caller's, of other bytes, and the very same one.
const upstreamNames = { m: 'vendor/模型-"2"\\x', "a-rather-long-logical-name": "s", näme: "plain" } as const
const gateway = await startGateway({
  upstreams: [
    upstream("a", vendor.baseUrl),
    upstream("same", same.baseUrl),
    upstream("quirky", quirky.baseUrl, { vendor: "mistral" }),
  ],
  models: [
    ...Object.entries(upstreamNames).map(([name, own]) => model(name, [{ upstream: "a", model: own }])),
    model("same", [{ upstream: "same", model: "same" }]),
    model("quirky", ["quirky"]),
  ],
})
afterEach(() => {
  vendor.reset()
  same.reset()
  quirky.reset()
})
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
})

/** A JSON text in two halves around the value of the top-level `model`. */
interface Request {
  readonly before: string
  readonly value: string
  readonly after: string
  readonly name: keyof typeof upstreamNames
}

const space = fc.string({ unit: fc.constantFrom(" ", "\n", "\r", "\t"), maxLength: 3 })
const character = fc.oneof(
  fc.constantFrom("\\n", '\\"', "\\\\", "\\/", "\\u0000", "\\ud83d\\ude00", "\\uD800", "\\u00e9", "\\b"),
  fc.constantFrom(
    "é",
    "模",
    "型",
    "🙂",
    "👩‍👩‍👧",
    "e\u0301",
    "\u2028",
    "\ufeff",
    "\u007f",
    "'",
    "{",
    "}",
    "[",
    ":",
    ",",
  ),
  fc.string({ minLength: 1, maxLength: 1, unit: "grapheme-ascii" }).map((c) => (c === '"' || c === "\\" ? "x" : c)),
)
const text = fc.array(character, { maxLength: 12 }).map((parts) => `"${parts.join("")}"`)
const digits = fc.string({ unit: fc.constantFrom(..."0123456789"), minLength: 1, maxLength: 20 })
const number = fc.oneof(
  fc.constantFrom(
    "0",
    "-0",
    "1.0",
    "1e2",
    "1E+2",
    "-1.50e-07",
    "12345678901234567890",
    "1e400",
    "0.1",
    "100000000000000000000.0",
  ),
  fc
    .tuple(fc.constantFrom("", "-"), digits, fc.constantFrom("", ".0", ".10", "e5", "E-5"))
    .map(([sign, d, rest]) => `${sign}1${d}${rest}`),
  fc.constant("9".repeat(400)),
)
const word = fc.constantFrom("true", "false", "null")
// Nested keys may well be called like those the gateway looks for, and stand there twice.
const nestedKey = fc.oneof(
  text,
  fc.constantFrom('"model"', '"stream"', '"mod\\u0065l"', '"stream_options"', '"__proto__"'),
)

const { value } = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
  value: fc.oneof({ depthSize: "small", withCrossShrink: true }, text, number, word, tie("list"), tie("object")),
  list: fc
    .array(
      fc.tuple(space, tie("value"), space).map((parts) => parts.join("")),
      { maxLength: 4 },
    )
    .map((items) => `[${items.join(",")}]`),
  object: fc
    .array(
      fc.tuple(space, nestedKey, space, fc.constant(":"), space, tie("value"), space).map((parts) => parts.join("")),
      { maxLength: 4 },
    )
    .map((members) => `{${members.join(",")}}`),
}))

const modelKey = fc.constantFrom('"model"', '"mod\\u0065l"', '"\\u006dodel"', '"\\u006D\\u006F\\u0064\\u0065\\u006C"')
const modelName = fc.constantFrom<keyof typeof upstreamNames>("m", "a-rather-long-logical-name", "näme")
// A top-level key that is none of those the gateway reads.
const otherKey = fc
  .oneof(text, fc.constantFrom('"messages"', '"Model"', '"model "', '"temperature"', '"max_tokens"', '"models"', '""'))
  .filter((key) => !["model", "stream", "stream_options"].includes(JSON.parse(key) as string))
const member = fc.tuple(space, otherKey, space, fc.constant(":"), space, value, space).map((parts) => parts.join(""))

const request: fc.Arbitrary<Request> = fc
  .record({
    lead: space,
    before: fc.array(member, { maxLength: 4 }),
    keySpace: space,
    key: modelKey,
    afterKey: space,
    beforeValue: space,
    name: modelName,
    escaped: fc.boolean(),
    afterValue: space,
    after: fc.array(member, { maxLength: 4 }),
    trail: space,
  })
  .map((r) => ({
    before: `${r.lead}{${r.before.map((one) => `${one},`).join("")}${r.keySpace}${r.key}${r.afterKey}:${r.beforeValue}`,
    value: r.escaped ? escapedText(r.name) : JSON.stringify(r.name),
    after: `${r.afterValue}${r.after.map((one) => `,${one}`).join("")}}${r.trail}`,
    name: r.name,
  }))

/** Every character as \uXXXX. */
function escapedText(plain: string): string {
  const units = Array.from({ length: plain.length }, (_, i) => plain.charCodeAt(i).toString(16).padStart(4, "0"))
  return `"${units.map((unit) => `\\u${unit}`).join("")}"`
}

let serial = 0

/** Posts bytes and finds the very call they led to, however many run at once. */
async function send(body: string | Uint8Array, at = vendor): Promise<{ call: RecordedCall; answer: string }> {
  const mark = `?run=${++serial}`
  const response = await fetch(gateway.url + chatPath + mark, {
    method: "POST",
    headers: { authorization: `Bearer ${testKey}` },
    body,
  })
  const answer = await response.text()
  const call = at.calls.find(({ path }) => path.endsWith(mark))
  if (call === undefined) throw new Error(`it reached no upstream: ${response.status} ${answer}`)
  return { call, answer }
}

function expectFramed(call: RecordedCall): void {
  expect(headerOf(call, "content-length")).toBe(String(call.bodyLength))
  expect(headerOf(call, "transfer-encoding")).toBeUndefined()
}

describe("the upstream gets the caller's bytes with only the value of the top-level model changed", () => {
  test("whatever the JSON looks like", async () => {
    vendor.behave({ kind: "status", status: 200, json: { choices: [] } })
    await fc.assert(
      fc.asyncProperty(request, async ({ before, value, after, name }) => {
        const { call } = await send(before + value + after)
        const own = JSON.stringify(upstreamNames[name])
        expect(Buffer.from(call.body).equals(Buffer.from(before + own + after))).toBe(true)
        expectFramed(call)
      }),
      { numRuns: runs },
    )
  }, 60_000)

  test("also when the body comes chunked, cut anywhere", async () => {
    vendor.behave({ kind: "status", status: 200, json: { choices: [] } })
    await fc.assert(
      fc.asyncProperty(
        request,
        fc.array(fc.nat(400), { maxLength: 4 }),
        async ({ before, value, after, name }, cuts) => {
          const bytes = Buffer.from(before + value + after)
          const connection = await rawConnection(gateway.url)
          connection.send(rawHead(chatPath, [credential, "Transfer-Encoding: chunked"]))
          let from = 0
          for (const cut of [...cuts.toSorted((a, b) => a - b), bytes.length]) {
            const to = Math.min(cut, bytes.length)
            if (to > from) connection.send(rawChunk(bytes.subarray(from, to)))
            from = Math.max(from, to)
          }
          connection.send(rawChunk(""))
          expect((await connection.response()).status).toBe(200)
          connection.leave()
          const call = vendor.calls.at(-1)!
          const own = JSON.stringify(upstreamNames[name])
          expect(Buffer.from(call.body).equals(Buffer.from(before + own + after))).toBe(true)
          expectFramed(call)
        },
      ),
      { numRuns: runs / 2 },
    )
  }, 60_000)

  test("bytes that are no valid UTF-8 inside strings survive", async () => {
    const body = Buffer.concat([
      Buffer.from('{"messages":[],"x":"'),
      Buffer.from([0xff, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0xf8]),
      Buffer.from('","model":"m","y":1}'),
    ])
    vendor.behave({ kind: "status", status: 200, json: { choices: [] } })
    const { call } = await send(body)
    const at = body.indexOf('"m"')
    const own = Buffer.from(JSON.stringify(upstreamNames.m))
    expect(Buffer.from(call.body).equals(Buffer.concat([body.subarray(0, at), own, body.subarray(at + 3)]))).toBe(true)
  })

  test("20 MB before the model", async () => {
    const before = `{"messages":[{"role":"user","content":"${"模型 🙂 ".repeat(1_700_000)}"}],`
    expect(Buffer.byteLength(before)).toBeGreaterThan(20_000_000)
    vendor.behave({ kind: "status", status: 200, json: { choices: [] } })
    const { call } = await send(`${before}"model":"m"}`)
    const wanted = Buffer.from(`${before}"model":${JSON.stringify(upstreamNames.m)}}`)
    expect(call.bodyLength).toBe(wanted.length)
    expect(Buffer.from(call.body).equals(wanted)).toBe(true)
    expectFramed(call)
  }, 30_000)

  test("a route of the same name changes no byte, not even an odd spelling of the name", async () => {
    const body = ' { "model" : "s\\u0061me" , "messages" : [ ] } \n'
    const { call } = await send(body, same)
    expect(Buffer.from(call.body).toString()).toBe(body)
  })

  test("fields that other gateways obey are just fields", async () => {
    const body =
      '{"model":"m","messages":[],"api_base":"http://127.0.0.1:1","base_url":"http://127.0.0.1:1","api_key":"x"}'
    const { call } = await send(body)
    expect(Buffer.from(call.body).toString()).toBe(body.replace('"m"', JSON.stringify(upstreamNames.m)))
    expect(headerOf(call, "authorization")).toBe("Bearer credential-of-a")
  })
})

const own = JSON.stringify(upstreamNames.m)

/** What the caller wrote about `stream_options` and what the upstream is to read in its place; the rest stays. */
const variants: Record<string, readonly [given: string, sent: string]> = {
  absent: [
    '{"model":"m", "stream" : true,"messages":[]}',
    `{"stream_options":{"include_usage":true},"model":${own}, "stream" : true,"messages":[]}`,
  ],
  "absent, model last": [
    '{ "stream":true,"messages":[],\n "mod\\u0065l" :"m" }',
    `{ "stream":true,"messages":[],\n "stream_options":{"include_usage":true},"mod\\u0065l" :${own} }`,
  ],
  null: [
    '{"model":"m","stream_options":null,"stream":true,"messages":[]}',
    `{"model":${own},"stream_options":{"include_usage":true},"stream":true,"messages":[]}`,
  ],
  "an empty object": [
    '{"stream_options":{},"model":"m","stream":true,"messages":[]}',
    `{"stream_options":{"include_usage":true},"model":${own},"stream":true,"messages":[]}`,
  ],
  "an object of white space": [
    '{"stream_options":{ \n\t},"model":"m","stream":true,"messages":[]}',
    `{"stream_options":{ \n\t"include_usage":true},"model":${own},"stream":true,"messages":[]}`,
  ],
  false: [
    '{"stream_options":{"include_usage":false},"model":"m","stream":true,"messages":[]}',
    `{"stream_options":{"include_usage":true},"model":${own},"stream":true,"messages":[]}`,
  ],
  "false, with white space and an odd spelling": [
    '{"stream_options" : { "include\\u005fusage" : false } ,"model":"m","stream":true,"messages":[]}',
    `{"stream_options" : { "include\\u005fusage" : true } ,"model":${own},"stream":true,"messages":[]}`,
  ],
  "null inside": [
    '{"model":"m","stream":true,"messages":[],"stream_options":{"include_usage":null}}',
    `{"model":${own},"stream":true,"messages":[],"stream_options":{"include_usage":true}}`,
  ],
  "something else inside": [
    '{"model":"m","stream":true,"messages":[],"stream_options":{"include_usage":[{}, 0]}}',
    `{"model":${own},"stream":true,"messages":[],"stream_options":{"include_usage":true}}`,
  ],
  "other keys only": [
    '{"model":"m","stream":true,"messages":[],"stream_options":{"include_obfuscation":false }}',
    `{"model":${own},"stream":true,"messages":[],"stream_options":{"include_obfuscation":false ,"include_usage":true}}`,
  ],
  "other keys, and a nested one of the same name": [
    '{"model":"m","stream":true,"messages":[],"stream_options":{"x":{"include_usage":true},"include_usage":false,"y":1.0}}',
    `{"model":${own},"stream":true,"messages":[],"stream_options":{"x":{"include_usage":true},"include_usage":true,"y":1.0}}`,
  ],
  true: [
    '{"model":"m","stream":true,"messages":[],"stream_options":{ "include_usage": true }}',
    `{"model":${own},"stream":true,"messages":[],"stream_options":{ "include_usage": true }}`,
  ],
  "twice inside: the last one decides": [
    '{"model":"m","stream":true,"messages":[],"stream_options":{"include_usage":true,"include_usage":false}}',
    `{"model":${own},"stream":true,"messages":[],"stream_options":{"include_usage":true,"include_usage":false,"include_usage":true}}`,
  ],
}

describe("stream_options on streams: only what is needed changes, and the caller gets exactly one usage chunk", () => {
  for (const [name, [given, sent]] of Object.entries(variants)) {
    test(name, async () => {
      vendor.behave({ kind: "chat", text: "Hello there", gapMs: 0 })
      const { call, answer } = await send(given)
      expect(Buffer.from(call.body).toString()).toBe(sent)
      expectFramed(call)
      expect(vendor.calls).toHaveLength(1)
      expectOneUsageChunk(answer)
    })
  }

  for (const wrong of ["true", "1", '"x"', "[]"]) {
    test(`${wrong} is the caller's mistake and passes as it is`, async () => {
      const given = `{"model":"m","stream":true,"messages":[],"stream_options": ${wrong} }`
      const { call, answer } = await send(given)
      expect(Buffer.from(call.body).toString()).toBe(given.replace('"m"', own))
      expectOneUsageChunk(answer)
    })
  }

  test("a request that is no stream is left alone, whatever its stream_options say", async () => {
    for (const stream of ["false", "null", '"true"', "1"]) {
      const given = `{"model":"m","messages":[],"stream":${stream},"stream_options":{"include_usage":false}}`
      vendor.behave({ kind: "status", status: 200, json: { choices: [] } })
      const { call } = await send(given)
      expect(Buffer.from(call.body).toString()).toBe(given.replace('"m"', own))
    }
  })

  test("a vendor known not to take the option is not asked for it", async () => {
    const given = '{"model":"quirky","stream":true,"messages":[]}'
    const { call, answer } = await send(given, quirky)
    expect(Buffer.from(call.body).toString()).toBe(given.replace('"quirky"', '"quirky-upstream"'))
    expectOneUsageChunk(answer)
  })

  test("a vendor that turns out not to take it is asked again without it, with every other byte in place", async () => {
    const learnt = simulator.vendor("learnt")
    await gateway.apply({ upstreams: [upstream("learnt", learnt.baseUrl)], models: [model("learnt", ["learnt"])] })
    learnt.behave({ kind: "echo_stream_options_error" })
    const given = '{ "model":"learnt","stream":true, "messages":[] }'
    for (const expectedCalls of [2, 3]) {
      expectOneUsageChunk((await send(given, learnt)).answer)
      expect(learnt.calls).toHaveLength(expectedCalls)
      expect(Buffer.from(learnt.calls.at(-1)!.body).toString()).toBe(given.replace('"learnt"', '"learnt-upstream"'))
    }
  })
})

function expectOneUsageChunk(answer: string): void {
  const usage = usageChunksOf(answer)
  expect(usage).toHaveLength(1)
  expect(usage[0]!.id).toBe(chunksOf(answer)[0]!.id!)
  const data = dataOf(answer)
  expect(data.at(-1)).toBe("[DONE]")
  expect(JSON.parse(data.at(-2)!)).toEqual(usage[0])
}

test("an answer that is not streamed reaches the caller byte for byte", async () => {
  const answer = ' {"id" : "x","n":1.0, "big":12345678901234567890,\r\n"t":"\\u00e9é","choices":[ ],"usage":null} \n'
  vendor.behave({ kind: "status", status: 200, body: answer, headers: { "content-type": "application/json; x=y" } })
  const response = await rawExchange(gateway.url, rawRequest(chatPath, [credential], '{"model":"m","messages":[]}'))
  expect(response.text).toBe(answer)
  expect(response.header("content-type")).toBe("application/json; x=y")
})

test("an upstream's 4xx reaches the caller byte for byte", async () => {
  const answer = '{"error" : {"message":"bad \\u0022thing\\u0022 é","param":null }}\n'
  for (const status of [400, 405, 409, 413, 415, 422, 451]) {
    vendor.reset()
    vendor.behave({ kind: "status", status, body: answer, headers: { "content-type": "application/problem+json" } })
    const response = await rawExchange(gateway.url, rawRequest(chatPath, [credential], '{"model":"m","messages":[]}'))
    expect([response.status, response.text]).toEqual([status, answer])
    expect(response.header("content-type")).toBe("application/problem+json")
    expect(vendor.calls).toHaveLength(1)
  }
})
