import { describe, expect, test } from "bun:test"
import { oddities, replyOf } from "../fixtures/recording.ts"
import { vendors } from "../presets.ts"
import { imageVendors } from "./registry.ts"

test("every vendor whose images are jobs has an adapter, and every adapter a vendor", () => {
  const adapted = vendors.filter((vendor) => vendor.adapted?.includes("image_generations")).map((vendor) => vendor.name)
  expect([...imageVendors.keys()].sort()).toEqual(adapted.sort())
  for (const [name, adapter] of imageVendors) expect(adapter.vendor).toBe(name)
})

describe.each([...imageVendors.values()])("$vendor", (vendor) => {
  const context = { baseUrl: "https://vendor.test", upstreamModel: "owner/model", settings: {} }
  const statuses = [200, 202, 204, 301, 400, 404, 429, 500, 503]
  const refs = [{ task: "t", id: "i", stage: "status" }, { id: "i", stage: "result" }, null, "x", [], {}]

  test("replies of no known shape are neither thrown over nor taken for images", () => {
    for (const json of oddities) {
      expect(["accepted", "failed", "unreadable"]).toContain(vendor.readSubmit(replyOf(json)).kind)
      for (const status of statuses) {
        for (const ref of refs) expect(vendor.readPoll(replyOf(json, status), ref).kind).not.toBe("succeeded")
      }
    }
  })

  test("a body that is not JSON is asked for again, with what it said", () => {
    const reply = { status: 200, headers: {}, json: null, text: "<html>\n  upstream\n</html>" }
    const expected = { kind: "unreadable", why: "HTTP 200: <html> upstream </html>" } as const
    expect(vendor.readSubmit(reply)).toEqual(expected)
    for (const ref of refs) expect(vendor.readPoll(reply, ref)).toEqual(expected)
  })

  test("trouble with the asking is no verdict on the job", () => {
    for (const status of [401, 403, 404, 408, 425, 429, 500, 502, 503, 504]) {
      for (const ref of refs) {
        const progress = vendor.readPoll(replyOf({ detail: "try later" }, status), ref)
        expect(progress).toEqual({ kind: "unreadable", why: `HTTP ${status}: try later` })
      }
    }
  })

  test("long texts of a vendor are cut to a readable length", () => {
    const submitted = vendor.readSubmit(replyOf({ detail: "x".repeat(5_000), code: "E", message: "x".repeat(5_000) }))
    expect(submitted.kind).toBe("failed")
    expect(JSON.stringify(submitted).length).toBeLessThan(400)
  })

  test("the caller's own fields go along but cannot take the place of the prompt", () => {
    const ask = { prompt: "a fox", count: 1, size: null, extra: { prompt: "a wolf", seed: 7 } }
    const body = JSON.stringify(vendor.submit(ask, context).body)
    expect(body).toContain('"a fox"')
    expect(body).toContain('"seed":7')
    expect(body).not.toContain("a wolf")
  })

  test("a damaged reference is an error of ours, not a call to somewhere else", () => {
    expect(() => vendor.poll({}, context)).toThrow("internal error")
  })
})
