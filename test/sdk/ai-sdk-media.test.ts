import { afterAll, beforeEach, expect, test } from "bun:test"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { embed, embedMany, generateImage, generateSpeech, transcribe } from "ai"
import { wav } from "../../simulator/protocols/audio/sound.ts"
import { picture } from "../../simulator/protocols/pictures.ts"
import { type Address, openVendorSides } from "./sides.ts"

const sides = await openVendorSides()
const { both, vendor } = sides
beforeEach(sides.reset)
afterAll(sides.close)

const openai = (address: Address) => createOpenAI(address)
const compatible = (address: Address) => createOpenAICompatible({ name: "tollgate", ...address })
const providers = Object.entries({ openai, "openai-compatible": compatible })

test.each(providers)("embed and embedMany by %s", async (_, provider) => {
  const values = ["first text", "zweiter Text", "第三"]
  const { direct, through } = await both(async (address) => {
    const model = provider(address).embeddingModel("sim-embed")
    const one = await embed({ model, value: "first text", maxRetries: 0 })
    const many = await embedMany({ model, values, maxRetries: 0 })
    return { one: [one.embedding, one.usage], many: [many.embeddings, many.usage] }
  })
  expect(through).toEqual(direct)
  expect(through.many[0]).toHaveLength(3)
  expect(through.one[1]).toEqual({ tokens: expect.any(Number) })
})

test.each(providers)("generateImage by %s", async (_, provider) => {
  const { direct, through } = await both(async (address) => {
    const { images } = await generateImage({
      model: provider(address).imageModel("sim-image"),
      prompt: "a fox in the snow",
      n: 2,
      size: "1024x1024",
      maxRetries: 0,
    })
    return images.map(({ base64, mediaType }) => ({ base64, mediaType }))
  })
  expect(through).toEqual(direct)
  expect(through.map(({ mediaType }) => mediaType)).toContain("image/png")
  expect(through.map(({ base64 }) => base64)).toContain(picture(0).toString("base64"))
})

test("generateImage with a picture to begin with is an edit", async () => {
  const { direct, through } = await both(async (address) => {
    const { image } = await generateImage({
      model: openai(address).image("sim-image"),
      prompt: { text: "in the rain", images: [picture(7)] },
      maxRetries: 0,
    })
    return image.base64
  })
  expect(through).toBe(direct)
  expect(vendor.calls.map(({ path }) => path)).toEqual(["/openai/v1/images/edits"])
})

test("generateSpeech: the same bytes", async () => {
  const { direct, through } = await both(async (address) => {
    const { audio } = await generateSpeech({
      model: openai(address).speech("tts-1"),
      text: "The quick brown fox.",
      voice: "alloy",
      maxRetries: 0,
    })
    return { bytes: Buffer.from(audio.uint8Array), mediaType: audio.mediaType }
  })
  expect(through.bytes.equals(direct.bytes)).toBe(true)
  expect(through.bytes.length).toBeGreaterThan(1000)
  expect(through.mediaType).toBe(direct.mediaType)
})

test.each(["whisper-1", "gpt-4o-transcribe"])("transcribe by %s", async (model) => {
  const { direct, through } = await both(
    async (address) => {
      const { text, segments, durationInSeconds } = await transcribe({
        model: openai(address).transcription(model),
        audio: wav(1.5),
        maxRetries: 0,
      })
      return { text, segments, durationInSeconds }
    },
    { kind: "transcription", text: "Grüße, 世界." },
  )
  expect(through).toEqual(direct)
  expect(through.text).toBe("Grüße, 世界.")
})
