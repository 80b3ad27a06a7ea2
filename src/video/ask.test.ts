import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { GatewayError } from "../core/errors.ts"
import type { JsonObject, JsonValue } from "../core/json.ts"
import { longestSide, mostPromptCharacters, mostSeconds, readVideoAsk } from "./ask.ts"

const address = "https://pictures.test/fox.png"
const data = "data:image/png;base64,iVBORw0KGgo="

function read(fields: JsonObject) {
  return readVideoAsk({ model: "m", prompt: "a fox", ...fields })
}

/** The refusal of a body, as it arrives: as text. */
function refusalOf(body: string): string {
  try {
    readVideoAsk(JSON.parse(body) as JsonObject)
  } catch (error) {
    if (error instanceof GatewayError && error.code === "invalid_parameter") return error.message
    throw error
  }
  return "taken"
}

test("a prompt is enough, and the model is not among what is passed on", () => {
  expect(read({})).toStrictEqual({ prompt: "a fox", size: null, duration: null, image: null, extra: {} })
})

test("all that is the gateway's is read, all else goes along as the vendor's own", () => {
  const extra = { seed: 7, seconds: "8", camera: { pan: [1, null] }, negative_prompt: "" }
  expect(read({ size: "1280x720", duration: 5, image_url: address, n: 1, ...extra })).toStrictEqual({
    prompt: "a fox",
    size: { width: 1280, height: 720 },
    duration: 5,
    image: address,
    extra,
  })
})

test("a field that is null counts as left out", () => {
  const fields = { size: null, duration: null, image_url: null, image: null, n: null }
  expect(read(fields)).toStrictEqual(read({}))
})

describe("prompt", () => {
  test.each(["{}", ...["null", "7", '""', '" \\n"', '["a"]', '{"text":"a"}'].map((prompt) => `{"prompt":${prompt}}`)])(
    "%s is refused",
    (body) => expect(refusalOf(body)).toBe("prompt: must be a non-empty string"),
  )

  test("goes on as it is, spaces included", () => {
    expect(read({ prompt: " a\tfox " }).prompt).toBe(" a\tfox ")
  })

  test("has a greatest length in characters, not in the units of a string", () => {
    const [fox, letter] = ["🦊".repeat(mostPromptCharacters), "a".repeat(mostPromptCharacters)]
    expect([read({ prompt: fox }).prompt, read({ prompt: letter }).prompt]).toEqual([fox, letter])
    for (const prompt of [`${fox}a`, `${letter}a`, "a".repeat(5_000_000)]) {
      expect(() => read({ prompt })).toThrow("prompt: must have at most 20000 characters")
    }
  })
})

describe("size", () => {
  test.each([
    ["1x1", 1, 1],
    ["8192x8192", 8192, 8192],
    ["720x1280", 720, 1280],
  ])("%s is taken", (size, width, height) => {
    expect(read({ size }).size).toEqual({ width, height })
  })

  // biome-ignore format: a list
  test.each([
    '""', '"auto"', '"1280"', '"1280x"', '"x720"', '"1280X720"', '"1280*720"', '"1280×720"', '" 1280x720"', '"1280x720\\n"', '"0x720"', '"-1x720"',
    '"01280x720"', '"12.5x720"', '"1e3x720"', '"8193x1"', '"1x8193"', '"9999999999999999999x1"', '"1280x720x2"', '"720p"', '"١x١"', "720", "[1280,720]",
    '{"width":1,"height":1}', "true",
  ])("%s is refused", (size) => {
    expect(refusalOf(`{"prompt":"p","size":${size}}`)).toBe(
      'size: must be "<width>x<height>", each side a whole number from 1 to 8192',
    )
  })
})

describe("duration", () => {
  test.each([
    ["1", 1],
    ["60", 60],
    ["5.0", 5],
    ["0.5e1", 5],
  ])("%s is taken", (text, seconds) => {
    expect(readVideoAsk(JSON.parse(`{"prompt":"p","duration":${text}}`)).duration).toBe(seconds)
  })

  // biome-ignore format: a list
  test.each([
    "0", "-0", "-1", "61", "5.5", "59.999999", "1e309", "-1e309", "1e-9", "9007199254740993", "4294967297", '"5"', '"5s"', '""', "true", "[5]", '{"seconds":5}',
  ])("%s is refused", (duration) => {
    expect(refusalOf(`{"prompt":"p","duration":${duration}}`)).toBe(
      "duration: must be a whole number of seconds from 1 to 60",
    )
  })
})

