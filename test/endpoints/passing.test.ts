import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
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
import { eventually, headerOf, model } from "../support/gateway.ts"
import { rawConnection, rawExchange, rawRequest } from "../support/raw-http.ts"
import { expectError, readAnswer, type Scene } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
const gone = await startSimulator()
await gone.stop()
afterAll(async () => {
  await simulator.stop()
  expect(simulator.complaints).toEqual([])
})

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
  const none = { cachedInput: 0, cacheWrite: 0, reasoning: 0 }
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
    expect(Buffer.from(first.value!).equals(pieces[0]!)).toBeTrue()
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

describe("`stream: true` passes as events, byte for byte", () => {
  const image = "A".repeat(100_000)
  const streams: Record<string, [EndpointSample, fields: Record<string, string>, events: string[]]> = {
    images: [
      imageGenerations,
      {},
      [
        ": hello\n\n",
        `event: image_generation.partial_image\ndata: {"type":"image_generation.partial_image","b64_json":"${image}"}\n\n`,
        'event: keepalive\ndata: {"type":"keepalive"}\n\n',
        `event: image_generation.completed\ndata: {"type":"image_generation.completed","b64_json":"${image}","usage":{"total_tokens":1}}\n\n`,
      ],
    ],
    "image edits": [
      endpointSamples.imageEdits,
      { prompt: "x" },
      [`event: image_edit.completed\ndata: {"type":"image_edit.completed","b64_json":"${image}"}\n\n`],
    ],
    transcriptions: [
      transcriptions,
      {},
      [
        'data: {"type":"transcript.text.delta","delta":"Grüße "}\n\n',
        'data: {"type":"transcript.text.delta","delta":"👋"}\n\n',
        'data: {"type":"transcript.text.done","text":"Grüße 👋","usage":{"type":"tokens","total_tokens":9}}\n\n',
      ],
    ],
    "transcriptions that end in [DONE]": [
      transcriptions,
      {},
      [
        'data: {"type":"transcript.text.delta","delta":"a"}\n\n',
        'data: {"type":"transcript.text.done"}\n\n',
        "data: [DONE]\n\n",
      ],
    ],
    speech: [
      speech,
      { stream_format: "sse" },
      ['data: {"type":"speech.audio.delta","audio":"AAAA"}\n\n', 'data: {"type":"speech.audio.done"}\n\n'],
    ],
    "events without a type": [speech, {}, ['data: {"audio":"AAAA"}\n\n', 'data: {"audio":"BBBB","last":true}\n\n']],
  }
  const streamRequest = (endpoint: EndpointSample, fields: Record<string, string>) =>
    endpoint.body === "json"
      ? {
          type: "application/json",
          bytes: Buffer.from(JSON.stringify({ model: "m", prompt: "x", stream: true, ...fields })),
        }
      : {
          type: formType,
          bytes: form([
            ...Object.entries({ ...fields, stream: "true", model: "m" }).map(([name, value]) => ({ name, value })),
            { name: "file", filename: "a", value: "RIFF" },
          ]),
        }
  for (const [about, [endpoint, fields, events]] of Object.entries(streams)) {
    for (const [ends, eol] of [
      ["LF", "\n"],
      ["CRLF", "\r\n"],
    ] as const) {
      test.concurrent(`${about}, ${ends}`, async () => {
        await using stage = await endpointScene(simulator, ["a"])
        const body = events.join("").replaceAll("\n", eol)
        for (const splitEvery of [13, 65_536]) {
          const pace = splitEvery === 13 && body.length > 10_000 ? 10_007 : splitEvery
          stage.vendor("a").behave({ kind: "stream", body, splitEvery: pace, gapMs: 0 })
          const response = await postTo(stage.gateway, endpoint.path, streamRequest(endpoint, fields))
          const answer = await readAnswer(stage.gateway, response)
          expect(answer.text === body).toBeTrue()
          expect(answer.headers.get("content-type")).toBe("text/event-stream")
          expect(answer.headers.get("cache-control")).toBe("no-cache, no-transform")
          expect(answer.headers.get("x-accel-buffering")).toBe("no")
          expect(answer.story).toMatchObject({ ending: "completed", error: null })
        }
      })
    }
  }

  const partial = streams.images![2].slice(0, 2).join("")
  const ask = (stage: Scene) =>
    postJson(stage.gateway, imageGenerations.path, { model: "m", prompt: "x", stream: true })
  const inBand = (id: string | null, type: string, code: string) => ({
    error: { type, code, message: expect.any(String), request_id: id },
    request_id: id,
  })

  for (const end of ["clean", "fin", "rst"] as const) {
    test.concurrent(`one that is cut (${end}) ends with an error event of ours`, async () => {
      await using stage = await endpointScene(simulator, ["a", "b"])
      stage
        .vendor("a")
        .behave({ kind: "stream", frames: [partial, 'event: image_generation.completed\ndata: {"ty'], gapMs: 30, end })
      const answer = await readAnswer(stage.gateway, await ask(stage))
      expect(answer.status).toBe(200)
      expect(answer.text.startsWith(`${partial}event: error\ndata: {`)).toBeTrue()
      const told = answer.text.slice(`${partial}event: error\ndata: `.length)
      expect(JSON.parse(told)).toEqual(
        inBand(answer.headers.get("x-request-id"), "api_error", "upstream_stream_truncated"),
      )
      expect(told).toEndWith("}\n\n")
      expect(answer.story).toMatchObject({ ending: "failed", error: "upstream_stream_truncated", usage: null })
      expect(stage.calls()).toEqual([1, 0])
    })
  }

  test.concurrent("silence in it is a time-out in band, though pings come", async () => {
    await using stage = await endpointScene(simulator, ["a"], { timeouts: { silence: 400 } })
    stage.vendor("a").behave({ kind: "stream", frames: [partial], end: "stall", pingEveryMs: 50 })
    const answer = await readAnswer(stage.gateway, await ask(stage))
    const told = answer.text.split("event: error\ndata: ")[1] ?? ""
    expect(JSON.parse(told)).toEqual(
      inBand(answer.headers.get("x-request-id"), "timeout_error", "stream_silence_timeout"),
    )
    await eventually(() => stage.vendor("a").calls[0]!.closedByPeer)
  })

  test.concurrent("an error as its first event goes to the next route; a later one passes and nothing is added", async () => {
    await using stage = await endpointScene(simulator, ["a", "b"])
    const error = 'event: error\ndata: {"type":"error","error":{"message":"no luck"}}\n\n'
    stage.vendor("a").behave({ kind: "stream", body: error })
    stage.vendor("b").behave({ kind: "stream", frames: [partial, error], gapMs: 100 })
    const answer = await readAnswer(stage.gateway, await ask(stage))
    expect(answer.text === partial + error).toBeTrue()
    expect(stage.calls()).toEqual([2, 1])
    expect(answer.story).toMatchObject({ ending: "failed", error: "upstream_error" })
  })

  test.concurrent("no event in time goes to the next route at once", async () => {
    await using stage = await endpointScene(simulator, ["a", "b"], { timeouts: { firstToken: 400 } })
    stage.vendor("a").behave({ kind: "stream", body: ": hello\n\n", end: "stall", pingEveryMs: 50 })
    stage.vendor("b").behave({ kind: "stream", body: streams.images![2].join("") })
    const answer = await readAnswer(stage.gateway, await ask(stage))
    expect(answer.text === streams.images![2].join("")).toBeTrue()
    expect(answer.attempts).toEqual(["a:first:timeout", "b:next:answered"])
  })
})

