import { expect, test } from "bun:test"
import { GatewayError } from "../../core/errors.ts"
import type { JsonObject } from "../../core/json.ts"
import { readImageAsk } from "./ask.ts"

const plain = { model: "flux", prompt: "a fox" }

function refusal(body: JsonObject): GatewayError {
  try {
    readImageAsk(body)
  } catch (error) {
    if (error instanceof GatewayError) return error
  }
  throw new Error("was not refused")
}

test("what the caller left out has its default", () => {
  const expected = { prompt: "a fox", count: 1, size: null, responseFormat: "url", extra: {} } as const
  expect(readImageAsk(plain)).toEqual(expected)
  expect(readImageAsk({ ...plain, n: null, size: null, response_format: null, stream: null })).toEqual(expected)
  expect(readImageAsk({ ...plain, size: "auto", stream: false })).toEqual(expected)
})

test("what the caller said is read, and the rest is kept for the vendor", () => {
  const asked = {
    ...plain,
    n: 10,
    size: "1536x1024",
    response_format: "b64_json",
    quality: "hd",
    seed: 7,
    lora: { scale: 1 },
  }
  expect(readImageAsk(asked)).toEqual({
    prompt: "a fox",
    count: 10,
    size: { width: 1536, height: 1024 },
    responseFormat: "b64_json",
    extra: { quality: "hd", seed: 7, lora: { scale: 1 } },
  })
})

test("a field by the name of a prototype stays a field", () => {
  const body = JSON.parse('{"prompt":"a fox","__proto__":{"n":4}}') as JsonObject
  expect(Object.keys(readImageAsk(body).extra)).toEqual(["__proto__"])
  expect(readImageAsk(body).count).toBe(1)
})

test.each([
  ["prompt", [undefined, null, "", "  \n", 7, ["a fox"]]],
  ["n", [0, -1, 1e9, "5", 1.5, 11, true, {}]],
  [
    "size",
    ["1024", "1024*1024", "0x512", "512x0", "-1x5", "1024x1024x3", "16385x1", "1x99999", " 1x1", "1e3x1", 1024, {}],
  ],
  ["response_format", ["png", "", "URL", 1]],
  ["stream", [true, "true", 1]],
] as const)("%s is refused by name where it cannot be meant", (field, values) => {
  for (const value of values) {
    const error = refusal({ ...plain, [field]: value })
    expect(error.code).toBe("invalid_parameter")
    expect(error.message).toStartWith(`${field}: `)
  }
})

test("the longest side is still a size", () => {
  expect(readImageAsk({ ...plain, size: "16384x1" }).size).toEqual({ width: 16_384, height: 1 })
})
