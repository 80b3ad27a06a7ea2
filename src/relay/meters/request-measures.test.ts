import { describe, expect, test } from "bun:test"
import { wavFile } from "../../../test/support/media-files.ts"
import type { Ask } from "../../admission/ask.ts"
import { readAsk } from "../../admission/ask.ts"
import type { Protocol } from "../protocol.ts"
import { imageEdits, imageGenerations, speech, transcriptions } from "../protocols/passed.ts"
import { measurePictures, measureSpeech } from "./request-measures.ts"
import { estimateUpload } from "./upload-seconds.ts"

const address = "http://gateway.test/"

function asJson(protocol: Protocol, body: string): Promise<Ask> {
  const headers = { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) }
  return readAsk(new Request(address, { method: "POST", headers, body }), protocol)
}

function asForm(protocol: Protocol, fields: readonly (readonly [name: string, value: string | Blob])[]): Promise<Ask> {
  const form = new FormData()
  for (const [name, value] of fields) form.append(name, value)
  return readAsk(new Request(address, { method: "POST", body: form }), protocol)
}

describe("speech", () => {
  const characters = async (input: string): Promise<number | null | undefined> =>
    measureSpeech(await asJson(speech, `{"model":"m","voice":"v","input":${input}}`)).characters

  test.each([
    ['"hello"', 5],
    ['""', 0],
    ['"Grüße"', 5],
    ['"👋🏽"', 2],
    ['"\\ud83d\\udc4b\\n\\u0041"', 3],
    ['"\\ud83d x \\udc4b"', 5],
    ['"\\udc4b\\ud83d"', 2],
    ['"e\u0301"', 2],
  ])("%s is %d code points", async (input, count) => {
    expect(await characters(input)).toBe(count)
  })

  test.each(["7", "null", '["a"]', '{"text":"a"}', "true"])(
    "an input of another kind is not counted: %s",
    async (input) => {
      expect(await characters(input)).toBeUndefined()
    },
  )

  test("a request without input is not counted, one with two is refused", async () => {
    expect(measureSpeech(await asJson(speech, '{"model":"m"}'))).toEqual({})
    const twice = asJson(speech, '{"model":"m","input":"a","inp\\u0075t":"much longer"}')
    await expect(twice).rejects.toMatchObject({ code: "duplicate_key" })
  })

  test("a long text is counted wherever its pieces were cut", async () => {
    const text = "👋ä".repeat(200_000)
    expect(await characters(JSON.stringify(text))).toBe(400_000)
  })
})

describe("size and quality of pictures", () => {
  test("out of JSON", async () => {
    const ask = await asJson(imageGenerations, '{"size":"1024x1536","model":"m","quality":"h\\u0069gh","prompt":"x"}')
    expect(measurePictures(ask)).toEqual({ size: "1024x1536", quality: "high" })
    expect(measurePictures(await asJson(imageEdits, '{"model":"m","size":"auto"}'))).toEqual({ size: "auto" })
  })

  test("out of a form", async () => {
    const ask = await asForm(imageEdits, [
      ["model", "m"],
      ["size", "512x512"],
      ["image", new Blob(["png"])],
    ])
    expect(measurePictures(ask)).toEqual({ size: "512x512" })
  })

  test("odd ones are left out, two are refused", async () => {
    expect(measurePictures(await asJson(imageGenerations, '{"model":"m","size":[1],"quality":3}'))).toEqual({})
    const file = new Blob(["512x512"])
    const filed = await asForm(imageEdits, [
      ["model", "m"],
      ["size", file],
    ])
    expect(measurePictures(filed)).toEqual({})
    const twice = asForm(imageEdits, [
      ["size", "256x256"],
      ["model", "m"],
      ["size", "1024x1024"],
    ])
    await expect(twice).rejects.toMatchObject({ code: "duplicate_key" })
  })
})

describe("the length of an upload", () => {
  const length = async (...files: readonly (string | Buffer)[]): Promise<number> => {
    const parts = files.map((file) => ["file", new Blob([Uint8Array.from(Buffer.from(file))])] as const)
    return estimateUpload(await asForm(transcriptions, [["model", "m"], ...parts]))
  }

  test("is what the file says, else by its size", async () => {
    expect(await length(wavFile(2.5))).toBe(2_500_000)
    expect(await length("x".repeat(8000))).toBe(500_000)
    expect(await length("")).toBe(0)
  })

  test("is that of a large file, which arrives in pieces", async () => {
    expect(await length(wavFile(300))).toBe(300_000_000)
  })

  test("is nothing without a file, and the longest of several", async () => {
    expect(await length()).toBe(0)
    expect(await length(wavFile(1), wavFile(3), "short")).toBe(3_000_000)
  })
})
