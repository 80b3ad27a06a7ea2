import { afterAll, beforeEach, describe, expect, test } from "bun:test"
import OpenAI, { toFile } from "openai"
import { wav } from "../../simulator/protocols/audio/sound.ts"
import { thrownBy } from "./openai-sides.ts"
import { type Address, openVendorSides } from "./sides.ts"

const sides = await openVendorSides()
const { both, vendor } = sides
beforeEach(sides.reset)
afterAll(sides.close)

const client = (address: Address = sides.through): OpenAI => new OpenAI({ ...address, maxRetries: 0 })
const paths = (): string[] => vendor.calls.map(({ path }) => path)

describe("speech", () => {
  test.each(["mp3", "wav", "pcm"] as const)("%s: the same bytes and the same content type", async (response_format) => {
    const { direct, through } = await both(async (address) => {
      const spoken = await client(address).audio.speech.create({
        model: "tts-1",
        voice: "alloy",
        input: "The quick brown fox jumps over the lazy dog.",
        response_format,
      })
      return { bytes: Buffer.from(await spoken.arrayBuffer()), type: spoken.headers.get("content-type") }
    })
    expect(through.type).toBe(direct.type)
    expect(through.bytes.equals(direct.bytes)).toBe(true)
    expect(through.bytes.length).toBeGreaterThan(10_000)
  })

  test("a refused voice is the same exception", async () => {
    const refused = (address: Address) =>
      thrownBy(async () =>
        client(address).audio.speech.create({ model: "tts-1", voice: "alloy", input: "x", response_format: "aac" }),
      )
    const error = { message: "no such voice", type: "invalid_request_error", param: "voice", code: null }
    const { direct, through } = await both(refused, { kind: "status", status: 400, json: { error } })
    expect(through).toEqual(direct)
    expect(through).toMatchObject({ kind: "BadRequestError", param: "voice" })
  })
})

describe("transcriptions and translations", () => {
  const sound = wav(1.5)
  const file = () => toFile(sound, "speech.wav", { type: "audio/wav" })
  const heard = { kind: "transcription", text: "Grüße, 世界. How are you?" } as const

  test("json, counted in tokens or in seconds", async () => {
    for (const [model, type] of [
      ["gpt-4o-transcribe", "tokens"],
      ["whisper-1", "duration"],
    ] as const) {
      const { direct, through } = await both(
        async (address) => client(address).audio.transcriptions.create({ model, file: await file() }),
        heard,
      )
      expect(through).toEqual(direct)
      expect(through).toMatchObject({ text: heard.text, usage: { type } })
    }
  })

  test("verbose_json", async () => {
    const { direct, through } = await both(
      async (address) =>
        client(address).audio.transcriptions.create({
          model: "whisper-1",
          file: await file(),
          response_format: "verbose_json",
          timestamp_granularities: ["segment"],
        }),
      heard,
    )
    expect(through).toEqual(direct)
    expect(through).toMatchObject({ duration: 1.5, text: heard.text, segments: [{ start: 0, end: 1.5 }] })
  })

  test.each(["text", "srt", "vtt"] as const)("%s is plain text", async (response_format) => {
    const { direct, through } = await both(
      async (address) =>
        client(address).audio.transcriptions.create({ model: "whisper-1", file: await file(), response_format }),
      heard,
    )
    const said: unknown = through
    expect(said).toEqual(direct)
    expect(said).toBeString()
    expect(said).toContain(heard.text)
  })

  test("a stream: the words one by one, then the whole with usage", async () => {
    const { direct, through } = await both(
      async (address) =>
        Array.fromAsync(
          await client(address).audio.transcriptions.create({
            model: "gpt-4o-transcribe",
            file: await file(),
            stream: true,
          }),
        ),
      { ...heard, chunks: 4 },
    )
    expect(through).toEqual(direct)
    expect(through.map(({ type }) => type)).toEqual([...Array(4).fill("transcript.text.delta"), "transcript.text.done"])
    expect(through.at(-1)).toMatchObject({ text: heard.text, usage: { type: "tokens" } })
  })

  test("a translation", async () => {
    for (const response_format of ["json", "verbose_json"] as const) {
      const { direct, through } = await both(
        async (address) =>
          client(address).audio.translations.create({ model: "whisper-1", file: await file(), response_format }),
        heard,
      )
      expect(through).toEqual(direct)
      expect(through.text).toBe(heard.text)
      expect(paths()).toEqual(["/openai/v1/audio/translations"])
    }
  })

  test("a file of a few megabytes arrives whole", async () => {
    const big = Buffer.alloc(5 * 1024 * 1024, 7)
    const { through } = await both(async (address) =>
      client(address).audio.transcriptions.create({ model: "whisper-1", file: await toFile(big, "long.mp3") }),
    )
    expect(through.text).toBe(`This is what whisper-1 hears in long.mp3, ${big.length} bytes long.`)
  })
})
