import { isObject } from "../../../src/core/json.ts"
import { valuesOf } from "../../wire/request-parser.ts"
import { readJson } from "../json-body.ts"
import type { VendorRequest } from "../protocol.ts"

export type Body = Readonly<Record<string, unknown>>

/** The JSON object of a request, or null. */
export function bodyOf(request: VendorRequest): Body | null {
  const body = readJson(request.body)
  return isObject(body) ? body : null
}

/** A part of a body that is an object of its own; empty where it is missing or no object. */
export function partOf(body: Body, name: string): Body {
  const part = body[name]
  return isObject(part) ? part : {}
}

export function queryOf(request: VendorRequest): URLSearchParams {
  return new URLSearchParams(request.path.split("?")[1])
}

/** The key after that scheme in `authorization`, and no other place. */
export function keyAfter(scheme: string): (request: VendorRequest) => string | undefined {
  const pattern = new RegExp(`^${scheme} +(\\S+)$`, "i")
  return ({ headers }) => pattern.exec(valuesOf(headers, "authorization")[0] ?? "")?.[1]
}

export const bearer = keyAfter("Bearer")

export function isText(value: unknown, longest: number = Number.POSITIVE_INFINITY): value is string {
  return typeof value === "string" && value !== "" && value.length <= longest
}

export function isWhole(value: unknown, least: number, most: number): value is number {
  return Number.isInteger(value) && typeof value === "number" && value >= least && value <= most
}

/** True for a missing value, too: what is optional is only wrong when it is there. */
export function isNoneOr(value: unknown, allowed: readonly unknown[]): boolean {
  return value === undefined || allowed.includes(value)
}

/** True for addresses that a vendor can fetch a picture from, data URLs among them. */
export function isPictureUrl(value: unknown): value is string {
  return typeof value === "string" && /^(?:https?:\/\/|data:image\/[\w.+-]+;base64,)/.test(value)
}

/** A number as these vendors' prices: rounded up to whole units. */
export function unitsFor(seconds: number, perSecond: number): number {
  return Math.ceil(seconds * perSecond)
}

/** The vendor that a simulated vendor is named after: `kling`, `kling-2`, but not `klingon`. */
export function isNamed({ vendor }: VendorRequest, name: string): boolean {
  return vendor.startsWith(name) && !/^[a-z]/.test(vendor.slice(name.length))
}
