import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { blankOut, joinBytes, textOf, utf8 } from "./bytes.ts"

describe("text and bytes", () => {
  test("text comes back from its bytes", () => {
    for (const text of ["", "plain", "Grüße 👋", "\u0000\u2028\ufeff x"]) expect(textOf(utf8(text))).toBe(text)
  })

  test("a part of a larger buffer is read as that part", () => {
    expect(textOf(utf8("before INSIDE after").subarray(7, 13))).toBe("INSIDE")
  })

  test("broken UTF-8 becomes U+FFFD instead of an error", () => {
    expect(textOf(new Uint8Array([0x61, 0xff, 0x62]))).toBe("a\ufffdb")
  })
})

describe("joining", () => {
  test("puts parts together in order", () => {
    expect(textOf(joinBytes([utf8("a"), utf8(""), utf8("bc")]))).toBe("abc")
  })

  test("a single part is returned as it is; none is empty", () => {
    const part = utf8("x")
    expect(joinBytes([part])).toBe(part)
    expect(joinBytes([])).toHaveLength(0)
  })
})

describe("blanking out a secret", () => {
  const blank = (text: string, secret: string) => textOf(blankOut(utf8(text), secret, "***"))

  test("every occurrence is covered, also at the edges and side by side", () => {
    expect(blank("sk-1 and sk-1", "sk-1")).toBe("*** and ***")
    expect(blank("sk-1sk-1", "sk-1")).toBe("******")
    expect(blank("sk-1", "sk-1")).toBe("***")
  })

  test("bytes without it are returned as they are, not copied", () => {
    const bytes = utf8("nothing here")
    expect(blankOut(bytes, "sk-1", "***")).toBe(bytes)
    expect(blankOut(bytes, "", "***")).toBe(bytes)
  })

  test("the given bytes are not changed", () => {
    const bytes = utf8("key sk-1")
    blankOut(bytes, "sk-1", "***")
    expect(textOf(bytes)).toBe("key sk-1")
  })

  test("a part of a larger buffer is searched as that part", () => {
    const part = utf8("sk-1 [sk-1] sk-1").subarray(5, 11)
    expect(textOf(blankOut(part, "sk-1", "***"))).toBe("[***]")
  })

  test("bytes that are no text around it survive", () => {
    const bytes = joinBytes([new Uint8Array([0xff, 0x00]), utf8("schlüssel"), new Uint8Array([0xfe])])
    expect([...blankOut(bytes, "schlüssel", "*")]).toEqual([0xff, 0x00, 0x2a, 0xfe])
  })

  test("does what replacing all does", () => {
    const letters = fc.string({ unit: fc.constantFrom("a", "b", "ü"), maxLength: 30 })
    const secrets = fc.string({ unit: fc.constantFrom("a", "b", "ü"), minLength: 1, maxLength: 3 })
    fc.assert(
      fc.property(letters, secrets, (text, secret) => expect(blank(text, secret)).toBe(text.replaceAll(secret, "***"))),
    )
  })
})
