import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import OpenAI from "openai"
import { picture } from "../../simulator/protocols/pictures.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { headerOf, testKey } from "../support/gateway.ts"
import {
  bodyOf,
  imageScene,
  type JobVendorName,
  job,
  jobVendorNames,
  jobVendors,
  picturesOf,
  prompt,
  slowJob,
} from "../support/image-scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(async () => {
  await simulator.stop()
  expect(simulator.complaints).toEqual([])
})

const base64Of = (number: number): string => picture(number).toString("base64")

interface Rich {
  readonly ask: Readonly<Record<string, unknown>>
  readonly body: Readonly<Record<string, unknown>>
  /** Of the submit, besides those that every vendor gets. */
  readonly headers: Readonly<Record<string, string>>
  readonly images: number
}

/** What a vendor is sent for a request with count, size, parameters of its own and fields it does not know. */
const dialect = { user: "u-1", quality: "high", style: "vivid", background: "auto", moderation: "low" }
const rich: Readonly<Record<JobVendorName, Rich>> = {
  dashscope: {
    ask: { n: 2, size: "1280x1280", seed: 7, negative_prompt: "snow", watermark: false, ...dialect },
    body: {
      model: "wan2.5-t2i-preview",
      input: { negative_prompt: "snow", prompt },
      parameters: { seed: 7, watermark: false, n: 2, size: "1280*1280" },
    },
    headers: { "x-dashscope-async": "enable" },
    images: 2,
  },
  bfl: {
    ask: { n: 1, size: "1024x768", seed: 7, safety_tolerance: 3, output_format: "png", ...dialect },
    body: { seed: 7, safety_tolerance: 3, output_format: "png", prompt, width: 1024, height: 768 },
    headers: {},
    images: 1,
  },
  replicate: {
    ask: { n: 3, size: "1024x1792", seed: 7, go_fast: true, output_format: "webp", ...dialect },
    body: { input: { seed: 7, go_fast: true, output_format: "webp", prompt, num_outputs: 3, aspect_ratio: "9:16" } },
    headers: { prefer: "wait=1" },
    images: 3,
  },
  fal: {
    ask: { n: 2, size: "1024x768", seed: 7, guidance_scale: 3.5, ...dialect },
    body: { seed: 7, guidance_scale: 3.5, prompt, num_images: 2, image_size: { width: 1024, height: 768 } },
    headers: {},
    images: 2,
  },
}

/** The least that can be asked; DashScope is told the count all the same, as some of its models make four otherwise. */
const plain: Readonly<Record<JobVendorName, object>> = {
  dashscope: { model: "wan2.5-t2i-preview", input: { prompt }, parameters: { n: 1 } },
  bfl: { prompt },
  replicate: { input: { prompt } },
  fal: { prompt },
}

