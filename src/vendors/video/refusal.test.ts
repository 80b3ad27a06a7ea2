import { expect, test } from "bun:test"
import { replyOf } from "../fixtures/recording.ts"
import { notAccepted } from "./refusal.ts"

const page = { headers: {}, json: null, text: "<html> bad gateway </html>" }

test("a 4xx is a refusal, whoever speaks", () => {
  for (const status of [400, 401, 404, 408, 429, 499]) {
    expect(notAccepted({ ...page, status }, null)).toEqual({ kind: "refused", status, message: page.text })
    expect(notAccepted({ ...page, status }, { message: "no" })).toEqual({ kind: "refused", status, message: "no" })
  }
})

test("a 5xx is a refusal only in the vendor's own words", () => {
  for (const status of [500, 502, 503]) {
    expect(notAccepted({ ...page, status }, null).kind).toBe("unreadable")
    expect(notAccepted({ ...page, status }, { message: "no" })).toEqual({ kind: "refused", status, message: "no" })
  }
})

test("a time-out leaves open whether there is a job, in the vendor's own words too", () => {
  expect(notAccepted({ ...page, status: 504 }, { message: "too late" }).kind).toBe("unreadable")
  for (const [status, amountsTo] of [
    [500, 504],
    [504, 500],
  ] as const) {
    const error = { status: amountsTo, message: "too late" }
    expect(notAccepted(replyOf({ message: "too late" }, status), error).kind).toBe("unreadable")
  }
})

test("an error counts as what it amounts to, not by the status it comes with", () => {
  const error = { status: 402, message: "no money" }
  for (const status of [200, 403, 429, 500, 504]) {
    expect(notAccepted(replyOf({}, status), error)).toEqual({ kind: "refused", status: 402, message: "no money" })
  }
})

test("a 2xx or 3xx without a word of error leaves open whether there is a job", () => {
  for (const status of [200, 204, 302]) expect(notAccepted(replyOf({}, status), null).kind).toBe("unreadable")
})
