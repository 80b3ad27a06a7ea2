import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import {
  type EndpointSample,
  endpointSamples,
  endpointScene,
  form,
  formType,
  postJson,
  postTo,
} from "../support/endpoints.ts"
import { eventually } from "../support/gateway.ts"
import { readAnswer, type Scene, stopWithoutComplaint } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

const { imageGenerations, speech, transcriptions } = endpointSamples

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
        .behave({ kind: "stream", frames: [partial, 'event: image_generation.completed\ndata: {"ty'], gapMs: 300, end })
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
    stage.vendor("b").behave({ kind: "stream", frames: [partial, error], gapMs: 300 })
    const answer = await readAnswer(stage.gateway, await ask(stage))
    expect(answer.text === partial + error).toBeTrue()
    expect(stage.calls()).toEqual([2, 1])
    expect(answer.story).toMatchObject({ ending: "failed", error: "upstream_error" })
  })

  test.concurrent("no event in time goes to the next route at once", async () => {
    await using stage = await endpointScene(simulator, ["a", "b"], { timeouts: { firstToken: 1000 } })
    stage.vendor("a").behave({ kind: "stream", body: ": hello\n\n", end: "stall", pingEveryMs: 50 })
    stage.vendor("b").behave({ kind: "stream", body: streams.images![2].join("") })
    const answer = await readAnswer(stage.gateway, await ask(stage))
    expect(answer.text === streams.images![2].join("")).toBeTrue()
    expect(answer.attempts).toEqual(["a:first:timeout", "b:next:answered"])
  })
})
