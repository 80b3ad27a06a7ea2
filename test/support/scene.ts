import { expect } from "bun:test"
import type { Simulator } from "../../simulator/simulator.ts"
import type { SimulatedVendor } from "../../simulator/vendor.ts"
import type { ConfigDocument, RouteConfig, UpstreamConfig } from "../../src/config/document.ts"
import { model, startGateway, type TestGateway, type ToldStory, upstream } from "./gateway.ts"

/** A gateway with vendors of its own, so that circuits and budgets of one test touch no other. */
export interface Scene extends AsyncDisposable {
  readonly gateway: TestGateway
  vendor(name: string): SimulatedVendor
  /** Asks and reads the answer to its end. */
  ask(stream: boolean, more?: Readonly<Record<string, unknown>>): Promise<Answer>
  /** How often each vendor was asked, in the order they were named. */
  calls(): number[]
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Uint8Array
  readonly text: string
  readonly story: ToldStory
  /** `upstream:why:outcome` of each attempt. */
  readonly attempts: readonly string[]
  /** Milliseconds between the end of an attempt and the start of the one after it. */
  pauseAfter(attempt: number): number
}

export interface SceneOptions extends ConfigDocument {
  /** Of the model "m", instead of one route for each upstream in order of priority. */
  readonly routes?: readonly Partial<RouteConfig>[]
  /** Changes to single upstreams, by name. */
  readonly each?: Readonly<Record<string, Partial<UpstreamConfig>>>
}

export const messages = [{ role: "user", content: "Say hello" }]

let scenes = 0

/** The model "m" has a route to each of the named upstreams, the model "solo" one to the first alone. */
export async function scene(
  simulator: Simulator,
  names: readonly string[],
  { routes, each = {}, ...document }: SceneOptions = {},
): Promise<Scene> {
  const number = ++scenes
  const vendor = (name: string): SimulatedVendor => simulator.vendor(`${name}-${number}`)
  const gateway = await startGateway({
    upstreams: names.map((name) => upstream(name, vendor(name).baseUrl, each[name])),
    models: [model("m", routes ?? names), model("solo", [names[0]!])],
    ...document,
  })
  return {
    gateway,
    vendor,
    async ask(stream, more = {}) {
      const response = await gateway.chat({ model: "m", ...(stream ? { stream } : {}), messages, ...more })
      return readAnswer(gateway, response)
    },
    calls: () => names.map((name) => vendor(name).calls.length),
    [Symbol.asyncDispose]: () => gateway.stop(),
  }
}

export async function readAnswer(gateway: TestGateway, response: Response): Promise<Answer> {
  const bytes = await response.bytes()
  const story = await gateway.story(response)
  return {
    status: response.status,
    headers: response.headers,
    bytes,
    text: Buffer.from(bytes).toString(),
    story,
    attempts: story.attempts.map(({ upstream: name, why, outcome }) => `${name}:${why}:${outcome}`),
    pauseAfter: (attempt) => story.attempts[attempt + 1]!.startedAt - story.attempts[attempt]!.endedAt!,
  }
}

/** What a vendor was last asked, as JSON. */
export function asked(stage: Scene, name = "a"): Record<string, unknown> {
  return JSON.parse(Buffer.from(stage.vendor(name).calls.at(-1)!.body).toString())
}

/** Stops a simulator that must have had nothing to complain about. */
export async function stopWithoutComplaint(simulator: Simulator): Promise<void> {
  await simulator.stop()
  expect(simulator.complaints).toEqual([])
}

/** The answer is exactly our error, and its story says the same. */
export function expectError(answer: Answer, status: number, type: string, code: string): void {
  const id = answer.headers.get("x-request-id")
  expect({ status: answer.status, body: JSON.parse(answer.text) }).toEqual({
    status,
    body: { error: { type, code, message: expect.any(String), request_id: id }, request_id: id },
  })
  expect(answer.headers.get("content-type")).toBe("application/json")
  expect({ ending: answer.story.ending, error: answer.story.error }).toEqual({
    ending: answer.status < 500 ? "refused" : "failed",
    error: code,
  })
}

/** A complete answer that a client can use, with the usage the upstream told. */
export function expectSuccess(answer: Answer, stream: boolean): void {
  expect(answer.status).toBe(200)
  if (stream) {
    const events = dataOf(answer.text)
    expect(events.at(-1)).toBe("[DONE]")
    expect(events.filter((data) => data.includes('"usage":{'))).toHaveLength(1)
  } else expect(JSON.parse(answer.text).choices[0].message.content).toBeString()
  expect(answer.story).toMatchObject({ ending: "completed", error: null, estimated: false })
  expect(answer.story.usage?.output).toBeGreaterThan(0)
}

/** The data of each event of a stream with LF line ends, comments left out. */
export function dataOf(text: string): string[] {
  return text.split("\n\n").flatMap((event) => (event.startsWith("data: ") ? [event.slice("data: ".length)] : []))
}

/** One chunk of a chat stream as an event. */
export function chunk(delta: object, finish: string | null = null, more: object = {}): string {
  const choices = [{ index: 0, delta, finish_reason: finish }]
  const body = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "up", choices, ...more }
  return `data: ${JSON.stringify(body)}\n\n`
}

export const roleChunk = chunk({ role: "assistant", content: "" })
export const done = "data: [DONE]\n\n"
export const finishChunk = chunk({}, "stop")
export const usageChunk = `data: ${JSON.stringify({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1,
  model: "up",
  choices: [],
  usage: { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 },
})}\n\n`

/** The last event of a stream that we ended because of an error: in band, and nothing after it. */
export function expectInBandError(answer: Answer, before: string, type: string, code: string): void {
  const id = answer.headers.get("x-request-id")
  expect(answer.status).toBe(200)
  expect(answer.text.slice(0, before.length)).toBe(before)
  const rest = answer.text.slice(before.length)
  expect(rest).toEndWith("\n\n")
  const events = dataOf(rest)
  expect(events).toHaveLength(1)
  expect(rest).toBe(`data: ${events[0]}\n\n`)
  expect(JSON.parse(events[0]!)).toEqual({
    error: { type, code, message: expect.any(String), request_id: id },
    request_id: id,
  })
  expect({ ending: answer.story.ending, error: answer.story.error }).toEqual({
    ending: "failed",
    error: code,
  })
}

/** A connection to the gateway that shows each read on its own. */
export function chatRequest(gateway: TestGateway, body: string): string {
  return [
    "POST /v1/chat/completions HTTP/1.1",
    "Host: gateway",
    `Authorization: Bearer ${gateway.key}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "",
    body,
  ].join("\r\n")
}

export function portOf(gateway: TestGateway): number {
  return Number(new URL(gateway.url).port)
}