describe.each(jobVendorNames)("%s", (name) => {
  const row = jobVendors[name]
  const [authName, authValue] = row.auth(`credential-of-${name}`)

  test.concurrent("a plain request: one submit, polls, and the vendor's address in the images shape", async () => {
    await using stage = await imageScene(simulator, [name])
    stage.vendor(name).behave(slowJob())
    const answer = await stage.ask()
    const [{ url } = { url: "" }, ...others] = picturesOf(answer)
    expect(others).toEqual([])
    expect(url).toStartWith(`${simulator.url}/${stage.vendor(name).name}/files/`)
    // The gateway tells the address and leaves fetching to the caller.
    expect(stage.vendor(name).calls.some(({ path }) => path.includes("/files/"))).toBeFalse()
    expect(await (await fetch(url!)).bytes()).toEqual(new Uint8Array(picture(0)))
    expect(stage.submits(name).map(bodyOf)).toEqual([{ ...plain[name] }])
    expect(stage.polls(name).length).toBeGreaterThanOrEqual(2)
    expect(stage.cancels(name)).toEqual([])
    expect(answer.story).toMatchObject({ endpoint: "image_generations", ending: "completed", error: null })
    expect(answer.attempts).toEqual([`${name}:first:answered`])
  })

  test.concurrent("a rich request is the vendor's own request: path, headers, credential, body", async () => {
    const { ask, body, headers, images } = rich[name]
    await using stage = await imageScene(simulator, [name], { upstream: { headers: { "X-Operator": "blue" } } })
    stage.vendor(name).behave(job())
    const answer = await stage.ask(ask, {
      headers: {
        "user-agent": "client/1",
        "idempotency-key": "once",
        cookie: "session=1",
        "x-api-key": "another-key",
        "anthropic-beta": "b",
        "x-internal": "i",
      },
    })
    expect(picturesOf(answer)).toHaveLength(images)
    const [submit] = stage.submits(name)
    expect(submit).toMatchObject({ method: "POST", path: `/${stage.vendor(name).name}${row.submitPath}` })
    expect(bodyOf(submit!)).toEqual({ ...body })
    const sent = Object.fromEntries(submit!.headers.map(([given, value]) => [given.toLowerCase(), value]))
    expect(sent).toEqual({
      accept: "*/*",
      "accept-encoding": "identity",
      connection: "keep-alive",
      "content-length": String(submit!.bodyLength),
      "content-type": "application/json",
      host: new URL(simulator.url).host,
      "idempotency-key": "once",
      "user-agent": "client/1",
      "x-operator": "blue",
      [authName]: authValue,
      ...headers,
    })
    for (const call of stage.vendor(name).calls) {
      expect(headerOf(call, authName)).toBe(authValue)
      expect(JSON.stringify(call.headers)).not.toContain(testKey)
    }
  })

  test.concurrent("b64_json: the pictures themselves, fetched without any credential", async () => {
    const { ask, images } = rich[name]
    await using stage = await imageScene(simulator, [name], { upstream: { headers: { "X-Operator": "blue" } } })
    stage.vendor(name).behave(job())
    const answer = await stage.ask({ ...ask, response_format: "b64_json" })
    expect(picturesOf(answer)).toEqual(Array.from({ length: images }, (_, number) => ({ b64_json: base64Of(number) })))
    const fetched = stage.vendor(name).calls.filter(({ path }) => path.includes("/files/"))
    expect(fetched).toHaveLength(images)
    for (const { headers } of fetched) {
      const names = headers.map(([given]) => given.toLowerCase())
      for (const secret of ["authorization", "x-key", "x-api-key", "x-operator", "cookie"])
        expect(names).not.toContain(secret)
    }
  })

  test.concurrent("the official client gets its pictures", async () => {
    await using stage = await imageScene(simulator, [name])
    stage.vendor(name).behave(job())
    const client = new OpenAI({ apiKey: testKey, baseURL: `${stage.gateway.url}/v1`, maxRetries: 0 })
    const linked = await client.images.generate({ model: "m", prompt, size: "1280x1280" as "1024x1024" })
    expect(linked.data?.[0]?.url).toContain("/files/")
    const whole = await client.images.generate({ model: "m", prompt, n: 1, response_format: "b64_json" })
    expect(whole.data).toEqual([{ b64_json: base64Of(0) }])
  })

  test.concurrent("size auto and fields that are null count as left out", async () => {
    await using stage = await imageScene(simulator, [name])
    stage.vendor(name).behave(job())
    const nothing = { n: null, size: null, response_format: null, stream: null }
    picturesOf(await stage.ask({ ...nothing }))
    picturesOf(await stage.ask({ size: "auto", stream: false }))
    expect(stage.submits(name).map(bodyOf)).toEqual([{ ...plain[name] }, { ...plain[name] }])
  })

  test.concurrent("a query of the caller's stays here", async () => {
    await using stage = await imageScene(simulator, [name])
    stage.vendor(name).behave(job())
    const response = await fetch(`${stage.gateway.url}/v1/images/generations?sync=1`, {
      method: "POST",
      headers: { "x-api-key": testKey },
      body: JSON.stringify({ model: "m", prompt }),
    })
    expect(response.status).toBe(200)
    expect(stage.submits(name)[0]!.path).toEndWith(row.submitPath)
  })
})