describe.each(allEndpoints.map((endpoint) => [endpoint.path, endpoint] as const))(
  "failures on %s",
  (path, endpoint) => {
    const ask = async (stage: Scene, name = "m") =>
      readAnswer(stage.gateway, await postTo(stage.gateway, path, endpoint.request(name)))
    const expectAnswered = ({ status, story, bytes }: Awaited<ReturnType<typeof ask>>): void => {
      expect(status).toBe(200)
      expect(bytes.length).toBeGreaterThan(0)
      expect(story).toMatchObject({ ending: "completed", error: null })
    }

    test.concurrent("a 4xx of the upstream passes at once with its bytes and type", async () => {
      await using stage = await endpointScene(simulator, ["a", "b"])
      const body = '{ "error": {"message":"bad thing", "param":null ,"code":"odd_code"} }'
      const headers = { "content-type": "application/problem+json", "x-should-retry": "false" }
      for (const status of [400, 409, 413, 418, 422]) {
        stage.vendor("a").behave({ kind: "status", status, body, headers })
        const answer = await ask(stage)
        expect([answer.status, answer.text]).toEqual([status, body])
        expect(answer.headers.get("content-type")).toBe("application/problem+json")
        expect(answer.headers.get("x-should-retry")).toBe("false")
        expect(answer.story).toMatchObject({ ending: "refused", status, usage: null })
      }
      expect(stage.calls()).toEqual([5, 0])
    })

    test.concurrent("401 and 404 go to the next route; the last route's passes", async () => {
      await using stage = await endpointScene(simulator, ["a", "b"])
      stage.vendor("a").behave({ kind: "status", status: 401 })
      expectAnswered(await ask(stage))
      expect(stage.calls()).toEqual([1, 1])
      stage.vendor("b").behave({ kind: "status", status: 404, body: "gone, credential-of-b" })
      const answer = await ask(stage)
      expect([answer.status, answer.text]).toEqual([404, "gone, ***"])
      expect(stage.calls()).toEqual([2, 2])
    })

    test.concurrent("5xx: once more on the same route, then the next; 502 when it was the only one", async () => {
      await using stage = await endpointScene(simulator, ["a", "b"])
      stage.vendor("a").behave({ kind: "status", status: 500 })
      const answer = await ask(stage)
      expectAnswered(answer)
      expect(answer.attempts).toEqual(["a:first:status", "a:repeat:status", "b:next:answered"])
      expect(stage.calls()).toEqual([2, 1])
      expectError(await ask(stage, "solo"), 502, "api_error", "upstream_error")
      expect(stage.calls()).toEqual([4, 1])
    })

    test.concurrent("connection refused: the same, and 502 upstream_unreachable", async () => {
      await using stage = await endpointScene(simulator, ["a", "b"], { each: { a: { baseUrl: `${gone.url}/a/v1` } } })
      const answer = await ask(stage)
      expectAnswered(answer)
      expect(answer.attempts).toEqual(["a:first:unreachable", "a:repeat:unreachable", "b:next:answered"])
      expectError(await ask(stage, "solo"), 502, "api_error", "upstream_unreachable")
    })

    test.concurrent("no answer in time is a 504, and the upstream is let go", async () => {
      const timeouts = { nonStream: 400, firstToken: 400 }
      await using stage = await endpointScene(simulator, ["a", "b"], { timeouts })
      stage.vendor("a").behave({ kind: "hang" })
      const streams = endpoint.answer === "events"
      expectError(await ask(stage, "solo"), 504, "timeout_error", streams ? "first_token_timeout" : "request_timeout")
      expect(stage.calls()).toEqual([1, 0])
      await eventually(() => stage.vendor("a").calls[0]!.closedByPeer)
    })

    test.concurrent("a web page, an empty answer or a redirect under the right status is no answer", async () => {
      const steps: Behaviour[] = [
        { kind: "html", status: 200 },
        { kind: "status", status: 200, body: "" },
        { kind: "status", status: 302, body: "", headers: { location: "http://127.0.0.1:1/" } },
      ]
      for (const step of steps) {
        await using stage = await endpointScene(simulator, ["a", "b"])
        stage.vendor("a").behave(step)
        expectAnswered(await ask(stage))
        expect(stage.calls()[1]).toBe(1)
        expectError(await ask(stage, "solo"), 502, "api_error", "upstream_invalid_response")
      }
    })
  },
)

