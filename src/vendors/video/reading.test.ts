import { describe, expect, test } from "bun:test"
import { replyOf } from "../fixtures/recording.ts"
import { finished, noVerdict, refusedBy, secondsAt, wordOf } from "./reading.ts"

// biome-ignore format: a table
test.each([
  [5, 5], [5.041, 5.041], ["5", 5], ["5.0", 5], [" 12.5 ", 12.5], [86_400, 86_400],
  [0, null], [-1, null], ["0", null], ["-5", null], ["5s", null], ["", null], ["1e3", null], ["Infinity", null], [86_401, null],
  [Number.NaN, null], [Number.POSITIVE_INFINITY, null], [null, null], [true, null], [[5], null], [{}, null],
])("a vendor's length of %p is read as %p seconds", (value, expected) => {
  expect(secondsAt({ video: { duration: value } }, "video", "duration")).toBe(expected)
})

test("a length that is not there is none", () => {
  expect(secondsAt({ video: "x" }, "video", "duration")).toBeNull()
  expect(secondsAt(undefined, "duration")).toBeNull()
})

describe("a refusal", () => {
  test("has the reply's status and the vendor's words", () => {
    const expected = { kind: "refused", status: 422, message: "no such size" } as const
    expect(refusedBy(replyOf({ detail: "no such size" }, 422))).toEqual(expected)
  })

  test("has the adapter's words where it knows better", () => {
    expect(refusedBy(replyOf({ detail: "x" }, 400), "no such size")).toMatchObject({ message: "no such size" })
  })

  test("has the text where the body is no JSON, in one line of readable length", () => {
    const reply = { status: 400, headers: {}, json: null, text: `<html>\n  ${"x".repeat(5_000)}` }
    const refused = refusedBy(reply)
    expect(refused).toMatchObject({ message: expect.stringMatching(/^<html> x+…$/) })
    expect(JSON.stringify(refused).length).toBeLessThan(400)
  })

  test("has at least the status to say", () => {
    expect(refusedBy(replyOf(null, 403))).toMatchObject({ message: "HTTP 403" })
  })
})

describe("a reply to a poll without a verdict", () => {
  test("says that there is no such job by the status 404 alone", () => {
    expect(noVerdict(replyOf({ detail: "gone" }, 404))).toEqual({ kind: "missing", why: "HTTP 404: gone" })
  })

  test.each([200, 400, 401, 403, 410, 429, 500, 502])("is asked again for after a %i", (status) => {
    expect(noVerdict(replyOf({ detail: "later" }, status))).toEqual({
      kind: "unreadable",
      why: `HTTP ${status}: later`,
    })
  })
})

test("a job that is done without an address has failed", () => {
  const url = "https://x.test/y.mp4"
  expect(finished(url, 5)).toEqual({ kind: "succeeded", url, seconds: 5 })
  expect(finished(null, 5)).toEqual({ kind: "failed", reason: "the vendor finished the job without a video" })
})

// biome-ignore format: a table
test.each([
  ["SUCCEEDED", "succeeded"], [" Running\n", "running"], ["", null], ["  ", null], [7, null], [null, null], [undefined, null], [["done"], null],
])("a status word of %p is compared as %p", (value, expected) => {
  expect(wordOf(value)).toBe(expected)
})
