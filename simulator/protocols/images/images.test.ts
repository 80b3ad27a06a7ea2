import { describe, expect, test } from "bun:test"
import { inflateSync } from "node:zlib"
import OpenAI, { toFile } from "openai"
import type { Behaviour } from "../../behaviour.ts"
import { eventually, post, rawClient } from "../../testing/raw-client.ts"
import { eventsIn, failureOf, standWith } from "../../testing/stand.ts"
import { picture } from "../pictures.ts"

const stand = standWith("openai")
const openai = (): OpenAI => new OpenAI({ apiKey: "sk-any", baseURL: stand.vendor.baseUrl, maxRetries: 0 })

const path = "/v1/images/generations"
const ask = { model: "gpt-image-x", prompt: "a fox in the snow" }
const megabyte = 1024 * 1024

interface Body {
  readonly data: readonly { readonly url?: string; readonly b64_json?: string }[]
}

async function generate(step: Behaviour, more: object = {}): Promise<Body> {
  return JSON.parse(await (await stand.post(path, { ...ask, ...more }, { step })).text())
}

test("a picture is a real PNG", () => {
  const png = picture(3)
  expect(png.subarray(0, 8).toString("latin1")).toBe("\x89PNG\r\n\x1a\n")
  const at = png.indexOf("IDAT")
  const pixels = inflateSync(png.subarray(at + 4, at + 4 + png.readUInt32BE(at - 4)))
  expect(pixels).toHaveLength(8 * (1 + 8 * 3))
  expect(picture(4)).not.toEqual(png)
})

describe("with the openai package", () => {
  test("generations come as base64, as many as asked, with usage", async () => {
    const answer = await openai().images.generate({ ...ask, n: 2, size: "1536x1024" })
    expect(answer.data!.map(({ b64_json }) => b64_json)).toEqual([0, 1].map((n) => picture(n).toString("base64")))
    expect(answer).toMatchObject({ size: "1536x1024", output_format: "png" })
    expect(answer.usage).toMatchObject({ input_tokens: 5, output_tokens: 2 * 1056, total_tokens: 5 + 2 * 1056 })
  })

  test("generations come as addresses that open without a key", async () => {
    stand.vendor.expectKey("sk-any")
    const answer = await openai().images.generate({ ...ask, response_format: "url" })
    const response = await fetch(answer.data![0]!.url!)
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "image/png"])
    expect(Buffer.from(await response.arrayBuffer()).equals(picture(0))).toBe(true)
  })

  test("edits and variations read the form, and tell the file's name and size", async () => {
    const image = await toFile(Buffer.alloc(321), "fox.png", { type: "image/png" })
    const edited = await openai().images.edit({ ...ask, image, n: 2 })
    expect(edited.data).toHaveLength(2)
    expect(edited).toMatchObject({ model: "gpt-image-x" })
    expect(edited.data![0]!.revised_prompt).toBe("fox.png (321 bytes): a fox in the snow")
    const varied = await openai().images.createVariation({ model: "dall-e-2", image })
    expect(varied.data![0]!.url).toStartWith(stand.home)
  })

  test("a stream sends partial pictures, then the picture with usage", async () => {
    stand.vendor.behave({ kind: "images", gapMs: 0 })
    const made = await openai().images.generate({ ...ask, stream: true, partial_images: 2 })
    const events = await Array.fromAsync(made)
    expect(events.map(({ type }) => type)).toEqual([
      "image_generation.partial_image",
      "image_generation.partial_image",
      "image_generation.completed",
    ])
    expect(events[1]).toMatchObject({ partial_image_index: 1 })
    expect(events[2]).toMatchObject({ usage: { output_tokens: 1056 }, b64_json: picture(0).toString("base64") })
    const image = await toFile(Buffer.alloc(3), "fox.png", { type: "image/png" })
    const edited = await openai().images.edit({ ...ask, image, stream: true })
    expect((await Array.fromAsync(edited)).map(({ type }) => type)).toEqual(["image_edit.completed"])
  })

  test("an error in the stream is thrown", async () => {
    stand.vendor.behave({ kind: "images", gapMs: 0, ending: "error", error: { message: "the brush broke" } })
    const stream = await openai().images.generate({ ...ask, stream: true, partial_images: 1 })
    expect(String(await failureOf(Array.fromAsync(stream)))).toContain("the brush broke")
  })
})