describe("an answer that breaks off", () => {
  const half = '{"data":[{"b64_json":"AAAA'
  const json = { "content-type": "application/json" }

  for (const end of ["fin", "rst"] as const) {
    for (const framing of ["chunked", "content-length"] as const) {
      test.concurrent(`in mid-body (${end}, ${framing}) is a broken connection, never a clean end`, async () => {
        await using stage = await endpointScene(simulator, ["a", "b"])
        stage.vendor("a").behave({ kind: "stream", frames: [half, "BBBB"], gapMs: 100, headers: json, framing, end })
        const connection = await rawConnection(stage.gateway.url)
        const { type, bytes } = imageGenerations.request("m")
        connection.send(
          rawRequest(
            imageGenerations.path,
            [`Authorization: Bearer ${stage.gateway.key}`, `Content-Type: ${type}`],
            bytes,
          ),
        )
        const failed = await connection.response().then(
          () => "a whole answer",
          (error: Error) => error.message,
        )
        expect(failed).toStartWith("no complete response before the end: HTTP/1.1 200 OK")
        expect(failed).toContain(half)
        expect(failed).not.toContain("\r\n0\r\n\r\n")
        const story = await eventually(() => stage.gateway.stories[0])
        expect(story).toMatchObject({ ending: "failed", error: "upstream_stream_truncated", usage: null })
        expect(stage.calls()).toEqual([1, 0])
        expect(stage.gateway.inFlight).toBe(0)
      })
    }

    test.concurrent(`before its first byte (${end}) goes to the next route`, async () => {
      await using stage = await endpointScene(simulator, ["a", "b"])
      stage.vendor("a").behave({ kind: "stream", body: "", headers: { "content-type": "audio/mpeg" }, end })
      const answer = await readAnswer(stage.gateway, await postTo(stage.gateway, speech.path, speech.request("m")))
      expect(answer.status).toBe(200)
      expect(stage.calls()).toEqual([2, 1])
    })

    test.concurrent(`where it is read whole (${end}) goes to the next route`, async () => {
      await using stage = await endpointScene(simulator, ["a", "b"])
      stage.vendor("a").behave({ kind: "stream", body: '{"data":[', headers: json, end })
      const answer = await readAnswer(
        stage.gateway,
        await postTo(stage.gateway, embeddings.path, embeddings.request("m")),
      )
      expect(JSON.parse(answer.text)).toMatchObject({ object: "list" })
      expect(stage.calls()).toEqual([2, 1])
    })
  }

  test.concurrent("a client library sees an error", async () => {
    await using stage = await endpointScene(simulator, ["a"])
    stage.vendor("a").behave({ kind: "speech", cut: { afterEvents: 3, how: "fin" } })
    const response = await postTo(stage.gateway, speech.path, speech.request("m"))
    expect(response.status).toBe(200)
    expect(
      await response.bytes().then(
        () => "whole",
        () => "broken",
      ),
    ).toBe("broken")
  })

  test.concurrent("one that takes longer than a request may take is broken off", async () => {
    await using stage = await endpointScene(simulator, ["a"], { timeouts: { nonStream: 600 } })
    stage
      .vendor("a")
      .behave({ kind: "stream", frames: Array(100).fill("drip"), gapMs: 60, headers: { "content-type": "audio/mpeg" } })
    const response = await postTo(stage.gateway, speech.path, speech.request("m"))
    expect(
      await response.bytes().then(
        () => "whole",
        () => "broken",
      ),
    ).toBe("broken")
    expect(await stage.gateway.story(response)).toMatchObject({ ending: "failed", error: "request_timeout" })
    await eventually(() => stage.vendor("a").calls[0]!.closedByPeer)
  })
})

