import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { CircuitState } from "../../src/core/events.ts"
import { type FreshStore, freshStore } from "../store/engines.ts"
import { type BackOffice, openBackOffice, refusalOf } from "./back-office.ts"
import { sampleHouse } from "./samples.ts"

interface NamedPage {
  readonly data: readonly { readonly name: string }[]
  readonly next: string | null
}

let fresh: FreshStore
let office: BackOffice
const circuits = new Map<string, CircuitState>()
beforeAll(async () => {
  fresh = await freshStore("sqlite")
  office = await openBackOffice(fresh.store, sampleHouse, { circuit: (id) => circuits.get(id) ?? "closed" })
  circuits.set(office.parts.snapshot().upstreams.get("claude")!.id, "half_open")
  circuits.set(office.parts.snapshot().upstreams.get("openai-main")!.id, "open")
})
afterAll(async () => {
  await office.stop()
  await fresh.close()
})

const namesIn = async (path: string): Promise<readonly string[]> =>
  (await office.read<NamedPage>(path)).data.map(({ name }) => name)

describe("upstreams", () => {
  test("an upstream shows how it is reached and how it does; of headers the names, of credentials the count", async () => {
    const seen = await office.read("/api/upstreams/openai-main")
    expect(seen).toEqual({
      name: "openai-main",
      vendor: "openai",
      base_url: "https://api.openai.example/v1",
      headers: ["x-team", "x-region"],
      timeouts: { non_stream: "2m", first_token: "1500ms", silence: "2m", total: "1h" },
      concurrency: 7,
      settings: {},
      credentials: 2,
      circuit: "open",
    })
  })

  test("the vendor's own settings are shown; a name with spaces and slashes is found percent-encoded", async () => {
    expect(await office.read(`/api/upstreams/${encodeURIComponent("local / llm")}`)).toMatchObject({
      vendor: "openai-compatible",
      settings: { no_stream_options: true },
      credentials: 0,
      circuit: "closed",
    })
  })

  test("the list has the same entries in the order of their names, and filters by name, vendor and circuit", async () => {
    const { data, next } = await office.read<NamedPage>("/api/upstreams")
    expect(next).toBeNull()
    expect(data.map(({ name }) => name)).toEqual(["claude", "local / llm", "openai-main"])
    expect(data[2]).toEqual(await office.read<{ name: string }>("/api/upstreams/openai-main"))
    expect(await namesIn("/api/upstreams?name=claude")).toEqual(["claude"])
    expect(await namesIn("/api/upstreams?vendor=openai")).toEqual(["openai-main"])
    expect(await namesIn("/api/upstreams?circuit=half_open")).toEqual(["claude"])
    expect(await namesIn("/api/upstreams?circuit=closed&vendor=openai")).toEqual([])
  })

  test("an upstream that does not exist is 404 and named; a circuit state that does not exist is 400", async () => {
    expect(await refusalOf(await office.ask("/api/upstreams/openia"))).toEqual({
      status: 404,
      code: "not_found",
      message: 'there is no upstream "openia"',
    })
    expect(await refusalOf(await office.ask("/api/upstreams?circuit=ajar"))).toEqual({
      status: 400,
      code: "invalid_parameter",
      message: "circuit must be one of closed, open, half_open",
    })
  })
})

describe("models", () => {
  test("a model shows its price, the endpoints that its routes can serve, and its routes by priority", async () => {
    expect(await office.read("/api/models/gpt-5")).toEqual({
      name: "gpt-5",
      price: {
        input: "1.25",
        cached_input: "0.125",
        output: "10",
        tiers: [{ above_input: 200_000, input: "2.5" }],
      },
      tokenizer: "cl100k_base",
      endpoints: ["chat", "messages"],
      routes: [
        { upstream: "claude", model: "gpt-5-upstream", priority: 2, weight: 100 },
        { upstream: "openai-main", model: "gpt-5-2026-08", priority: 9, weight: 30 },
      ],
    })
  })

  test("a name with slashes is found percent-encoded and as it is; a free model says so", async () => {
    const encoded = await office.read(`/api/models/${encodeURIComponent("meta/llama 3/8b")}`)
    expect(encoded).toMatchObject({ name: "meta/llama 3/8b", price: "free", tokenizer: "o200k_base" })
    expect(await office.read("/api/models/meta/llama%203/8b")).toEqual(encoded)
    expect(await office.read("/api/models/100%25/free")).toMatchObject({ endpoints: ["embeddings"] })
    expect(await office.read("/api/models/100%25%2Ffree")).toMatchObject({ endpoints: ["embeddings"] })
  })

  test("the list goes on where the last page ended, also when another was made before it meanwhile", async () => {
    const first = await office.read<NamedPage>("/api/models?limit=2")
    expect(first.data.map(({ name }) => name)).toEqual(["100%/free", "gpt-5"])
    const { models } = sampleHouse
    await office.apply({ models: [{ ...models![1]!, name: "a-new-one" }] })
    const second = await office.read<NamedPage>(`/api/models?limit=2&cursor=${first.next}`)
    expect(second).toEqual({ data: [await office.read<{ name: string }>("/api/models/meta/llama 3/8b")], next: null })
    expect(await namesIn("/api/models")).toEqual(["100%/free", "a-new-one", "gpt-5", "meta/llama 3/8b"])
    expect(await namesIn("/api/models?name=gpt-5")).toEqual(["gpt-5"])
  })

  test("a model that does not exist is 404 and named, with and without slashes", async () => {
    for (const name of ["gpt-6", "meta/llama", "x/"]) {
      expect(await refusalOf(await office.ask(`/api/models/${name}`))).toEqual({
        status: 404,
        code: "not_found",
        message: `there is no model ${JSON.stringify(name)}`,
      })
    }
  })
})