describe("results in other shapes", () => {
  const withData: readonly JobVendorName[] = ["dashscope", "bfl", "replicate", "fal"]
  test.concurrent.each([...withData])("%s: pictures inside the reply are handed over as they are", async (name) => {
    await using stage = await imageScene(simulator, [name])
    stage.vendor(name).behave(job({ results: "data" }))
    expect(picturesOf(await stage.ask({ response_format: "b64_json" }))).toEqual([{ b64_json: base64Of(0) }])
    expect(picturesOf(await stage.ask())).toEqual([{ url: `data:image/png;base64,${base64Of(0)}` }])
  })

  test.concurrent.each(["replicate", "fal"] as const)("%s: a single result instead of a list", async (name) => {
    await using stage = await imageScene(simulator, [name])
    stage.vendor(name).behave(job({ shape: "single" }))
    expect(picturesOf(await stage.ask())).toHaveLength(1)
  })

  test.concurrent.each(["dashscope", "replicate", "fal"] as const)(
    "%s: fewer pictures than asked for are those that were made",
    async (name) => {
      await using stage = await imageScene(simulator, [name])
      stage.vendor(name).behave(job({ outcome: "partial" }))
      expect(picturesOf(await stage.ask({ n: 3, response_format: "b64_json" }))).toEqual([
        { b64_json: base64Of(0) },
        { b64_json: base64Of(1) },
      ])
    },
  )

  test.concurrent("replicate: a job that is done when its submit is answered is not polled", async () => {
    await using stage = await imageScene(simulator, ["replicate"])
    stage.vendor("replicate").behave({ kind: "image_job", waitMs: 100 })
    expect(picturesOf(await stage.ask())).toHaveLength(1)
    expect(stage.polls("replicate")).toEqual([])
  })

  test.concurrent("replicate: a community model is run by its version", async () => {
    await using stage = await imageScene(simulator, ["replicate"], { model: "someone/thing:abc123" })
    stage.vendor("replicate").behave(job())
    expect(picturesOf(await stage.ask({ size: "640x480" }))).toHaveLength(1)
    const [submit] = stage.submits("replicate")
    expect(submit!.path).toEndWith("/v1/predictions")
    expect(bodyOf(submit!)).toEqual({ version: "abc123", input: { prompt, width: 640, height: 480 } })
  })

  test.concurrent("dashscope: a model that answers at once is asked at its own address, without the async header", async () => {
    await using stage = await imageScene(simulator, ["dashscope"], { model: "qwen-image-max" })
    stage.vendor("dashscope").behave(job())
    expect(picturesOf(await stage.ask({ size: "1328x1328" }))).toHaveLength(1)
    const [submit] = stage.submits("dashscope")
    expect(submit!.path).toEndWith("/api/v1/services/aigc/multimodal-generation/generation")
    expect(headerOf(submit!, "x-dashscope-async")).toBeUndefined()
    expect(stage.polls("dashscope")).toEqual([])
  })

  test.concurrent("dashscope: the newer models' conversation, as a task", async () => {
    await using stage = await imageScene(simulator, ["dashscope"], { model: "wan2.6-t2i" })
    stage.vendor("dashscope").behave(job())
    expect(picturesOf(await stage.ask({ n: 2 }))).toHaveLength(2)
    const [submit] = stage.submits("dashscope")
    expect(submit!.path).toEndWith("/api/v1/services/aigc/image-generation/generation")
    expect(bodyOf(submit!)).toEqual({
      model: "wan2.6-t2i",
      input: { messages: [{ role: "user", content: [{ text: prompt }] }] },
      parameters: { n: 2 },
    })
  })
})
