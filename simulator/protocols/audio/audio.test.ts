import { describe, expect, test } from "bun:test"
import OpenAI, { toFile } from "openai"
import type { Behaviour } from "../../behaviour.ts"
import { eventsIn, failureOf, standWith } from "../../testing/stand.ts"
import { secondsOf, soundOf, wav } from "./sound.ts"

const stand = standWith("openai")
const openai = (): OpenAI => new OpenAI({ apiKey: "sk-any", baseURL: stand.vendor.baseUrl, maxRetries: 0 })

describe("speech", () => {
  const ask = { model: "tts-x", input: "Hello there, how are you?", voice: "alloy" } as const
  const speak = (step: Behaviour, more: object = {}): Promise<Response> =>
    stand.post("/v1/audio/speech", { ...ask, ...more }, { step })

  test("the openai package gets a real sound, in pieces", async () => {
    stand.vendor.behave({ kind: "speech", seconds: 1.5, gapMs: 0 })
    const response = await openai().audio.speech.create({ ...ask, response_format: "wav" })
    expect(response.headers.get("content-type")).toBe("audio/wav")
    const sound = Buffer.from(await response.arrayBuffer())
    expect(sound.equals(wav(1.5))).toBe(true)
    expect(secondsOf(sound)).toBe(1.5)
    expect(response.headers.get("transfer-encoding")).toBe("chunked")
  })

  test("MP3 is the usual format: whole frames", async () => {
    const response = await speak({ kind: "speech", gapMs: 0 })
    expect(response.headers.get("content-type")).toBe("audio/mpeg")
    const sound = Buffer.from(await response.arrayBuffer())
    expect(sound.subarray(0, 2).toString("hex")).toBe("fffb")
    expect(sound.length % 417).toBe(0)
    expect(soundOf("pcm", 1)).toHaveLength(48_000)
  })

  test("events carry the same sound and end with usage", async () => {
    const step = { kind: "speech", seconds: 1, chunks: 3, gapMs: 0 } as const
    const response = await speak(step, { stream_format: "sse", response_format: "wav" })
    expect(response.headers.get("content-type")).toContain("text/event-stream")
    const events = eventsIn(await response.text())
    const sound = Buffer.concat(events.slice(0, -1).map(({ audio }) => Buffer.from(String(audio), "base64")))
    expect(events.map(({ type }) => type)).toEqual([...Array(3).fill("speech.audio.delta"), "speech.audio.done"])
    expect(sound.equals(wav(1))).toBe(true)
    expect(events.at(-1)).toMatchObject({ usage: { input_tokens: 7, output_tokens: 20, total_tokens: 27 } })
  })

  test("cuts, sizes, types, errors and endings are as told", async () => {
    const cut = await speak({ kind: "speech", gapMs: 0, cut: { afterEvents: 2, how: "rst" } })
    expect(await failureOf(cut.arrayBuffer())).toMatchObject({ code: "ECONNRESET" })
    const big = await speak({ kind: "speech", megabytes: 2, contentType: "text/html" })
    expect([big.headers.get("content-type"), (await big.arrayBuffer()).byteLength]).toEqual(["text/html", 2 ** 21])
    const events = async (step: Behaviour): Promise<unknown> =>
      eventsIn(await (await speak(step, { stream_format: "sse" })).text()).at(-1)
    expect(await events({ kind: "speech", gapMs: 0, ending: "error" })).toMatchObject({ type: "error", error: {} })
    expect(await events({ kind: "speech", gapMs: 0, ending: "none" })).toMatchObject({ type: "speech.audio.delta" })
    expect((await speak({ kind: "speech", ending: "error" })).status).toBe(500)
  })

  test.each(["model", "input", "voice"] as const)("a request without %s is refused", async (field) => {
    const response = await speak({ kind: "speech" }, { [field]: undefined })
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(field)])
  })
})

