import { GatewayError } from "./errors.ts"

/** A model as the lists need it. */
export interface ListedModel {
  readonly name: string
  /** In milliseconds since 1970. */
  readonly createdAt: number
  readonly ownedBy: string
}

/** The query of the messages-style list as it stands in the address; absent and empty mean the same. */
export interface ModelPageQuery {
  readonly limit?: string | null
  readonly after_id?: string | null
  readonly before_id?: string | null
}

export interface OpenaiModel {
  readonly id: string
  readonly object: "model"
  /** In seconds since 1970. */
  readonly created: number
  readonly owned_by: string
}

export interface OpenaiModelList {
  readonly object: "list"
  readonly data: readonly OpenaiModel[]
}

export interface MessagesModel {
  readonly type: "model"
  readonly id: string
  readonly display_name: string
  /** RFC 3339. */
  readonly created_at: string
  readonly max_input_tokens: null
  readonly max_tokens: null
  readonly lifecycle: "active"
  readonly deprecated_at: null
  readonly retires_at: null
  readonly line: null
  readonly capabilities: null
}

export interface MessagesModelPage {
  readonly data: readonly MessagesModel[]
  /** More models in the direction of the paging. */
  readonly has_more: boolean
  readonly first_id: string | null
  readonly last_id: string | null
}

export const defaultPageLimit = 20
export const maxPageLimit = 1000

export function openaiModel(model: ListedModel): OpenaiModel {
  return {
    id: model.name,
    object: "model",
    created: Math.floor(model.createdAt / 1000),
    owned_by: model.ownedBy,
  }
}

/** All models at once: this protocol has no pages. */
export function openaiModelList(models: readonly ListedModel[]): OpenaiModelList {
  return { object: "list", data: newestFirst(models).map(openaiModel) }
}

export function messagesModel(model: ListedModel): MessagesModel {
  return {
    type: "model",
    id: model.name,
    display_name: model.name,
    created_at: new Date(model.createdAt).toISOString(),
    max_input_tokens: null,
    max_tokens: null,
    lifecycle: "active",
    deprecated_at: null,
    retires_at: null,
    line: null,
    capabilities: null,
  }
}

/**
 * One page, newest first in either direction: `after_id` gives the models that follow that one in the list, `before_id`
 * those just ahead of it. A client goes on with `after_id=last_id` or `before_id=first_id` while `has_more` is true. An
 * id that is not in the list, such as that of a model removed since the last page, gives an empty page and so an end;
 * starting over would hand out models twice.
 */
export function messagesModelPage(models: readonly ListedModel[], query: ModelPageQuery): MessagesModelPage {
  const limit = readLimit(query.limit)
  if (query.after_id && query.before_id) {
    throw new GatewayError("invalid_parameter", "after_id and before_id cannot be given together")
  }
  const sorted = newestFirst(models)
  const place = (id: string): number => sorted.findIndex((model) => model.name === id)
  if (query.before_id) {
    const end = Math.max(0, place(query.before_id))
    const start = Math.max(0, end - limit)
    return page(sorted.slice(start, end), start > 0)
  }
  const cursor = query.after_id ? place(query.after_id) : -1
  if (query.after_id && cursor < 0) return page([], false)
  const start = cursor + 1
  return page(sorted.slice(start, start + limit), start + limit < sorted.length)
}

function page(models: readonly ListedModel[], more: boolean): MessagesModelPage {
  return {
    data: models.map(messagesModel),
    has_more: more,
    first_id: models[0]?.name ?? null,
    last_id: models.at(-1)?.name ?? null,
  }
}

function readLimit(text: string | null | undefined): number {
  if (!text) return defaultPageLimit
  const limit = /^\d+$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= maxPageLimit) return limit
  throw new GatewayError("invalid_parameter", `limit must be a whole number from 1 to ${maxPageLimit}`)
}

/** Ties go by name, in an order that no locale changes, so that pages taken at different times fit together. */
function newestFirst(models: readonly ListedModel[]): readonly ListedModel[] {
  return models.toSorted((a, b) => b.createdAt - a.createdAt || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
}