test("entries, failures, usage and JSON in place of a stream are as told", async () => {
  const seedream = await generate(
    { kind: "images", images: 1, failedEntries: 2, usage: { generated_images: 1 } },
    { n: 3 },
  )
  expect(seedream).toMatchObject({
    data: [{ b64_json: expect.any(String) }, { error: { code: expect.any(String) } }, { error: {} }],
    usage: { generated_images: 1 },
  })
  expect((await generate({ kind: "images", ignoresStream: true }, { stream: true })).data).toHaveLength(1)
  const silent = await stand.post(path, { ...ask, stream: true }, { step: { kind: "images", ending: "none" } })
  expect(eventsIn(await silent.text())).toEqual([])
})

describe("big pictures", () => {
  test("base64 of the size told, which decodes to a picture with much behind it", async () => {
    const response = await stand.post(path, { ...ask, n: 2 }, { step: { kind: "images", megabytes: 2 } })
    const text = await response.text()
    expect(text.length).toBe(Number(response.headers.get("content-length")))
    const body: Body = JSON.parse(text)
    expect(body.data.map(({ b64_json }) => Math.round(b64_json!.length / megabyte))).toEqual([2, 2])
    const bytes = Buffer.from(body.data[1]!.b64_json!, "base64")
    expect(bytes.subarray(0, picture(1).length).equals(picture(1))).toBe(true)
    expect(bytes.toString("base64")).toBe(body.data[1]!.b64_json!)
  })

  test("are made as the client reads them", async () => {
    stand.vendor.behave({ kind: "images", megabytes: 200 })
    const client = await rawClient(stand.simulator.port)
    client.socket.pause()
    client.send(post(`/openai${path}`, JSON.stringify(ask)))
    await eventually(() => (stand.vendor.calls[0]?.bytesSent ?? 0) > 0)
    await Bun.sleep(50)
    expect(stand.vendor.calls[0]!.bytesSent).toBeLessThan(50 * megabyte)
    client.leave("rst")
    await eventually(() => stand.vendor.openCalls() === 0)
  })
})

describe("files", () => {
  const fileFor = async (file: object, init: RequestInit = {}): Promise<Response> => {
    const { data } = await generate({ kind: "images", format: "url", file })
    return await fetch(data[0]!.url!, init)
  }
  test("may need a key, have another type, or be gone", async () => {
    expect((await fileFor({ needsKey: true })).status).toBe(403)
    expect((await fileFor({ needsKey: true }, { headers: { authorization: "Bearer k" } })).status).toBe(200)
    expect((await fileFor({ contentType: "text/html" })).headers.get("content-type")).toBe("text/html")
    expect((await fileFor({ fault: { kind: "status", status: 410 } })).status).toBe(410)
    expect((await fetch(`${stand.home}/files/never.png`)).status).toBe(404)
  })
  test("redirect as often as told, or elsewhere", async () => {
    const followed = await fileFor({ redirects: 3 })
    expect([followed.status, followed.redirected]).toEqual([200, true])
    expect(stand.vendor.calls.filter(({ path }) => path.includes("/files/"))).toHaveLength(4)
    const elsewhere = await fileFor({ redirectTo: "http://169.254.169.254/latest" }, { redirect: "manual" })
    expect([elsewhere.status, elsewhere.headers.get("location")]).toEqual([302, "http://169.254.169.254/latest"])
  })
  test("can be huge, and stand on another name of the machine", async () => {
    const huge = await fileFor({ megabytes: 3 })
    expect(Number(huge.headers.get("content-length"))).toBe(3 * megabyte + picture(0).length)
    expect(
      Buffer.from(await huge.arrayBuffer())
        .subarray(0, picture(0).length)
        .equals(picture(0)),
    ).toBe(true)
    const { data } = await generate({ kind: "images", format: "url", file: { host: "localhost" } })
    expect(new URL(data[0]!.url!).host).toBe(`localhost:${stand.simulator.port}`)
  })
})

test.each([
  [path, { model: "m" }, "prompt"],
  [path, { ...ask, n: 0 }, "n"],
  ["/v1/images/edits", ask, "image"],
])("a request the vendor would refuse is refused: %s %j", async (where, body, reason) => {
  const response = await stand.post(where, body)
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: { param: reason } })
})
