import { afterAll, beforeEach, describe, expect, test } from "bun:test"
import OpenAI from "openai"
import { thrownBy } from "./openai-sides.ts"
import { type Address, openVendorSides } from "./sides.ts"

const sides = await openVendorSides()
const { both, vendor } = sides
beforeEach(sides.reset)
afterAll(sides.close)

const client = (address: Address = sides.through): OpenAI => new OpenAI({ ...address, maxRetries: 0 })

describe("embeddings", () => {
  const input = ["first text", "zweiter Text", "第三"]

  test("as the SDK asks by itself (base64 on the wire): the same floats", async () => {
    const { direct, through } = await both((address) =>
      client(address).embeddings.create({ model: "sim-embed", input, dimensions: 64 }),
    )
    expect(through).toEqual(direct)
    expect(through.data.map(({ embedding }) => embedding.length)).toEqual([64, 64, 64])
    expect(through.usage.prompt_tokens).toBeGreaterThan(0)
    expect(JSON.parse(Buffer.from(vendor.calls[0]!.body).toString())).toMatchObject({ encoding_format: "base64" })
  })

  test.each(["float", "base64"] as const)("encoding_format %s", async (encoding_format) => {
    const { direct, through } = await both((address) =>
      client(address).embeddings.create({ model: "sim-embed", input, encoding_format }),
    )
    expect(through).toEqual(direct)
    const first: unknown = through.data[0]?.embedding
    expect(typeof first).toBe(encoding_format === "float" ? "object" : "string")
    expect(through.data).toHaveLength(3)
  })
})

describe("models", () => {
  test("list gives each model once; retrieve gives the same entry; an unknown one is a NotFoundError", async () => {
    const listed = await Array.fromAsync(client().models.list())
    const ids = listed.map(({ id }) => id).sort()
    expect(ids).toEqual([
      "dall-e-2",
      "gpt-4o-transcribe",
      "over-chat",
      "over-messages",
      "sim-embed",
      "sim-image",
      "sim-large",
      "tts-1",
      "whisper-1",
    ])
    for (const entry of listed) {
      const { _request_id, ...retrieved } = await client().models.retrieve(entry.id)
      expect(retrieved).toEqual(entry)
      expect(retrieved).toEqual({ id: entry.id, object: "model", created: entry.created, owned_by: "tollgate" })
    }
    expect(await thrownBy(async () => client().models.retrieve("nope"))).toMatchObject({
      kind: "NotFoundError",
      status: 404,
      code: "model_not_found",
    })
    expect(vendor.calls).toHaveLength(0)
  })
})
