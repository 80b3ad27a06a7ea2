import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from "bun:test"
import fc from "fast-check"
import { startSimulator } from "../../simulator/simulator.ts"
import {
  boundary,
  endpointSamples,
  endpointScene,
  form,
  formEndpoints,
  formType,
  postTo,
} from "../support/endpoints.ts"
import { expectError } from "../support/error-envelope.ts"
import { headerOf, model, startGateway, testKey, upstream } from "../support/gateway.ts"
import { type RawResponse, rawChunk, rawConnection, rawExchange, rawHead, rawRequest } from "../support/raw-http.ts"

setDefaultTimeout(30_000)
const credential = `Authorization: Bearer ${testKey}`
const upstreamName = 'vendor/模型-"2"'
const runs = 150

const simulator = await startSimulator()
const vendor = simulator.vendor("a")
const gateway = await startGateway({
  upstreams: [upstream("a", vendor.baseUrl)],
  models: [
    model("m", [{ upstream: "a", model: upstreamName }]),
    model("ein-sehr-langer-näme", [{ upstream: "a", model: "s" }]),
  ],
})
const upstreamNames = { m: upstreamName, "ein-sehr-langer-näme": "s" } as const
afterEach(() => vendor.reset())
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
  expect(simulator.complaints).toEqual([])
  expect(gateway.complaints).toEqual([])
})

interface Part {
  readonly head: string
  readonly content: Uint8Array
}

interface Form {
  readonly mark: string
  readonly typeHeader: string
  readonly preamble: string
  readonly parts: readonly Part[]
  readonly modelHead: string
  readonly modelAt: number
  readonly model: keyof typeof upstreamNames
  readonly epilogue: string
  readonly cuts: readonly number[] | null
}

const token = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'+_.-"
const mark = fc.oneof(
  fc.string({ unit: fc.constantFrom(...token), minLength: 1, maxLength: 70 }),
  fc
    .string({ unit: fc.constantFrom(...token, " ", "(", ")", ":", "=", "?", "/", ","), minLength: 1, maxLength: 69 })
    .map((text) => `${text}x`),
  fc.constantFrom("-", "--", "x", "----WebKitFormBoundary7MA4YWxkTrZu0gW"),
)

/** Bytes that look like what a careless reader takes for structure. */
function treacherous(text: string): fc.Arbitrary<Buffer> {
  const pieces = [
    "\r\n",
    "\r",
    "\n",
    "--",
    `\r\n--${text.slice(0, -1)}`,
    `\n--${text}`,
    `--${text}--`,
    `\r\n-${text}`,
    'Content-Disposition: form-data; name="model"\r\n\r\nother\r\n',
    '{"model":"m"}',
    "\0",
    "é模🙂",
  ].map((piece) => Buffer.from(piece))
  const random = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes))
  return fc.array(fc.oneof(fc.constantFrom(...pieces), random), { maxLength: 12 }).map((all) => Buffer.concat(all))
}

/** Whether the content ends where the delimiter behind it begins, and not before. */
function isClean(content: Uint8Array, text: string): boolean {
  const whole = Buffer.concat([Buffer.from("\r\n"), content, Buffer.from(`\r\n--${text}`)])
  return whole.indexOf(`\r\n--${text}`) === content.length + 2
}

const name = fc.constantFrom(
  "file",
  "image",
  "image[]",
  "prompt",
  "Model",
  "model ",
  "models",
  "stream",
  "model%22",
  "模型",
  "",
)
const partHead = fc
  .tuple(
    fc.constantFrom("Content-Disposition", "content-disposition", "CONTENT-DISPOSITION"),
    name,
    fc.constantFrom("", '; filename="a.wav"', '; filename="name=model.png"', "; filename*=UTF-8''model"),
    fc.constantFrom("", "\r\nContent-Type: audio/wav", "\r\nX-Model: model\r\nContent-Length: 3"),
  )
  .map(([header, given, file, more]) => `${header}: form-data; name="${given}"${file}${more}`)
