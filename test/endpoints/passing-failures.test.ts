import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { allEndpoints, type EndpointSample, endpointSamples, endpointScene, postTo } from "../support/endpoints.ts"
import { eventually } from "../support/gateway.ts"
import { rawConnection, rawRequest } from "../support/raw-http.ts"
import { expectError, readAnswer, type Scene } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
const gone = await startSimulator()
await gone.stop()
afterAll(async () => {
  await simulator.stop()
  expect(simulator.complaints).toEqual([])
})

const { embeddings, imageGenerations, speech, transcriptions } = endpointSamples

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
        stage.vendor("a").behave({ kind: "stream", frames: [half, "BBBB"], gapMs: 300, headers: json, framing, end })
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
    await using stage = await endpointScene(simulator, ["a"], { timeouts: { nonStream: 1500 } })
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
    await eventually(() => call.closedByPeer, 2500)
    const left = await eventually(() => stage.gateway.stories.find(({ status }) => status !== 429))
    expect(left).toMatchObject({ ending: "client_gone", error: null })
    await eventually(() => stage.gateway.inFlight === 0)
    const next = await postTo(stage.gateway, speech.path, speech.request("m"))
    expect([next.status, await next.text()]).toEqual([200, '{"text":"ok"}'])
    expect(stage.calls()).toEqual([2])
  })
})
