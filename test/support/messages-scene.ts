import { expect } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import type { Simulator } from "../../simulator/simulator.ts"
import type { UpstreamConfig } from "../../src/config/document.ts"
import type { TestGateway } from "./gateway.ts"
import { checkMessages } from "./messages-check.ts"
import { type Answer, readAnswer, type Scene, type SceneOptions, scene } from "./scene.ts"

export const messagesPath = "/compat/v1/messages"
export const countPath = "/compat/v1/messages/count_tokens"

/** How a request gets to the model: as it is, or translated for an upstream that speaks chat alone. */
export type Way = "native" | "bridged"
export const ways: readonly Way[] = ["native", "bridged"]

export const vendorFor: Readonly<Record<Way, Partial<UpstreamConfig>>> = {
  native: { vendor: "anthropic" },
  bridged: { vendor: "openai-compatible" },
}

export const modes = [
  ["not streamed", false],
  ["streamed", true],
] as const

/** Every way, streamed and not. */
export const waysAndModes = ways.flatMap((way) => [
  [way, "not streamed", false] as const,
  [way, "streamed", true] as const,
])

/** What the model says, whichever dialect its upstream speaks. */
export interface Said {
  readonly text?: string
  readonly thinking?: string
  readonly toolCalls?: readonly Readonly<{ id?: string; name: string; arguments: string }>[]
  readonly gapMs?: number
  readonly chunks?: number
}

export function saying(way: Way, { thinking, ...said }: Said): Behaviour {
  if (way === "native") return { kind: "messages", gapMs: 1, ...said, ...(thinking === undefined ? {} : { thinking }) }
  return { kind: "chat", gapMs: 1, ...said, ...(thinking === undefined ? {} : { reasoning: thinking }) }
}

/** The upstream "a", reached one way or the other. */
export function over(way: Way, simulator: Simulator, options: SceneOptions = {}): Promise<Scene> {
  const { each = {}, ...rest } = options
  return scene(simulator, ["a"], { ...rest, each: { a: { ...vendorFor[way], ...each.a } } })
}

const hello = { model: "m", max_tokens: 100, messages: [{ role: "user", content: "Say hello" }] }

/** POSTs to the messages endpoint; an object is sent as JSON on top of a plain request, text as it is. */
export function postMessages(
  { url, key }: Pick<TestGateway, "url" | "key">,
  body: object | string = {},
  { path = messagesPath, headers = {}, signal }: PostOptions = {},
): Promise<Response> {
  return fetch(url + path, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify({ ...hello, ...body }),
    ...(signal === undefined ? {} : { signal }),
  })
}

export interface PostOptions {
  /** With its query. */
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** The same, read to its end. */
export async function askMessages(
  { gateway }: Pick<Scene, "gateway">,
  body: object | string = {},
  options: PostOptions = {},
): Promise<Answer> {
  return readAnswer(gateway, await postMessages(gateway, body, options))
}

export interface Message {
  readonly id: string
  readonly type: string
  readonly model: string
  readonly content: readonly Readonly<Record<string, unknown>>[]
  readonly stop_reason: string
  readonly stop_sequence: string | null
  readonly usage: Readonly<Record<string, number>>
}

/** The message that a bridged answer tells, a stream's grammar checked on the way. */
export function messageOf(answer: Pick<Answer, "status" | "text" | "headers">, stream: boolean): Message {
  expect(answer.status).toBe(200)
  expect(answer.headers.get("content-type")).toStartWith(stream ? "text/event-stream" : "application/json")
  return (stream ? checkMessages(answer.text).message : JSON.parse(answer.text)) as Message
}

/** An error of the gateway's own in the messages style: the code kept, one request id in all three places. */
export function expectMessagesError(answer: Answer, status: number, type: string, code: string): void {
  const id = answer.headers.get("x-request-id")
  expect({ status: answer.status, body: JSON.parse(answer.text) }).toEqual({
    status,
    body: { type: "error", error: { type, code, message: expect.any(String), request_id: id }, request_id: id },
  })
  expect(answer.headers.get("request-id")).toBe(id)
  expect(answer.headers.get("content-type")).toBe("application/json")
}
