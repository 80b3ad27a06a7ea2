import { z } from "@hono/zod-openapi"
import { GatewayError } from "../core/errors.ts"
import { isPlain, textParameter, wholeParameter } from "./parameters.ts"

export const mostPerPage = 500
export const usualPerPage = 50

/** Which part of a list is wanted. */
export interface PageAsk {
  /** The list's name, so that a cursor of one list does not fit another. */
  readonly list: string
  readonly limit: number
  /** The last name that the caller has seen; null: the list from its beginning. */
  readonly after: string | null
}

export interface Page<Item> {
  readonly items: readonly Item[]
  readonly next: string | null
}

/** The parameters that every list takes. */
export const pageParameters = {
  limit: wholeParameter("How many entries to answer with at most.", 1, mostPerPage, usualPerPage),
  cursor: textParameter("Where to go on: the `next` of the page before."),
}

export function pageSchema<Item extends z.ZodType>(item: Item, name: string) {
  return z
    .object({
      data: z.array(item),
      next: z.string().nullable().describe("The `cursor` of the next page; null on the last one."),
    })
    .openapi(name)
}

export function readPageAsk(
  list: string,
  query: { readonly limit?: string | undefined; readonly cursor?: string | undefined },
): PageAsk {
  return {
    list,
    limit: query.limit === undefined ? usualPerPage : Number(query.limit),
    after: query.cursor === undefined ? null : readCursor(list, query.cursor),
  }
}

/** Makes a page of what was found, for which one entry more than the page holds was asked: it tells whether to go on. */
export function pageOf<Item extends { readonly name: string }>(ask: PageAsk, found: readonly Item[]): Page<Item> {
  const items = found.slice(0, ask.limit)
  const last = items.at(-1)
  return { items, next: found.length > ask.limit && last !== undefined ? cursorAt(ask.list, last.name) : null }
}

/** A page of things at hand, in the order of their names. */
export function pageOfAll<Item extends { readonly name: string }>(ask: PageAsk, all: Iterable<Item>): Page<Item> {
  const { after, limit } = ask
  const rest = [...all].filter(({ name }) => after === null || name > after)
  rest.sort((a, b) => (a.name < b.name ? -1 : 1))
  return pageOf(ask, rest.slice(0, limit + 1))
}

/** Names the entry to go on after, not a position, so that entries made or removed meanwhile shift nothing. */
function cursorAt(list: string, name: string): string {
  return Buffer.from(`${list}:${name}`).toString("base64url")
}

function readCursor(list: string, cursor: string): string {
  const text = Buffer.from(cursor, "base64url").toString()
  const name = text.slice(list.length + 1)
  // Written again it must be the same: reading base64 passes over whatever is none.
  if (name !== "" && isPlain(name) && cursorAt(list, name) === cursor) return name
  throw new GatewayError("invalid_parameter", "cursor must be the `next` of an earlier page of this list")
}