describe("picture", () => {
  test("goes by either name, and by both where they agree", () => {
    for (const picture of [address, data, "HTTPS://PICTURES.test/a?b=c#d", "data:image/jpeg;name=a.jpg;base64,/9j/"]) {
      expect(read({ image_url: picture }).image).toBe(picture)
      expect(read({ image: picture, image_url: null }).image).toBe(picture)
      expect(read({ image: picture, image_url: picture })).toStrictEqual(read({ image: picture }))
    }
  })

  test("may not be two", () => {
    expect(() => read({ image_url: address, image: data })).toThrow(
      'image: must be left out or the same as "image_url"',
    )
  })

  test.each(["image_url", "image"])("%s is an https URL or a data URL", (name) => {
    // biome-ignore format: a list
    const wrong = [
      "", "fox.png", "http://pictures.test/fox.png", "ftp://pictures.test/fox.png", "file:///etc/passwd", "https://", "https:// x", " https://x.test/",
      "https://x.test/a b", "javascript:alert(1)", "data:,x", "data:image/png,x", "data:text/html;base64,PGI+", "data:image/png;base64", "iVBORw0KGgo=", 7, {},
      [address], { url: address }, true,
    ]
    for (const picture of wrong) {
      expect(() => read({ [name]: picture })).toThrow(
        `${name}: must be an https URL or a data URL of a picture (data:image/png;base64,…)`,
      )
    }
  })

  test("a beginning made to be slow is not", () => {
    for (const piece of [";", ";a=", ";a=b", "a"]) {
      expect(() => read({ image: `data:image/png${piece.repeat(3_000_000)}` })).toThrow("image: must be")
    }
  })
})

test.each(["n", "num_videos", "numberOfVideos", "sampleCount", "num_outputs"])("%s is one or nothing", (name) => {
  expect(read({ [name]: 1 })).toStrictEqual(read({}))
  for (const count of ["2", "0", "-1", "1e309", "1.5", "9007199254740993", '"1"', "true", "[]"]) {
    expect(refusalOf(`{"prompt":"p","${name}":${count}}`)).toBe(
      `${name}: must be 1 or left out: one job makes one video`,
    )
  }
})

test("names of an object's own machinery are fields like any other", () => {
  const { extra } = readVideoAsk(JSON.parse('{"prompt":"p","__proto__":{"n":2},"constructor":1,"toString":2}'))
  expect(JSON.stringify(extra)).toBe('{"__proto__":{"n":2},"constructor":1,"toString":2}')
  expect(readVideoAsk(JSON.parse('{"prompt":"p","__proto__":{"size":"x","duration":0}}')).duration).toBeNull()
})

describe("any body at all", () => {
  const value = fc.jsonValue() as fc.Arbitrary<JsonValue>
  const number = fc.oneof(fc.integer(), fc.double(), fc.constantFrom(1, 5, 60, Number.POSITIVE_INFINITY))
  const size = fc.tuple(fc.integer(), fc.integer({ min: 0, max: 10_000 })).map((sides) => sides.join("x"))
  const picture = fc.oneof(fc.webUrl({ validSchemes: ["https", "http"] }), fc.constant(data), fc.string())
  const body = fc.record(
    {
      prompt: fc.oneof(fc.string(), value),
      size: fc.oneof(size, value),
      duration: fc.oneof(number, value),
      image_url: fc.oneof(picture, value),
      image: fc.oneof(picture, value),
      n: fc.oneof(fc.constant(1), value),
      seed: value,
    },
    { requiredKeys: [] },
  )

  test("is read or refused with the name of a field, never anything else", () => {
    fc.assert(
      fc.property(fc.oneof(body, fc.dictionary(fc.string(), value)), (fields) => {
        let found: ReturnType<typeof readVideoAsk>
        try {
          found = readVideoAsk(fields)
        } catch (error) {
          if (!(error instanceof GatewayError)) throw error
          expect([error.status, error.code]).toEqual([400, "invalid_parameter"])
          expect(error.message).toMatch(/^(prompt|size|duration|image_url|image|n): must /)
          return
        }
        const { prompt, size, duration, image, extra } = found
        expect(prompt.trim()).not.toBe("")
        for (const side of size === null ? [] : [size.width, size.height]) {
          expect(Number.isInteger(side) && side >= 1 && side <= longestSide).toBe(true)
        }
        if (duration !== null) expect(Number.isInteger(duration) && duration >= 1 && duration <= mostSeconds).toBe(true)
        if (image !== null) expect(image).toMatch(/^(https:|data:image\/)/i)
        expect(Object.keys(extra).every((name) => Object.hasOwn(fields, name))).toBe(true)
      }),
      { numRuns: 5000 },
    )
  })
})