const modelHead = fc.constantFrom(
  'Content-Disposition: form-data; name="model"',
  "content-disposition:form-data;name=model",
  'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name="model"',
)

const anyForm: fc.Arbitrary<Form> = mark.chain((text) =>
  fc.record({
    mark: fc.constant(text),
    typeHeader: fc.constantFrom(
      `multipart/form-data; boundary="${text}"`,
      `Multipart/Form-Data;charset=utf-8; Boundary="${text}"`,
      ...(/^[-'+_.A-Za-z0-9]+$/.test(text) ? [`multipart/form-data; boundary=${text}`] : []),
    ),
    preamble: fc.constantFrom("", "", "\r\n", "This is a form.\r\n"),
    parts: fc.array(
      fc.record({ head: partHead, content: treacherous(text).filter((content) => isClean(content, text)) }),
      { maxLength: 5 },
    ),
    modelHead,
    modelAt: fc.nat({ max: 5 }),
    model: fc.constantFrom<keyof typeof upstreamNames>("m", "ein-sehr-langer-näme"),
    epilogue: fc.constantFrom("", "\r\n", '\r\nContent-Disposition: form-data; name="model"\r\n\r\nlate'),
    cuts: fc.option(fc.array(fc.nat({ max: 3000 }), { maxLength: 6 })),
  }),
)

/** The form's bytes with a given value for the model. */
function written(given: Form, value: string): Buffer {
  const model = { head: given.modelHead, content: Buffer.from(value) }
  const parts = given.parts.toSpliced(Math.min(given.modelAt, given.parts.length), 0, model)
  const pieces = parts.flatMap(({ head, content }) => [
    Buffer.from(`--${given.mark}\r\n${head}\r\n\r\n`),
    content,
    Buffer.from("\r\n"),
  ])
  return Buffer.concat([
    Buffer.from(given.preamble),
    ...pieces,
    Buffer.from(`--${given.mark}--`),
    Buffer.from(given.epilogue),
  ])
}

async function sendForm(
  path: string,
  type: string,
  bytes: Buffer,
  cuts: readonly number[] | null,
): Promise<RawResponse> {
  const headers = [credential, `Content-Type: ${type}`]
  if (cuts === null) return rawExchange(gateway.url, rawRequest(path, headers, bytes))
  const connection = await rawConnection(gateway.url)
  connection.send(rawHead(path, [...headers, "Transfer-Encoding: chunked"]))
  const bounds = [0, ...cuts.filter((cut) => cut < bytes.length).toSorted((x, y) => x - y), bytes.length]
  for (const [index, end] of bounds.slice(1).entries()) {
    // An empty chunk would end the body.
    if (end > bounds[index]!) connection.send(rawChunk(bytes.subarray(bounds[index]!, end)))
  }
  connection.send(rawChunk(""))
  const response = await connection.response()
  connection.leave()
  return response
}

describe.each(formEndpoints.map(({ path }) => path))("%s", (path) => {
  test("any form arrives byte for byte, but for the model's name; the boundary and its header stay", async () => {
    vendor.behave({ kind: "status", status: 200, json: { text: "ok" } })
    await fc.assert(
      fc.asyncProperty(anyForm, async (given) => {
        const response = await sendForm(path, given.typeHeader, written(given, given.model), given.cuts)
        expect([response.status, response.text]).toEqual([200, '{"text":"ok"}'])
        const call = vendor.calls.at(-1)!
        const expected = written(given, upstreamNames[given.model])
        expect(Buffer.from(call.body).equals(expected)).toBeTrue()
        expect(headerOf(call, "content-type")).toBe(given.typeHeader)
        expect(headerOf(call, "content-length")).toBe(String(expected.length))
        expect(headerOf(call, "transfer-encoding")).toBeUndefined()
        expect(call.path).toBe(`/a${path}`)
      }),
      { numRuns: runs },
    )
    expect(vendor.calls.length).toBeGreaterThanOrEqual(runs)
  })

  const upload = { name: "file", filename: "a.wav", value: "RIFF" }
  const named = { name: "model", value: "m" }
  const refusals: Record<string, [code: string, body: string | Buffer, type?: string, message?: RegExp]> = {
    "no part named model": ["missing_model", form([upload])],
    "an empty model": ["missing_model", form([upload, { name: "model", value: "" }])],
    "a model that is a file": ["missing_model", form([upload, { ...named, filename: "m.txt" }])],
    "a model inside a file only": [
      "missing_model",
      form([{ ...upload, value: '--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--x--' }]),
    ],
    "two models": ["duplicate_key", form([named, upload, named])],
    "two models that disagree, one of them a file": [
      "duplicate_key",
      form([named, { name: "model", filename: "m", value: "other" }]),
    ],
    "no closing boundary": ["invalid_parameter", form([named, upload]).subarray(0, -4), formType, /before the closing/],
    "no boundary in the body": ["invalid_parameter", "just text", formType, /before the first boundary/],
    "an empty body": ["invalid_parameter", "", formType, /before the first boundary/],
    "another boundary than the header tells": ["invalid_parameter", form([named, upload], "other")],
    "lines that end with LF": ["invalid_parameter", form([named, upload]).toString().replaceAll("\r\n", "\n")],
    "two dispositions in one part": [
      "invalid_parameter",
      form([named]).toString().replace("\r\n\r\n", '\r\nContent-Disposition: form-data; name="x"\r\n\r\n'),
      formType,
      /two content-disposition headers/,
    ],
    "a name that readers understand in two ways": [
      "invalid_parameter",
      form([named]).toString().replace('name="model"', "name=\"x\"; name*=utf-8''model"),
      formType,
      /name\*= is not allowed/,
    ],
    "no boundary in the header": ["invalid_parameter", form([named]), "multipart/form-data", /needs a boundary/],
    "an empty boundary": ["invalid_parameter", form([named]), 'multipart/form-data; boundary=""', /needs a boundary/],
    "a boundary of 71 characters": [
      "invalid_parameter",
      form([named], "b".repeat(71)),
      `multipart/form-data; boundary=${"b".repeat(71)}`,
    ],
    "two boundaries in the header": [
      "invalid_parameter",
      form([named]),
      `multipart/form-data; boundary=x; boundary=${boundary}`,
    ],
  }
  test.each(Object.keys(refusals))("%s is a 400, and nobody is asked", async (about) => {
    const [code, body, type = formType, message] = refusals[about]!
    for (const cuts of [null, [1, 30]]) {
      const response = await sendForm(path, type, Buffer.from(body), cuts)
      expectError(response, { status: 400, type: "invalid_request_error", code })
      if (message !== undefined) expect(JSON.parse(response.text).error.message).toMatch(message)
    }
    expect(vendor.calls).toHaveLength(0)
  })

  test("an unknown model is a 404, and the name is read as UTF-8", async () => {
    const response = await sendForm(path, formType, form([{ name: "model", value: "模型" }, upload]), null)
    expectError(response, {
      status: 404,
      type: "not_found_error",
      code: "model_not_found",
      message: 'the model "模型" does not exist or you do not have access to it',
    })
    expect(vendor.calls).toHaveLength(0)
  })

  test("failover sends the same form to the second route with that one's name for the model", async () => {
    const routes = [
      { upstream: "a", model: "first-name", priority: 1 },
      { upstream: "b", model: "zweiter-näme", priority: 2 },
    ]
    for (const size of [10, 3_000_000]) {
      await using stage = await endpointScene(simulator, ["a", "b"], { routes })
      stage.vendor("a").behave({ kind: "status", status: 500 })
      stage.vendor("b").behave({ kind: "status", status: 200, json: { text: "from b" } })
      const file = {
        ...upload,
        value: Buffer.from(
          crypto
            .getRandomValues(new Uint8Array(10))
            .toHex()
            .repeat(size / 10),
        ),
      }
      const withName = (value: string): Buffer => form([file, { name: "model", value }, { name: "prompt", value: "é" }])
      const response = await postTo(stage.gateway, path, { type: formType, bytes: withName("m") })
      expect([response.status, await response.text()]).toEqual([200, '{"text":"from b"}'])
      expect(stage.calls()).toEqual([2, 1])
      for (const call of stage.vendor("a").calls)
        expect(Buffer.from(call.body).equals(withName("first-name"))).toBeTrue()
      const [second] = stage.vendor("b").calls
      expect(Buffer.from(second!.body).equals(withName("zweiter-näme"))).toBeTrue()
      expect(headerOf(second!, "content-type")).toBe(formType)
      expect(headerOf(second!, "authorization")).toBe("Bearer credential-of-b")
    }
  })
})

test("a large form is not mixed up when its first route is given up in mid-upload", async () => {
  const routes = [
    { upstream: "a", model: "a-much-longer-name-than-the-other", priority: 1 },
    { upstream: "b", model: "b", priority: 2 },
  ]
  const file = Buffer.alloc(20 * 1024 * 1024)
  for (let at = 0; at < file.length; at += 4) file.writeUInt32LE(at, at)
  const withName = (value: string): Buffer =>
    form([
      { name: "model", value },
      { name: "file", filename: "a", value: file },
    ])
  /** Answers as soon as the head is there, and takes no more of the body. */
  const hasty = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data: (socket) =>
        void socket.end("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nretry-after: 60\r\nconnection: close\r\n\r\n"),
    },
  })
  try {
    await using stage = await endpointScene(simulator, ["a", "b"], {
      routes,
      each: { a: { baseUrl: `http://127.0.0.1:${hasty.port}/v1` } },
    })
    stage.vendor("b").behave({ kind: "status", status: 200, json: { text: "ok" } })
    const response = await postTo(stage.gateway, endpointSamples.transcriptions.path, {
      type: formType,
      bytes: withName("m"),
    })
    expect(response.status).toBe(200)
    await response.text()
    const [call] = stage.vendor("b").calls
    expect(Buffer.from(call!.body).equals(withName("b"))).toBeTrue()
  } finally {
    hasty.stop(true)
  }
})

