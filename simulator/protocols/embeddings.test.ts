import { expect, test } from "bun:test"
import OpenAI from "openai"
import { standWith } from "../testing/stand.ts"

const stand = standWith("openai")
const openai = (): OpenAI => new OpenAI({ apiKey: "sk-any", baseURL: stand.vendor.baseUrl, maxRetries: 0 })

const embed = async (body: object): Promise<{ data: { embedding: unknown; index: number }[]; usage: object }> =>
  JSON.parse(await (await stand.post("/v1/embeddings", { model: "m", ...body })).text())

test("the openai package reads a batch, whichever encoding it asked for", async () => {
  const input = ["one", "two", "one"]
  // Left to itself the package asks for base64 and decodes it.
  const packed = await openai().embeddings.create({ model: "embed-x", input, dimensions: 16 })
  const floats = await openai().embeddings.create({ model: "embed-x", input, dimensions: 16, encoding_format: "float" })
  expect(packed.data.map(({ embedding }) => embedding)).toEqual(floats.data.map(({ embedding }) => embedding))
  expect(floats).toMatchObject({ object: "list", model: "embed-x", usage: { prompt_tokens: 3, total_tokens: 3 } })
  expect(floats.data.map(({ index }) => index)).toEqual([0, 1, 2])
  expect(floats.data[0]!.embedding).toHaveLength(16)
})

test("vectors have length one and depend on the text alone", async () => {
  const [first, second, again] = (await embed({ input: ["a", "b", "a"], dimensions: 64 })).data
  expect(first!.embedding).toEqual(again!.embedding)
  expect(first!.embedding).not.toEqual(second!.embedding)
  expect(Math.hypot(...(first!.embedding as number[]))).toBeCloseTo(1, 5)
  expect((await embed({ input: "a", dimensions: 64 })).data[0]!.embedding).toEqual(first!.embedding)
})

test("one text as tokens is one vector, and is counted by its tokens", async () => {
  const { data, usage } = await embed({ input: [1, 2, 3], dimensions: 4 })
  expect(data).toHaveLength(1)
  expect(usage).toEqual({ prompt_tokens: 3, total_tokens: 3 })
  expect((await embed({ input: [[1], [2, 3]], dimensions: 4 })).data).toHaveLength(2)
})

test("dimensions, model and usage are as told", async () => {
  stand.vendor.behave({ kind: "embeddings", dimensions: 3, model: "other", usage: "none" })
  const answer = await embed({ input: "a", dimensions: 16 })
  expect(answer.data[0]!.embedding).toHaveLength(3)
  expect(answer).toMatchObject({ model: "other" })
  expect(answer).not.toHaveProperty("usage")
})

test.each([
  [{ input: undefined }, "input"],
  [{ input: "a", dimensions: 0 }, "dimensions"],
])("a body the vendor would refuse is refused: %j", async (body, reason) => {
  const response = await stand.post("/v1/embeddings", { model: "m", ...body })
  expect(response.status).toBe(400)
  expect(await response.text()).toContain(reason)
})
