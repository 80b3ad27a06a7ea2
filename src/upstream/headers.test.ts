import { describe, expect, test } from "bun:test"
import { sampleUpstream, sampleVendor } from "../../test/support/catalog-samples.ts"
import type { Upstream } from "../core/catalog.ts"
import type { AuthScheme } from "../core/vendor.ts"
import { version } from "../version.ts"
import { clientHeaders, streamHeaders, upstreamHeaders } from "./headers.ts"

function sent(
  client: Record<string, string>,
  upstream: Upstream = sampleUpstream("a"),
  secret: string | null = "sk-up",
) {
  return upstreamHeaders(new Headers(client), upstream, "chat", secret)
}

const bare = { "accept-encoding": "identity", "user-agent": `tollgate/${version}`, authorization: "Bearer sk-up" }

describe("to the upstream", () => {
  test("a caller that says nothing: our name, no compression, the upstream's credential", () => {
    expect(sent({})).toEqual(bare)
  })

  test("the named headers and every anthropic-* go on as they are", () => {
    const client = {
      "content-type": "application/json; charset=utf-8",
      accept: "text/event-stream",
      "user-agent": "curl/8",
      "idempotency-key": "k-1",
      traceparent: "00-aa-bb-01",
      "openai-beta": "assistants=v2",
      "anthropic-version": "2023-06-01",
      "Anthropic-Beta": "a,b",
    }
    expect(sent(client)).toEqual({
      ...bare,
      "content-type": "application/json; charset=utf-8",
      accept: "text/event-stream",
      "user-agent": "curl/8",
      "idempotency-key": "k-1",
      traceparent: "00-aa-bb-01",
      "openai-beta": "assistants=v2",
      "anthropic-version": "2023-06-01",
      "anthropic-beta": "a,b",
    })
  })

  test.each([
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
    "proxy-authorization",
    "host",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "content-encoding",
    "accept-encoding",
    "x-forwarded-for",
    "forwarded",
    "origin",
    "referer",
    "openai-organization",
    "x-anything",
  ])("%s of the caller stays here", (name) => {
    expect(sent({ [name]: "caller-value" })).toEqual(bare)
  })

  test("what Connection names stays here, however it is spelled", () => {
    const client = {
      connection: "Close,  Traceparent ,anthropic-beta",
      traceparent: "00",
      "anthropic-beta": "x",
      accept: "a",
    }
    expect(sent(client)).toEqual({ ...bare, accept: "a" })
    expect(sent({ connection: "keep-alive", traceparent: "00" })).toEqual({ ...bare, traceparent: "00" })
  })

  test("the vendor's own headers give way to the caller's, and both to the operator's", () => {
    const vendor = { ...sampleVendor, headers: { "anthropic-version": "vendor" } }
    const upstream = sampleUpstream("a", { vendor })
    expect(sent({}, upstream)["anthropic-version"]).toBe("vendor")
    expect(sent({ "anthropic-version": "caller" }, upstream)["anthropic-version"]).toBe("caller")
    const set = sampleUpstream("a", { vendor, headers: { "anthropic-version": "operator" } })
    expect(sent({ "anthropic-version": "caller" }, set)["anthropic-version"]).toBe("operator")
  })

  test("an operator's header replaces ours whatever case it is written in", () => {
    const upstream = sampleUpstream("a", { headers: { "User-Agent": "house", "X-Team": "Blue" } })
    const headers = sent({ "user-agent": "curl/8" }, upstream)
    expect(headers).toEqual({ ...bare, "user-agent": "house", "x-team": "Blue" })
    expect(new Headers(headers).get("user-agent")).toBe("house")
  })

  const places: readonly (readonly [AuthScheme, Record<string, string>])[] = [
    ["bearer", { authorization: "Bearer sk-up" }],
    ["authorization-key", { authorization: "Key sk-up" }],
    ["authorization-token", { authorization: "Token sk-up" }],
    ["x-api-key", { "x-api-key": "sk-up" }],
    ["api-key", { "api-key": "sk-up" }],
    ["x-goog-api-key", { "x-goog-api-key": "sk-up" }],
    ["x-key", { "x-key": "sk-up" }],
    ["none", {}],
  ]
  const { authorization: _, ...withoutCredential } = bare

  test.each(places)("the credential as %s", (auth, expected) => {
    const upstream = sampleUpstream("a", { vendor: { ...sampleVendor, auth } })
    expect(sent({}, upstream)).toEqual({ ...withoutCredential, ...expected })
    expect(sent({}, upstream, null)).toEqual(withoutCredential)
  })

  test("an endpoint may want the credential in a place of its own", () => {
    const vendor = { ...sampleVendor, authFor: { video: "x-goog-api-key" } } as const
    const upstream = sampleUpstream("a", { vendor })
    expect(sent({}, upstream)).toEqual(bare)
    expect(upstreamHeaders(new Headers(), upstream, null, "sk-up")).toEqual(bare)
    expect(upstreamHeaders(new Headers(), upstream, "video", "sk-up")).toEqual({
      ...withoutCredential,
      "x-goog-api-key": "sk-up",
    })
  })
})

describe("back to the caller", () => {
  test("only the named headers return", () => {
    const upstream = new Headers({
      "content-type": "application/json",
      "content-disposition": "attachment",
      "retry-after": "7",
      "x-should-retry": "false",
      "set-cookie": "a=b",
      server: "nginx",
      "content-length": "5",
      "content-encoding": "gzip",
      "transfer-encoding": "chunked",
      connection: "close",
      "x-ratelimit-remaining": "3",
      "openai-organization": "org",
    })
    expect(clientHeaders(upstream)).toEqual({
      "content-type": "application/json",
      "content-disposition": "attachment",
      "retry-after": "7",
      "x-should-retry": "false",
    })
  })

  test("the upstream's request id returns under a name of ours", () => {
    expect(clientHeaders(new Headers({ "x-request-id": "up-1" }))).toEqual({ "x-upstream-request-id": "up-1" })
    expect(clientHeaders(new Headers({ "request-id": "up-2" }))).toEqual({ "x-upstream-request-id": "up-2" })
    expect(clientHeaders(new Headers({ "request-id": "up-2", "x-request-id": "up-1" }))).toEqual({
      "x-upstream-request-id": "up-1",
    })
    expect(clientHeaders(new Headers())).toEqual({})
  })

  test("streams are not to be buffered or compressed on their way", () => {
    expect(streamHeaders).toEqual({ "cache-control": "no-cache, no-transform", "x-accel-buffering": "no" })
  })
})
