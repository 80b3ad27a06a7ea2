import { z } from "@hono/zod-openapi"
import { GatewayError } from "../core/errors.ts"
import { isPlain, textParameter, wholeParameter } from "./parameters.ts"

export const mostPerPage = 500
export const usualPerPage = 50

/** A list that is given out in pages: its name and how the place of an entry in it is written into a cursor. */
export interface Listing<Item, Place> {
  /** In every cursor, so that one of this list does not fit another. */
  readonly name: string
  readonly write: (item: Item) => string
  /** Null for what `write` cannot have written. */
  readonly read: (text: string) => Place | null
}

/** Which part of a list is wanted. */
export interface PageAsk<Item, Place> {
  readonly listing: Listing<Item, Place>
  readonly limit: number
  /** The place of the last entry that the caller has seen; null: the list from its beginning. */
  readonly after: Place | null
}

export interface Page<Item> {
  readonly items: readonly Item[]
  readonly next: string | null
}

interface Named {
  readonly name: string
}

/** A list in the order of the names of its entries. */
export function namedListing(name: string): Listing<Named, string> {
  return {
    name,
    write: (item) => item.name,
    read: (text) => (text !== "" && isPlain(text) ? text : null),
  }
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

export function readPageAsk<Item, Place>(
  listing: Listing<Item, Place>,
  query: { readonly limit?: string | undefined; readonly cursor?: string | undefined },
): PageAsk<Item, Place> {
  return {
    listing,
    limit: query.limit === undefined ? usualPerPage : Number(query.limit),
    after: query.cursor === undefined ? null : readCursor(listing, query.cursor),
  }
}

/** Makes a page of what was found, for which one entry more than the page holds was asked: it tells whether to go on. */
export function pageOf<Item extends Base, Base>(ask: PageAsk<Base, unknown>, found: readonly Item[]): Page<Item> {
  const items = found.slice(0, ask.limit)
  const last = items.at(-1)
  const goesOn = found.length > ask.limit && last !== undefined
  return { items, next: goesOn ? cursorAt(ask.listing, ask.listing.write(last)) : null }
}

/** A page of things at hand, in the order of their names. */
export function pageOfAll<Item extends Named>(ask: PageAsk<Named, string>, all: Iterable<Item>): Page<Item> {
  const { after, limit } = ask
  const rest = [...all].filter(({ name }) => after === null || name > after)
  rest.sort((a, b) => (a.name < b.name ? -1 : 1))
  return pageOf(ask, rest.slice(0, limit + 1))
}

/** Names the entry to go on after, not a position, so that entries made or removed meanwhile shift nothing. */
function cursorAt(listing: { readonly name: string }, place: string): string {
  return Buffer.from(`${listing.name}:${place}`).toString("base64url")
}

function readCursor<Place>(listing: Listing<never, Place>, cursor: string): Place {
  const text = Buffer.from(cursor, "base64url")
    .toString()
    .slice(listing.name.length + 1)
  // Written again it must be the same: reading base64 passes over whatever is none.
  const place = cursorAt(listing, text) === cursor ? listing.read(text) : null
  if (place === null) throw foreignCursor()
  return place
}

export function foreignCursor(): GatewayError {
  return new GatewayError("invalid_parameter", "cursor must be the `next` of an earlier page of this list")
}
