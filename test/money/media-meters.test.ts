import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import type { Price } from "../../src/core/price.ts"
import { expectCharged, openJobShop, openShop, type Shop } from "../support/books.ts"
import { form, formType, postTo } from "../support/endpoints.ts"
import { job, jobVendorNames } from "../support/image-scene.ts"
import { wavFile } from "../support/media-files.ts"
import { type Answer, readAnswer, stopWithoutComplaint } from "../support/scene.ts"

setDefaultTimeout(60_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

const mebibyte = 1024 * 1024

async function upload(
  shop: Shop,
  path: string,
  fields: Readonly<Record<string, string>>,
  file: Uint8Array = wavFile(2.5),
  fileName = "file",
): Promise<Answer> {
  const parts = Object.entries({ model: "m", ...fields }).map(([name, value]) => ({ name, value }))
  const bytes = form([...parts, { name: fileName, filename: "some.wav", value: file }])
  return readAnswer(shop.gateway, await postTo(shop.gateway, path, { type: formType, bytes }))
}

describe("pictures", () => {
  const generations = "/v1/images/generations"

  test("are counted in the answer, not in the request", async () => {
    await using shop = await openShop(simulator, { price: { image: "0.04" } })
    shop.vendor("a").behave({ kind: "images", images: 2 })
    const answer = await shop.ask(generations, { prompt: "a fox", n: 3 })
    const line = await expectCharged(shop, answer, 80_000_000n)
    expect(line).toMatchObject({ estimated: false, measured: { measured: { images: 2 } } })
    shop.vendor("a").behave({ kind: "images" })
    await expectCharged(shop, await shop.ask(generations, { prompt: "a fox", n: 3 }), 120_000_000n)
    await expectCharged(shop, await shop.ask(generations, { prompt: "a fox", response_format: "url" }), 40_000_000n)
  })

  test("of 30 MB are counted without being kept", async () => {
    await using shop = await openShop(simulator, { price: { image: "0.04" } })
    shop.vendor("a").behave({ kind: "images", megabytes: 10 })
    const response = await postTo(shop.gateway, generations, {
      type: "application/json",
      bytes: Buffer.from(JSON.stringify({ model: "m", prompt: "a fox", n: 3 })),
    })
    Bun.gc(true)
    const before = process.memoryUsage().rss
    let size = 0
    let most = 0
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      size += chunk.length
      most = Math.max(most, process.memoryUsage().rss)
    }
    expect(size).toBeGreaterThan(30 * mebibyte * 0.95)
    // Vendor, gateway and client are one process here, and each lets go of what has passed.
    expect(most - before).toBeLessThan(120 * mebibyte)
    await expectCharged(shop, { story: await shop.gateway.story(response) }, 120_000_000n)
  })

  test("come as events too: each completed one counts, sketches do not", async () => {
    await using shop = await openShop(simulator, { price: { image: "0.04" } })
    shop.vendor("a").behave({ kind: "images" })
    const answer = await shop.ask(generations, { prompt: "a fox", n: 2, stream: true, partial_images: 2 })
    expect(answer.text.match(/event: image_generation.partial_image/g)).toHaveLength(4)
    const line = await expectCharged(shop, answer, 80_000_000n)
    expect(line).toMatchObject({ estimated: false, measured: { measured: { images: 2 } } })
  })

  test("cost tokens where the price is by tokens, the same as events and as one answer", async () => {
    await using shop = await openShop(simulator, { price: { input: "5", output: "40" } })
    const usage = { input_tokens: 12, output_tokens: 1000, total_tokens: 1012 }
    shop.vendor("a").behave({ kind: "images", usage })
    await expectCharged(shop, await shop.ask(generations, { prompt: "a fox" }), 40_060_000n)
    await expectCharged(shop, await shop.ask(generations, { prompt: "a fox", stream: true }), 40_060_000n)
    // Each picture of a stream tells its own tokens.
    await expectCharged(shop, await shop.ask(generations, { prompt: "a fox", n: 2, stream: true }), 80_120_000n)
  })

  const tiers: Price = {
    image: "0.01",
    tiers: [
      { size: "1024x1536", prices: { image: "0.02" } },
      { size: "1024x1536", quality: "high", prices: { image: "0.2" } },
    ],
  }
  test.each([
    ["1024x1024", "high", 10_000_000n],
    ["1024x1536", "low", 20_000_000n],
    ["1024x1536", "high", 200_000_000n],
    ["1024X1536", " HIGH", 200_000_000n],
  ])("are priced by the size and quality that the answer tells: %s %s", async (size, quality, due) => {
    await using shop = await openShop(simulator, { price: tiers })
    const data = [{ b64_json: "AAAA" }]
    shop.vendor("a").behave({ kind: "status", status: 200, json: { created: 1, data, size, quality } })
    // What was asked for is not what was made.
    const answer = await shop.ask(generations, { prompt: "a fox", size: "512x512", quality: "auto" })
    await expectCharged(shop, answer, due)
  })

  test("are priced by the size and quality that were asked for, where the answer does not tell", async () => {
    await using shop = await openShop(simulator, { price: tiers })
    const data = [{ url: "https://pictures.example/1" }, { url: "https://pictures.example/2" }]
    shop.vendor("a").behave({ kind: "status", status: 200, json: { created: 1, data } })
    const asked = { prompt: "a fox", size: "1024x1536", quality: "high" }
    const line = await expectCharged(shop, await shop.ask(generations, asked), 400_000_000n)
    expect(line.measured!.measured).toMatchObject({ size: "1024x1536", quality: "high", images: 2 })
    const { model: _, ...fields } = { model: "m", ...asked }
    await expectCharged(shop, await upload(shop, "/v1/images/edits", fields, wavFile(0.1), "image"), 400_000_000n)
  })

  test("edits and variations are counted alike", async () => {
    await using shop = await openShop(simulator, { price: { image: "0.04" } })
    shop.vendor("a").behave({ kind: "images", images: 2 })
    const edited = await upload(shop, "/v1/images/edits", { prompt: "a fox" }, wavFile(0.1), "image")
    await expectCharged(shop, edited, 80_000_000n)
    await expectCharged(shop, await upload(shop, "/v1/images/variations", {}, wavFile(0.1), "image"), 80_000_000n)
  })

  test("that are none cost nothing", async () => {
    await using shop = await openShop(simulator, { price: { image: "0.04" } })
    shop.vendor("a").behave({ kind: "images", images: 0 })
    const { lines } = await shop.entryOf(await shop.ask(generations, { prompt: "a fox" }))
    expect(lines).toEqual([])
  })

  test("an answer that is one picture itself counts as one", async () => {
    await using shop = await openShop(simulator, { price: { image: "0.04" } })
    const headers = { "content-type": "image/png" }
    shop.vendor("a").behave({ kind: "status", status: 200, body: "PNG", headers })
    await expectCharged(shop, await shop.ask(generations, { prompt: "a fox" }), 40_000_000n)
  })
})

