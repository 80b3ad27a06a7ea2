import { parseObject } from "../../src/core/json.ts"
import type { Seen } from "./job-client.ts"
import type { Stand } from "./stand.ts"
import { at, key, type Plan, type VideoVendor } from "./video-vendors.ts"

/** A client of one vendor, which shows the key as the vendor wants it. */
export interface VideoClient {
  /** Submits as the vendor's pages show, or another body, to a vendor that does as told. */
  submit(plan?: Plan, body?: object, path?: string): Promise<Seen>
  get(path: string, headers?: Record<string, string>): Promise<Seen>
  send(method: string, path: string, body?: object, headers?: Record<string, string>): Promise<Seen>
  /** Submits and tells the id. */
  begin(plan?: Plan, body?: object, path?: string): Promise<string>
  /** Polls a job. */
  look(id: string): Promise<Seen>
  /** Submits and polls once. */
  outcome(plan?: Plan, body?: object): Promise<Seen>
}

export function videoClient(stand: Stand, vendor: VideoVendor, credential: string = key): VideoClient {
  const [header, scheme] = vendor.auth
  const home = (): string => `${stand.simulator.url}/${vendor.name}`
  const send: VideoClient["send"] = (method, path, body, headers = {}) =>
    seen(path.startsWith("http") ? path : home() + path, {
      method,
      headers: { ...vendor.headers, [header]: scheme + credential, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  const submit: VideoClient["submit"] = (plan, body = vendor.submit[1], path = vendor.submit[0]) => {
    if (plan !== undefined) stand.simulator.vendor(vendor.name).behave(plan)
    return send("POST", path, body)
  }
  const begin: VideoClient["begin"] = async (...asked) => String(at((await submit(...asked)).body, vendor.idAt))
  const look: VideoClient["look"] = (id) => send("GET", vendor.poll(id))
  return {
    submit,
    send,
    get: (path, headers) => send("GET", path, undefined, headers),
    begin,
    look,
    outcome: async (plan, body) => look(await begin(plan, body)),
  }
}

/** An answer, whether it is JSON or has no body at all. */
export async function seen(url: string, init: RequestInit = {}): Promise<Seen> {
  const response = await fetch(url, { ...init, redirect: "manual" })
  return { status: response.status, headers: response.headers, body: parseObject(await response.text()) ?? {} }
}

/** The vendor of that name in the table. */
export function clientOf(stand: Stand, vendors: readonly VideoVendor[], name: string): VideoClient {
  const vendor = vendors.find((each) => each.name === name)
  if (vendor === undefined) throw new TypeError(`no vendor ${name}`)
  return videoClient(stand, vendor)
}