describe("a form that a browser's encoder wrote", () => {
  test("is heard by the vendor under its own name for the model", async () => {
    const data = new FormData()
    data.set("file", new Blob([new Uint8Array(1234)]), "speech.wav")
    data.set("model", "ein-sehr-langer-näme")
    const response = await fetch(`${gateway.url}/v1/audio/transcriptions`, {
      method: "POST",
      headers: { "x-api-key": testKey },
      body: data,
    })
    expect(await response.json()).toMatchObject({ text: "This is what s hears in speech.wav, 1234 bytes long." })
  })

  test("images edits with several pictures: the answer tells of each", async () => {
    const data = new FormData()
    data.append("image[]", new Blob([new Uint8Array(10)]), "one.png")
    data.append("image[]", new Blob([new Uint8Array(20)]), "two.png")
    data.set("prompt", "a fox")
    data.set("model", "m")
    const response = await fetch(`${gateway.url}/v1/images/edits`, {
      method: "POST",
      headers: { "x-api-key": testKey },
      body: data,
    })
    expect(await response.json()).toMatchObject({
      data: [{ revised_prompt: "one.png (10 bytes), two.png (20 bytes): a fox" }],
    })
  })
})

test("images edits take JSON as well, byte for byte", async () => {
  vendor.behave({ kind: "status", status: 200, json: { data: [] } })
  const body = '{ "images":[{"image_url":"https://x/y.png"}] ,"model" : "ein-sehr-langer-näme", "n":1.0 }'
  const response = await rawExchange(
    gateway.url,
    rawRequest("/v1/images/edits", [credential, "Content-Type: application/json"], body),
  )
  expect(response.status).toBe(200)
  expect(Buffer.from(vendor.calls[0]!.body).toString()).toBe(body.replace("ein-sehr-langer-näme", "s"))
})