describe("pictures that are jobs are counted in what the job made", () => {
  test.each(jobVendorNames)("%s", async (name) => {
    await using shop = await openJobShop(simulator, name, { image: "0.04" })
    shop.vendor(name).behave(job())
    await expectCharged(shop, await shop.ask("/v1/images/generations", { prompt: "a fox" }), 40_000_000n)
    // Black Forest Labs makes one picture a job.
    if (name === "bfl") return
    shop.vendor(name).behave(job())
    const answer = await shop.ask("/v1/images/generations", { prompt: "a fox", n: 3 })
    const line = await expectCharged(shop, answer, 120_000_000n)
    expect(line).toMatchObject({ estimated: false, measured: { measured: { images: 3 } } })
  })
})

describe("speech", () => {
  const speech = "/v1/audio/speech"
  const voice = { voice: "alloy" }
  const texts: readonly (readonly [what: string, input: string, characters: bigint])[] = [
    ["plain letters", '"Hello"', 5n],
    ["nothing", '" "', 1n],
    ["emoji outside the basic plane are one each", '"👋🏽"', 2n],
    ["a family of emoji is its parts and joiners", '"👨‍👩‍👧"', 5n],
    ["a combining mark counts beside its letter", '"e\u0301"', 2n],
    ["Chinese", '"你好，世界"', 5n],
    ["an escaped pair is one", '"\\ud83d\\udc4b"', 1n],
    ["halves of pairs that stand alone are one each", '"\\ud83d a \\udc4b"', 5n],
    ["escapes are what they stand for", '"a\\n\\"\\u00e9"', 4n],
  ]
  test.each(texts)("costs code points: %s", async (_, input, characters) => {
    await using shop = await openShop(simulator, { price: { character: "0.000015" } })
    shop.vendor("a").behave({ kind: "stream", body: "sound", headers: { "content-type": "audio/mpeg" } })
    const bytes = Buffer.from(`{"model":"m","voice":"alloy","input":${input}}`)
    const answer = await readAnswer(
      shop.gateway,
      await postTo(shop.gateway, speech, { type: "application/json", bytes }),
    )
    expect(answer.status).toBe(200)
    const line = await expectCharged(shop, answer, characters * 15_000n)
    expect(line).toMatchObject({ estimated: false, measured: { measured: { characters: Number(characters) } } })
  })

  test("costs characters where that is the price, although the vendor reports tokens", async () => {
    await using shop = await openShop(simulator, { price: { character: "0.001" } })
    const usage = { input_tokens: 14, output_tokens: 101, total_tokens: 115 }
    shop.vendor("a").behave({ kind: "speech", usage })
    await expectCharged(shop, await shop.ask(speech, { input: "Hello", ...voice, stream_format: "sse" }), 5_000_000n)
    await expectCharged(shop, await shop.ask(speech, { input: "Hello", ...voice }), 5_000_000n)
  })

  test("costs tokens where that is the price: as reported, or what is known of them", async () => {
    await using shop = await openShop(simulator, { price: { input: "1", output: "10" } })
    const usage = { input_tokens: 14, output_tokens: 101, total_tokens: 115 }
    shop.vendor("a").behave({ kind: "speech", usage })
    const told = await shop.ask(speech, { input: "Hello", ...voice, stream_format: "sse" })
    expect(await expectCharged(shop, told, 1_024_000n)).toMatchObject({ estimated: false })
    const untold = await shop.ask(speech, { input: "Hello", ...voice })
    expect(await expectCharged(shop, untold, 1000n)).toMatchObject({ estimated: true })
  })
})