describe("transcriptions", () => {
  const clip = wav(2.25)
  const file = (): Promise<File> => toFile(clip, "clip.wav", { type: "audio/wav" })

  test("the openai package gets the model, the file's name and its size told back, counted by tokens", async () => {
    const heard = await openai().audio.transcriptions.create({ model: "gpt-4o-transcribe", file: await file() })
    expect(heard.text).toBe(`This is what gpt-4o-transcribe hears in clip.wav, ${clip.length} bytes long.`)
    expect(heard.usage).toMatchObject({ type: "tokens", input_tokens: 23, input_token_details: { audio_tokens: 23 } })
    expect(Buffer.from(stand.vendor.calls[0]!.body).includes(clip)).toBe(true)
  })

  test("whisper counts seconds, and tells the exact duration in the verbose format", async () => {
    const ask = { model: "whisper-1", file: await file() }
    expect(await openai().audio.transcriptions.create(ask)).toMatchObject({ usage: { type: "duration", seconds: 3 } })
    const verbose = await openai().audio.transcriptions.create({ ...ask, response_format: "verbose_json" })
    expect(verbose).toMatchObject({ duration: 2.25, segments: [{ start: 0, end: 2.25 }], usage: { seconds: 3 } })
  })

  test("text, srt and vtt are no JSON", async () => {
    stand.vendor.behave({ kind: "transcription", text: "hello", seconds: 3661.5 })
    const as = async (response_format: "text" | "srt" | "vtt"): Promise<string> =>
      await openai().audio.transcriptions.create({ model: "whisper-1", file: await file(), response_format })
    expect(await as("text")).toBe("hello\n")
    expect(await as("srt")).toStartWith("1\n00:00:00,000 --> 01:01:01,500\nhello\n")
    expect(await as("vtt")).toStartWith("WEBVTT\n\n00:00:00.000 --> 01:01:01.500\nhello\n")
  })

  test("a stream adds up and ends with usage; whisper ignores the wish", async () => {
    stand.vendor.behave({ kind: "transcription", text: "one two three", gapMs: 0 })
    const ask = { file: await file(), stream: true } as const
    const events = await Array.fromAsync(await openai().audio.transcriptions.create({ ...ask, model: "gpt-4o-x" }))
    const deltas = events.flatMap((event) => (event.type === "transcript.text.delta" ? [event.delta] : []))
    expect(deltas).toEqual(["one ", "two ", "three"])
    expect(events.at(-1)).toMatchObject({
      type: "transcript.text.done",
      text: "one two three",
      usage: { output_tokens: 4 },
    })
    const form = new FormData()
    for (const [name, value] of [
      ["model", "whisper-1"],
      ["stream", "true"],
    ] as const)
      form.set(name, value)
    form.set("file", await file())
    const whole = await stand.post("/v1/audio/transcriptions", form)
    expect(whole.headers.get("content-type")).toBe("application/json")
  })

  test("an error in the stream is thrown", async () => {
    stand.vendor.behave({ kind: "transcription", ending: "error", error: { message: "deaf" }, gapMs: 0 })
    const stream = await openai().audio.transcriptions.create({ model: "gpt-4o-x", file: await file(), stream: true })
    expect(String(await failureOf(Array.fromAsync(stream)))).toContain("deaf")
  })

  test("usage is as told", async () => {
    const usageFor = async (usage: "none" | "duration" | { seconds: number }): Promise<unknown> => {
      stand.vendor.behave({ kind: "transcription", usage, seconds: 7.2 })
      return (await openai().audio.transcriptions.create({ model: "gpt-4o-x", file: await file() })).usage
    }
    expect(await usageFor("none")).toBeUndefined()
    expect(await usageFor("duration")).toEqual({ type: "duration", seconds: 8 })
    expect(await usageFor({ seconds: 521.5 })).toEqual({ seconds: 521.5 })
  })

  test("translations answer alike", async () => {
    const heard = await openai().audio.translations.create({ model: "whisper-1", file: await file() })
    expect(heard.text).toContain("clip.wav")
    const ask = { model: "whisper-1", file: await file(), response_format: "verbose_json" } as const
    expect(await openai().audio.translations.create(ask)).toMatchObject({ task: "translate", duration: 2.25 })
  })

  test.each(["model", "file"])("a form without %s is refused", async (field) => {
    const form = new FormData()
    form.set("model", "m")
    form.set("file", await file())
    form.delete(field)
    const response = await stand.post("/v1/audio/transcriptions", form)
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(field)])
  })
})
