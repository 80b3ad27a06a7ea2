import { expect } from "bun:test"

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

const endings = ["response.completed", "response.incomplete", "response.failed"]

/** What clients take for granted: numbers without gaps, items opened before they are filled, deltas that add up, one end. */
export function expectWellFormed(stream: string): void {
  const events = eventsOf(stream)
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
  expect(events.slice(0, 2).map(({ type }) => type)).toEqual(["response.created", "response.in_progress"])
  expect(events.filter(({ type }) => endings.includes(type))).toEqual([events.at(-1)!])
  const open = new Set<unknown>()
  const texts = new Map<string, string>()
  for (const event of events) {
    const { type, output_index: index } = event
    const place = `${type.replace(/\.(delta|done)$/, "")} ${index} ${event.content_index ?? event.summary_index}`
    if (type === "response.output_item.added") open.add(index)
    else if (type === "response.output_item.done") expect(open.delete(index)).toBeTrue()
    else if (index !== undefined) expect(open.has(index)).toBeTrue()
    if (type.endsWith(".delta")) texts.set(place, (texts.get(place) ?? "") + String(event.delta))
    else if (/(_text|refusal|arguments)\.done$/.test(type))
      expect(event.text ?? event.refusal ?? event.arguments).toBe(texts.get(place) ?? "")
  }
  if (events.at(-1)?.type === "response.failed") return
  expect([...open]).toEqual([])
  const done = events.filter(({ type }) => type === "response.output_item.done").map(({ item }) => item)
  expect((events.at(-1)!.response as FinalResponse).output).toEqual(done as FinalResponse["output"])
}