describe.each(["/v1/audio/transcriptions", "/v1/audio/translations"])("%s", (path) => {
  const bySecond = { second: "0.0001" }

  test("costs the seconds that the vendor bills", async () => {
    await using shop = await openShop(simulator, { price: bySecond })
    shop.vendor("a").behave({ kind: "transcription", usage: { type: "duration", seconds: 521.5 } })
    const line = await expectCharged(shop, await upload(shop, path, {}), 52_150_000n)
    expect(line).toMatchObject({ estimated: false, measured: { measured: { microseconds: 521_500_000 } } })
  })

  test("costs the duration of the verbose form, unless seconds are billed beside it", async () => {
    await using shop = await openShop(simulator, { price: bySecond })
    const verbose = { response_format: "verbose_json" }
    shop.vendor("a").behave({ kind: "transcription", seconds: 3.25, usage: "none" })
    expect(await expectCharged(shop, await upload(shop, path, verbose), 325_000n)).toMatchObject({ estimated: false })
    shop.vendor("a").behave({ kind: "transcription", seconds: 3.25, usage: "duration" })
    await expectCharged(shop, await upload(shop, path, verbose), 400_000n)
  })

  test.each(["text", "srt", "vtt"])("is estimated by the uploaded sound where the answer is %s", async (format) => {
    await using shop = await openShop(simulator, { price: bySecond })
    shop.vendor("a").behave({ kind: "transcription", seconds: 99 })
    const line = await expectCharged(shop, await upload(shop, path, { response_format: format }), 250_000n)
    expect(line).toMatchObject({ estimated: true, usageInvalid: false })
  })

  test("costs the tokens that the vendor reports, sound at its own price", async () => {
    await using shop = await openShop(simulator, { price: { input: "2.5", audio_input: "6", output: "10" } })
    const usage = {
      type: "tokens",
      input_tokens: 30,
      input_token_details: { text_tokens: 10, audio_tokens: 20 },
      output_tokens: 7,
      total_tokens: 37,
    }
    shop.vendor("a").behave({ kind: "transcription", usage })
    const line = await expectCharged(shop, await upload(shop, path, {}), 25_000n + 120_000n + 70_000n)
    expect(line).toMatchObject({ estimated: false })
  })

  test("is estimated where the price is by tokens and the vendor tells none", async () => {
    await using shop = await openShop(simulator, { price: { input: "2.5", output: "10" } })
    for (const fields of [{}, { response_format: "text" }]) {
      shop.vendor("a").behave({ kind: "transcription", text: "hello world", usage: "none" })
      const answer = await upload(shop, path, fields)
      // 2.5 seconds of sound at 10 tokens each, and the two of the text.
      expect(await expectCharged(shop, answer, 25n * 2500n + 2n * 10_000n)).toMatchObject({ estimated: true })
    }
  })
})

test("a streamed transcript costs what its last event tells", async () => {
  await using shop = await openShop(simulator, { price: { input: "1", output: "10" } })
  const usage = { type: "tokens", input_tokens: 30, output_tokens: 7, total_tokens: 37 }
  shop.vendor("a").behave({ kind: "transcription", usage })
  const answer = await upload(shop, "/v1/audio/transcriptions", { stream: "true" })
  expect(answer.text).toContain("transcript.text.done")
  expect(await expectCharged(shop, answer, 100_000n)).toMatchObject({ estimated: false })
})
