import { expect } from "bun:test"
import { checkStream } from "./responses-check.ts"

/** One event of a responses stream. */
export interface ResponsesEvent {
  readonly type: string
  readonly sequence_number: number
  readonly [field: string]: unknown
}

/** The final response of a stream, as far as tests look at it. */
export interface FinalResponse {
  readonly id: string
  readonly status: string
  readonly model: string
  readonly output: readonly { readonly type: string; readonly [field: string]: unknown }[]
  readonly usage: unknown
  readonly [field: string]: unknown
}

/** The events of a whole stream; each must be named by its type, and nothing may stand between them. */
export function eventsOf(stream: string): ResponsesEvent[] {
  expect(stream).toEndWith("\n\n")
  return stream
    .slice(0, -2)
    .split("\n\n")
    .map((block) => {
      const [, name, data] = /^event: (\S+)\ndata: (.*)$/.exec(block) ?? []
      const event = JSON.parse(data ?? "null") as ResponsesEvent
      expect(event?.type).toBe(name!)
      return event
    })
}

export function typesOf(stream: string): string[] {
  return eventsOf(stream).map(({ type }) => type)
}

export function finalOf(stream: string): FinalResponse {
  return eventsOf(stream).at(-1)?.response as FinalResponse
}

/** What clients take for granted, by the same rules that the bridge's own tests go by. */
export function expectWellFormed(stream: string): void {
  eventsOf(stream)
  expect(() => checkStream(stream)).not.toThrow()
}
