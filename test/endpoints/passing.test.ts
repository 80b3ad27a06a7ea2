import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import {
  allEndpoints,
  type EndpointSample,
  endpointSamples,
  endpointScene,
  form,
  formType,
  postJson,
  postTo,
} from "../support/endpoints.ts"
import { headerOf, model } from "../support/gateway.ts"
import { rawExchange, rawRequest } from "../support/raw-http.ts"
import { readAnswer, type Scene, stopWithoutComplaint } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

const megabyte = 1024 * 1024
const { embeddings, rerank, imageGenerations, speech, transcriptions, translations } = endpointSamples

const sent = (stage: Scene, name = "a"): string => Buffer.from(stage.vendor(name).calls.at(-1)!.body).toString()

describe.each([embeddings, rerank, imageGenerations, speech].map(({ path }) => path))("JSON by splice: %s", (path) => {
  const bodies = [
    '{"model":"m"}',
    ' {\n\t"x" : [1.0, 1e400, 12345678901234567890, "\\u00e9\\/", null] , "mod\\u0065l" : "\\u006d" , "y":{"model":"m","model":"m"} }\r\n',
    '{"a":"模型 👩‍👩‍👧","a":"twice","model":"m","stream":false,"stream_options":{"include_usage":false}}',
  ]
  const expected = [
    '{"model":"their/型"}',
    ' {\n\t"x" : [1.0, 1e400, 12345678901234567890, "\\u00e9\\/", null] , "mod\\u0065l" : "their/型" , "y":{"model":"m","model":"m"} }\r\n',
    '{"a":"模型 👩‍👩‍👧","a":"twice","model":"their/型","stream":false,"stream_options":{"include_usage":false}}',
  ]
  test("only the model's name changes; query and allowed headers go along, the caller's credential does not", async () => {
    await using stage = await endpointScene(simulator, ["a"], { routes: [{ upstream: "a", model: "their/型" }] })
    stage.vendor("a").behave({
      kind: "status",
      status: 200,
      body: '{ "data":[], "results":[] , "n":1.0}',
      headers: { "x-request-id": "their-id", "set-cookie": "a=b", server: "nginx", "content-disposition": "inline" },
    })
    for (const [index, body] of bodies.entries()) {
      const response = await rawExchange(
        stage.gateway.url,
        rawRequest(
          `${path}?api-version=1&x=%20`,
          [
            `Authorization: Bearer ${stage.gateway.key}`,
            "Content-Type: application/json; charset=utf-8",
            "User-Agent: some-client/1",
            "Idempotency-Key: abc",
            "Cookie: c=d",
            "X-Custom: no",
          ],
          body,
        ),
      )
      expect([response.status, response.text]).toEqual([200, '{ "data":[], "results":[] , "n":1.0}'])
      expect(sent(stage)).toBe(expected[index]!)
      expect(response.header("content-type")).toBe("application/json")
      expect(response.header("content-disposition")).toBe("inline")
      expect(response.header("x-upstream-request-id")).toBe("their-id")
      expect(response.header("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/)
      for (const name of ["set-cookie", "server", "cache-control"]) expect(response.header(name)).toBeUndefined()
      const call = stage.vendor("a").calls[index]!
      expect(call.path).toEndWith(`${path}?api-version=1&x=%20`)
      expect(headerOf(call, "authorization")).toBe("Bearer credential-of-a")
      expect(headerOf(call, "content-type")).toBe("application/json; charset=utf-8")
      expect(headerOf(call, "user-agent")).toBe("some-client/1")
      expect(headerOf(call, "idempotency-key")).toBe("abc")
      expect(headerOf(call, "accept-encoding")).toBe("identity")
      for (const name of ["cookie", "x-custom", "x-api-key"]) expect(headerOf(call, name)).toBeUndefined()
    }
  })
})

describe("what a request has used is read from the answer", () => {
  const none = { cachedInput: 0, cacheWrite: 0, audioInput: 0, reasoning: 0, audioOutput: 0 }
  const answers: [about: string, endpoint: EndpointSample, body: object, usage: object | null][] = [
    [
      "embeddings",
      embeddings,
      { data: [], usage: { prompt_tokens: 8, total_tokens: 8 } },
      { input: 8, output: 0, ...none },
    ],
    [
      "rerank as Jina tells it",
      rerank,
      { results: [], usage: { prompt_tokens: 5, total_tokens: 5 } },
      { input: 5, output: 0, ...none },
    ],
    [
      "embeddings as Voyage tells it",
      embeddings,
      { data: [], usage: { total_tokens: 9 } },
      { input: 9, output: 0, ...none },
    ],
    ["rerank without any", rerank, { results: [] }, null],
    [
      "embeddings with an explicit zero",
      embeddings,
      { data: [], usage: { prompt_tokens: 0, total_tokens: 0 } },
      { input: 0, output: 0, ...none },
    ],
  ]
  test.each(answers)("%s", async (_, endpoint, body, usage) => {
    await using stage = await endpointScene(simulator, ["a"])
    stage.vendor("a").behave({ kind: "status", status: 200, json: JSON.parse(JSON.stringify(body)) })
    const answer = await readAnswer(stage.gateway, await postTo(stage.gateway, endpoint.path, endpoint.request("m")))
    expect(answer.story).toMatchObject({ ending: "completed", usage, estimated: false })
  })
})

describe("an answer passes as it comes", () => {
  /** Every byte there is, again and again. */
  const sound = Buffer.from(Array.from({ length: 4096 }, (_, index) => (index * 7 + (index >> 8)) & 0xff))

  test("speech is byte-identical, with its type", async () => {
    await using stage = await endpointScene(simulator, ["a"])
    for (const framing of ["chunked", "content-length", "close"] as const) {
      stage.vendor("a").behave({
        kind: "stream",
        body: sound.toString("base64"),
        encoding: "base64",
        headers: { "content-type": "audio/mpeg" },
        framing,
        splitEvery: 997,
      })
      const answer = await readAnswer(stage.gateway, await postTo(stage.gateway, speech.path, speech.request("m")))
      expect(Buffer.from(answer.bytes).equals(sound)).toBeTrue()
      expect(answer.headers.get("content-type")).toBe("audio/mpeg")
      expect(answer.story).toMatchObject({ ending: "completed", error: null, stream: false })
    }
  })

  test("the first bytes of speech are there before the upstream has sent the rest", async () => {
    await using stage = await endpointScene(simulator, ["a"])
    const pieces = [sound.subarray(0, 100), sound.subarray(100, 2000), sound.subarray(2000)]
    stage.vendor("a").behave({
      kind: "stream",
      frames: pieces.map((piece) => piece.toString("base64")),
      encoding: "base64",
      headers: { "content-type": "audio/wav" },
      gapMs: 700,
    })
    const response = await postTo(stage.gateway, speech.path, speech.request("m"))
    const reader = response.body!.getReader()
    const first = await reader.read()
    const call = stage.vendor("a").calls[0]!
    // All but the newest byte, which may be the last one and then waits for the charge.
    expect(Buffer.from(first.value!).equals(pieces[0]!.subarray(0, -1))).toBeTrue()
    expect(call.endedAt).toBeNull()
    expect(call.bytesSent).toBeLessThan(1000)
    const rest: Uint8Array[] = []
    for (let next = await reader.read(); !next.done; next = await reader.read()) rest.push(next.value)
    expect(Buffer.concat([first.value!, ...rest]).equals(sound)).toBeTrue()
    expect(call.finished).toBeTrue()
  })

  test("a base64 image of 40 MB passes byte for byte and is never in memory as a whole", async () => {
    await using stage = await endpointScene(simulator, ["a"])
    stage.vendor("a").behave({ kind: "images", megabytes: 40 })
    const created = /"created":\d+/
    const hashOf = async (response: Response, slowly: boolean): Promise<{ sha256: string; size: number }> => {
      const hash = new Bun.CryptoHasher("sha256")
      let size = 0
      for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
        // The one number that depends on the moment stands in the first bytes.
        const piece =
          size === 0 ? Buffer.from(Buffer.from(bytes).toString("latin1").replace(created, ""), "latin1") : bytes
        size += bytes.length
        hash.update(piece)
        if (slowly) await Bun.sleep(0)
      }
      return { sha256: hash.digest("hex"), size }
    }
    const request = { model: "m-upstream", prompt: "a fox" }
    const direct = await hashOf(
      await fetch(`${stage.vendor("a").baseUrl}/images/generations`, { method: "POST", body: JSON.stringify(request) }),
      false,
    )
    expect(direct.size).toBeGreaterThan(40 * megabyte)
    Bun.gc(true)
    const before = process.memoryUsage.rss()
    const response = await postJson(stage.gateway, imageGenerations.path, { ...request, model: "m" })
    const call = stage.vendor("a").calls[1]!
    // Nobody reads: what the upstream has sent lies in socket buffers, and no more comes.
    let last = -1
    while (last !== call.bytesSent) {
      last = call.bytesSent
      await Bun.sleep(200)
    }
    expect(call.bytesSent).toBeLessThan(24 * megabyte)
    expect(call.endedAt).toBeNull()
    const through = await hashOf(response, true)
    expect(through).toEqual(direct)
    expect(process.memoryUsage.rss() - before).toBeLessThan(80 * megabyte)
    expect(response.headers.get("content-type")).toBe("application/json")
    expect(await stage.gateway.story(response)).toMatchObject({ ending: "completed", error: null })
  })

  test("srt, vtt and text transcripts keep their words and their type", async () => {
    await using stage = await endpointScene(simulator, ["a"])
    for (const format of ["srt", "vtt", "text"]) {
      stage.vendor("a").behave({ kind: "transcription", text: "Grüße aus 北京", seconds: 3 })
      const fields = (name: string) =>
        form([
          { name: "file", filename: "a.wav", value: "RIFF" },
          { name: "model", value: name },
          { name: "response_format", value: format },
        ])
      const direct = await fetch(`${stage.vendor("a").baseUrl}/audio/transcriptions`, {
        method: "POST",
        headers: { "content-type": formType },
        body: fields("x"),
      })
      for (const { path } of [transcriptions, translations]) {
        const answer = await postTo(stage.gateway, path, { type: formType, bytes: fields("m") })
        expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8")
        if (path === transcriptions.path) expect(await answer.text()).toBe(await direct.text())
        else expect(await answer.text()).toContain("Grüße aus 北京")
      }
    }
  })

  test("a type that no table knows passes too", async () => {
    await using stage = await endpointScene(simulator, ["a"])
    stage.vendor("a").behave({ kind: "status", status: 200, body: "1\n00:00", headers: { "content-type": "text/srt" } })
    const response = await postTo(stage.gateway, transcriptions.path, transcriptions.request("m"))
    expect([response.headers.get("content-type"), await response.text()]).toEqual(["text/srt", "1\n00:00"])
  })
})

test("a model whose upstreams lack the endpoint is not found there", async () => {
  await using stage = await endpointScene(simulator, ["a"], {
    each: { a: { vendor: "jina" } },
    models: [model("m", ["a"])],
  })
  for (const { path, request, body } of allEndpoints) {
    const response = await postTo(stage.gateway, path, request("m"))
    const served = path === embeddings.path || path === rerank.path
    expect([path, body, response.status]).toEqual([path, body, served ? 200 : 404])
    if (!served) expect(((await response.json()) as { error: { code: string } }).error.code).toBe("model_not_found")
  }
  expect(stage.calls()).toEqual([2])
})
