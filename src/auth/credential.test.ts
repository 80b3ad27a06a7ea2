import { describe, expect, test } from "bun:test"
import { readCredential } from "./credential.ts"

const read = (headers: Record<string, string>) => readCredential(new Headers(headers))

describe("accepted", () => {
  test.each([
    ["a bearer token", { authorization: "Bearer sk-1" }, "sk-1"],
    ["x-api-key", { "x-api-key": "sk-2" }, "sk-2"],
    ["header names in any case", { AUTHORIZATION: "Bearer sk-3" }, "sk-3"],
    ["authorization before x-api-key", { authorization: "Bearer sk-4", "x-api-key": "sk-5" }, "sk-4"],
    ["any characters but spaces", { authorization: "Bearer a.b-c_d+e/f==" }, "a.b-c_d+e/f=="],
  ] as const)("%s", (_, headers, token) => {
    expect(read(headers)).toBe(token)
  })
})

describe("refused", () => {
  test.each([
    ["nothing", {}],
    ["another scheme", { authorization: "Basic dTpw" }],
    ["the scheme in lower case", { authorization: "bearer sk-1" }],
    ["the scheme in upper case", { authorization: "BEARER sk-1" }],
    ["the scheme alone", { authorization: "Bearer" }],
    ["the scheme and a space", { authorization: "Bearer " }],
    ["two spaces", { authorization: "Bearer  sk-1" }],
    ["a tab", { authorization: "Bearer\tsk-1" }],
    ["two tokens", { authorization: "Bearer sk-1 sk-2" }],
    ["two headers, joined", { authorization: "Bearer sk-1, Bearer sk-2" }],
    ["the bare key", { authorization: "sk-1" }],
    ["an empty authorization", { authorization: "" }],
    ["an empty x-api-key", { "x-api-key": "" }],
    ["a key in another header", { "api-key": "sk-1" }],
  ] as const)("%s", (_, headers) => {
    expect(read(headers)).toBeNull()
  })

  test.each(["Basic dTpw", "", "Bearer", "sk-1"])("a wrong authorization (%p) is not healed by x-api-key", (wrong) => {
    expect(read({ authorization: wrong, "x-api-key": "sk-good" })).toBeNull()
  })

  test("one that is longer than any of ours", () => {
    expect(read({ authorization: `Bearer ${"x".repeat(8192)}` })).toHaveLength(8192)
    expect(read({ authorization: `Bearer ${"x".repeat(8193)}` })).toBeNull()
    expect(read({ "x-api-key": "x".repeat(8193) })).toBeNull()
  })
})