describe("a client that leaves in mid-download", () => {
  const plans = [{ name: "default", concurrency: 1, models: ["*"], priceMultiplier: "1" }]
  const flows: [about: string, endpoint: EndpointSample, step: Behaviour][] = [
    ["speech", speech, { kind: "speech", megabytes: 200 }],
    ["a picture", imageGenerations, { kind: "images", megabytes: 200 }],
    ["speech that has fallen silent", speech, { kind: "speech", cut: { afterEvents: 1, how: "stall" } }],
    [
      "events",
      transcriptions,
      { kind: "stream", body: 'data: {"type":"transcript.text.delta","delta":"a"}\n\n', end: "stall" },
    ],
  ]
  test.each(flows)("%s: the upstream is let go within a second and the slot is back", async (_, endpoint, step) => {
    await using stage = await endpointScene(simulator, ["a"], { plans })
    stage.vendor("a").behave(step, { kind: "status", status: 200, json: { text: "ok" } })
    const connection = await rawConnection(stage.gateway.url)
    const { type, bytes } = endpoint.request("m")
    connection.send(
      rawRequest(endpoint.path, [`Authorization: Bearer ${stage.gateway.key}`, `Content-Type: ${type}`], bytes),
    )
    await new Promise<void>((resolve) => connection.socket.once("data", () => resolve()))
    connection.socket.pause()
    const refused = await postTo(stage.gateway, speech.path, speech.request("m"))
    expect(refused.status).toBe(429)
    connection.leave()
    const call = stage.vendor("a").calls[0]!
    await eventually(() => call.closedByPeer, 1000)
    expect(await eventually(() => stage.gateway.stories[0])).toMatchObject({ ending: "client_gone", error: null })
    await eventually(() => stage.gateway.inFlight === 0)
    const next = await postTo(stage.gateway, speech.path, speech.request("m"))
    expect([next.status, await next.text()]).toEqual([200, '{"text":"ok"}'])
    expect(stage.calls()).toEqual([2])
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
