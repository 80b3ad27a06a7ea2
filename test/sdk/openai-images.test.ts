import { afterAll, beforeEach, describe, expect, test } from "bun:test"
import OpenAI, { toFile } from "openai"
import { picture } from "../../simulator/protocols/pictures.ts"
import { type Address, openVendorSides, settled } from "./sides.ts"

const sides = await openVendorSides()
const { both, vendor } = sides
beforeEach(sides.reset)
afterAll(sides.close)

const client = (address: Address = sides.through): OpenAI => new OpenAI({ ...address, maxRetries: 0 })
const paths = (): string[] => vendor.calls.map(({ path }) => path)

describe("images", () => {
  const prompt = "a fox in the snow"
  const upload = () => toFile(picture(7), "fox.png", { type: "image/png" })

  test("generate in base64, several at once", async () => {
    const { direct, through } = await both((address) =>
      client(address).images.generate({ model: "sim-image", prompt, n: 2, size: "1536x1024" }).then(settled),
    )
    expect(through).toEqual(direct)
    expect(through.data?.map(({ b64_json }) => b64_json)).toEqual([0, 1].map((n) => picture(n).toString("base64")))
    expect(through).toMatchObject({ size: "1536x1024", usage: { output_tokens: expect.any(Number) } })
  })

  test("generate as an address, which is the vendor's own and opens", async () => {
    const { direct, through } = await both(async (address) => {
      const answer = await client(address).images.generate({ model: "dall-e-2", prompt, response_format: "url" })
      const file = await fetch(answer.data![0]!.url!)
      return { answer: settled(answer), bytes: Buffer.from(await file.arrayBuffer()).toString("base64") }
    })
    expect(through).toEqual(direct)
    expect(through.bytes).toBe(picture(0).toString("base64"))
  })

  test("generate as a stream: partial pictures, then the picture with usage", async () => {
    const { direct, through } = await both(
      async (address) => {
        const made = await client(address).images.generate({
          model: "sim-image",
          prompt,
          stream: true,
          partial_images: 2,
        })
        return settled(await Array.fromAsync(made))
      },
      { kind: "images", gapMs: 20 },
    )
    expect(through).toEqual(direct)
    expect(through.map(({ type }) => type)).toEqual([
      "image_generation.partial_image",
      "image_generation.partial_image",
      "image_generation.completed",
    ])
    expect(through[2]).toMatchObject({ usage: { output_tokens: expect.any(Number) } })
  })

  test("edit: the file and the fields arrive as sent, in base64 and as an address", async () => {
    for (const [model, field] of [
      ["sim-image", "b64_json"],
      ["dall-e-2", "url"],
    ] as const) {
      const { direct, through } = await both(async (address) =>
        settled(await client(address).images.edit({ model, prompt, image: await upload(), n: 2 })),
      )
      expect(through).toEqual(direct)
      expect(through.data).toHaveLength(2)
      expect(through.data![0]![field]).toBeString()
      expect(through.data![0]!.revised_prompt).toBe(`fox.png (${picture(7).length} bytes): ${prompt}`)
      expect(paths()).toEqual(["/openai/v1/images/edits"])
    }
  })

  test("edit with several pictures and a mask", async () => {
    const { direct, through } = await both(async (address) => {
      const image = await Promise.all([1, 2].map((n) => toFile(picture(n), `${n}.png`, { type: "image/png" })))
      const mask = await toFile(picture(3), "mask.png", { type: "image/png" })
      return settled(await client(address).images.edit({ model: "sim-image", prompt, image, mask }))
    })
    expect(through).toEqual(direct)
    for (const name of ["1.png", "2.png", "mask.png"]) expect(through.data![0]!.revised_prompt).toContain(name)
  })

  test("edit as a stream", async () => {
    const { direct, through } = await both(async (address) => {
      const made = await client(address).images.edit({
        model: "sim-image",
        prompt,
        image: await upload(),
        stream: true,
      })
      return settled(await Array.fromAsync(made))
    })
    expect(through).toEqual(direct)
    expect(through.map(({ type }) => type)).toEqual(["image_edit.completed"])
  })

  test("createVariation in base64 and as an address", async () => {
    for (const response_format of ["b64_json", "url"] as const) {
      const { direct, through } = await both(async (address) =>
        settled(
          await client(address).images.createVariation({ model: "dall-e-2", image: await upload(), response_format }),
        ),
      )
      expect(through).toEqual(direct)
      expect(through.data![0]![response_format]).toBeString()
      expect(paths()).toEqual(["/openai/v1/images/variations"])
    }
  })
})
