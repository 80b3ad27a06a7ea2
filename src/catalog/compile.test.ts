import { describe, expect, test } from "bun:test"
import type { Snapshot } from "../core/catalog.ts"
import { defaultDrainMs, defaultTimeouts } from "../core/timeouts.ts"
import { openVault } from "../lib/seal.ts"
import type { CatalogRows } from "../store/catalog.ts"
import type { ModelRow, RouteFields } from "../store/models.ts"
import { credentialContext, type UpstreamRow } from "../store/upstreams.ts"
import { compile } from "./compile.ts"
import { describe as tell } from "./problem.ts"

const vault = openVault("a master key that is long enough for tests")

function upstream(
  name: string,
  changes: Partial<UpstreamRow> = {},
  secrets: readonly string[] = ["sk-1"],
): UpstreamRow {
  return {
    id: `id-${name}`,
    name,
    vendor: "openai",
    baseUrl: null,
    credentials: secrets.map((secret, position) => ({
      sealed: vault.seal(secret, credentialContext(name, position)),
      digest: vault.digest(secret),
    })),
    headers: {},
    timeouts: {},
    concurrency: 0,
    settings: {},
    ...changes,
  }
}

function route(name: string, changes: Partial<RouteFields> = {}): RouteFields {
  return { upstream: name, upstreamModel: `${name}-model`, priority: 1, weight: 100, ...changes }
}

function model(name: string, routes: readonly RouteFields[], changes: Partial<ModelRow> = {}): ModelRow {
  return {
    id: `id-${name}`,
    createdAt: 0,
    name,
    price: { input: "1" },
    tokenizer: null,
    endpoints: null,
    routes,
    ...changes,
  }
}

function rows(changes: Partial<CatalogRows>): CatalogRows {
  return { version: 7, plans: [], upstreams: [], models: [], settings: {}, ...changes }
}

function snapshotOf(changes: Partial<CatalogRows>): Snapshot {
  const compiled = compile(rows(changes), vault)
  if (!compiled.usable) throw new Error(compiled.problems.map(tell).join("\n"))
  return compiled.snapshot
}

function problemsOf(changes: Partial<CatalogRows>): readonly string[] {
  const compiled = compile(rows(changes), vault)
  return compiled.usable ? [] : compiled.problems.map(tell)
}

describe("an upstream", () => {
  test("takes the preset's address unless it has its own, and its credentials in order", () => {
    const { upstreams, version } = snapshotOf({
      upstreams: [
        upstream("main", {}, ["sk-1", "sk-2"]),
        upstream("own", { baseUrl: "https://proxy.example/v1", concurrency: 3, headers: { "x-a": "1" } }),
      ],
    })
    expect(version).toBe(7)
    expect(upstreams.get("main")).toMatchObject({
      id: "id-main",
      baseUrl: "https://api.openai.com/v1",
      credentials: ["sk-1", "sk-2"],
    })
    expect(upstreams.get("own")).toMatchObject({
      baseUrl: "https://proxy.example/v1",
      concurrency: 3,
      headers: { "x-a": "1" },
    })
  })

  test("of an unknown vendor is refused, and the known ones are named", () => {
    const [problem, ...others] = problemsOf({ upstreams: [upstream("x", { vendor: "openia" })] })
    expect(problem).toStartWith('upstreams "x" vendor: "openia" is not a vendor; the known ones are: openai, ')
    expect(others).toEqual([])
  })

  test("of a vendor without a common address needs one", () => {
    expect(problemsOf({ upstreams: [upstream("x", { vendor: "azure-openai" })] })).toEqual([
      'upstreams "x" base_url: is required, because every customer of Azure OpenAI has an address of its own',
    ])
    const own = upstream("x", { vendor: "azure-openai", baseUrl: "https://me.example/openai/v1" })
    expect(problemsOf({ upstreams: [own] })).toEqual([])
  })

  test("needs a credential", () => {
    expect(problemsOf({ upstreams: [upstream("x", {}, [])] })).toEqual(['upstreams "x" api_key: is required by OpenAI'])
  })

  test("of a vendor whose key is optional does without, and keeps the one it has", () => {
    const { upstreams } = snapshotOf({
      upstreams: [upstream("bare", { vendor: "ollama" }, []), upstream("keyed", { vendor: "ollama" })],
    })
    expect(upstreams.get("bare")!.credentials).toEqual([])
    expect(upstreams.get("keyed")!.credentials).toEqual(["sk-1"])
  })

  test("with a credential sealed for another place or with another key is refused without telling it", () => {
    const moved = upstream("x", { credentials: upstream("y").credentials })
    const problems = problemsOf({ upstreams: [moved] })
    expect(problems).toHaveLength(1)
    expect(problems[0]).toStartWith('upstreams "x" api_key: ')
    expect(problems[0]).not.toContain("sk-1")
    const foreign = openVault("another master key that is long enough")
    const sealed = foreign.seal("sk-1", credentialContext("x", 0))
    expect(problemsOf({ upstreams: [upstream("x", { credentials: [{ sealed, digest: "" }] })] })).toHaveLength(1)
  })
})

describe("a model", () => {
  const upstreams = [upstream("openai-main"), upstream("claude", { vendor: "anthropic" })]

  test("has its routes in order of priority, equal ones as they were written", () => {
    const written = [
      route("openai-main", { upstreamModel: "late", priority: 5 }),
      route("openai-main", { upstreamModel: "one", priority: 1, weight: 3 }),
      route("claude", { upstreamModel: "two", priority: 1 }),
    ]
    const { models } = snapshotOf({ upstreams, models: [model("m", written)] })
    expect(models.get("m")!.routes.map(({ upstreamModel }) => upstreamModel)).toEqual(["one", "two", "late"])
    expect(models.get("m")!.routes[0]).toMatchObject({ priority: 1, weight: 3, upstream: { name: "openai-main" } })
  })

  test("without a route is refused", () => {
    expect(problemsOf({ models: [model("m", [])] })).toEqual(['models "m" routes: a model needs at least one route'])
  })

  test("without a price is refused; free is a price", () => {
    const without = model("m", [route("claude")], { price: {} })
    expect(problemsOf({ upstreams, models: [without] })).toEqual([
      'models "m" price: a model needs a price; `free` says so aloud',
    ])
    expect(problemsOf({ upstreams, models: [{ ...without, price: "free" }] })).toEqual([])
  })

  test("with a route to nowhere is refused, with the name that was probably meant", () => {
    const lost = model("m", [route("claude"), route("openai-mian"), route("zzzzzz")])
    expect(problemsOf({ upstreams, models: [lost] })).toEqual([
      'models "m" routes[1].upstream: "openai-mian" is not an upstream (did you mean "openai-main"?)',
      'models "m" routes[2].upstream: "zzzzzz" is not an upstream',
    ])
  })

  test("whose upstream has a problem of its own is not told as a second one", () => {
    const broken = upstream("broken", {}, [])
    expect(problemsOf({ upstreams: [broken], models: [model("m", [route("broken")])] })).toEqual([
      'upstreams "broken" api_key: is required by OpenAI',
    ])
  })

  test("that its vendor could never serve is refused", () => {
    const video = model("m", [route("claude")], { price: { second: "0.1" } })
    const [problem] = problemsOf({ upstreams, models: [video] })
    expect(problem).toStartWith(
      'models "m" routes[0].upstream: model "m" cannot be served: vendor "anthropic" has no video, transcriptions or',
    )
    const narrowed = model("m", [route("claude")], { endpoints: ["embeddings"] })
    expect(problemsOf({ upstreams, models: [narrowed] })[0]).toContain('vendor "anthropic" has no embeddings endpoint')
  })

  test("with tiers and no price without them is refused", () => {
    const tiers = [{ aboveInput: 5, prices: { input: "1" } }]
    expect(problemsOf({ upstreams, models: [model("m", [route("claude")], { price: { tiers } })] })).toEqual([
      'models "m" price: a model needs a price; `free` says so aloud',
    ])
  })

  test("narrowed to an endpoint where its price cannot be measured is refused", () => {
    const pictures = model("m", [route("openai-main")], {
      price: { image: "0.04" },
      endpoints: ["image_generations", "chat"],
    })
    const [problem, ...others] = problemsOf({ upstreams, models: [pictures] })
    expect(problem).toStartWith('models "m" endpoints[1]: chat would cost nothing: a price by image can be measured at')
    expect(others).toEqual([])
  })

  test("counts with the usual tokenizer unless it has its own", () => {
    const { models } = snapshotOf({
      upstreams,
      models: [model("m", [route("claude")]), model("n", [route("claude")], { tokenizer: "cl100k_base" })],
    })
    expect([models.get("m")!.tokenizer, models.get("n")!.tokenizer]).toEqual(["o200k_base", "cl100k_base"])
  })

  test("all problems are told at once", () => {
    expect(
      problemsOf({
        upstreams: [upstream("a", { vendor: "nope" }), upstream("b", {}, [])],
        models: [model("m", [], { price: {} }), model("n", [route("c")])],
      }),
    ).toHaveLength(5)
  })
})

describe("the routes for an endpoint", () => {
  const upstreams = [
    upstream("main"),
    upstream("claude", { vendor: "anthropic" }),
    upstream("local", { vendor: "ollama" }),
  ]
  const routes = [route("claude", { priority: 1 }), route("main", { priority: 2 }), route("local", { priority: 3 })]

  test("are those whose vendor has it, by its own path or over a bridge, in the same order", () => {
    const snapshot = snapshotOf({ upstreams, models: [model("m", routes)] })
    const m = snapshot.models.get("m")!
    const names = (endpoint: Parameters<Snapshot["routes"]>[1]) =>
      snapshot.routes(m, endpoint).map((served) => served.upstream.name)
    expect(names("chat")).toEqual(["claude", "main", "local"])
    expect(names("messages")).toEqual(["claude", "main", "local"])
    expect(names("image_generations")).toEqual(["main"])
    expect(names("video")).toEqual([])
    expect(names("chat")).toEqual(["claude", "main", "local"])
  })

  test("for video are those whose vendor has an adapter for it", () => {
    const makers = [upstream("kling", { vendor: "kling" }), upstream("bfl", { vendor: "bfl" })]
    const free = model("m", [route("bfl"), route("kling"), route("main")], { price: "free" })
    const snapshot = snapshotOf({ upstreams: [...upstreams, ...makers], models: [free] })
    const served = snapshot.routes(snapshot.models.get("m")!, "video")
    expect(served.map((one) => one.upstream.name)).toEqual(["kling"])
    const paid = model("m", [route("bfl")], { price: { second: "0.1" } })
    expect(problemsOf({ upstreams: makers, models: [paid] })[0]).toContain('vendor "bfl" has no video')
  })

  test("are none where the operator left the endpoint out", () => {
    const narrowed = model("m", [route("main")], { endpoints: ["embeddings"] })
    const snapshot = snapshotOf({ upstreams, models: [narrowed] })
    expect(snapshot.routes(snapshot.models.get("m")!, "chat")).toEqual([])
    expect(snapshot.routes(snapshot.models.get("m")!, "embeddings")).toHaveLength(1)
  })

  test("are none where the model's price cannot be measured, so that nothing is free by accident", () => {
    const snapshot = snapshotOf({
      upstreams,
      models: [
        model("pictures", [route("main")], { price: { image: "0.04" } }),
        model("calls", [route("main")], { price: { request: "1" } }),
        model("gift", [route("main")], { price: "free" }),
      ],
    })
    const offered = (name: string) => {
      const found = snapshot.models.get(name)!
      return (["chat", "image_generations"] as const).filter((endpoint) => snapshot.routes(found, endpoint).length > 0)
    }
    expect(offered("pictures")).toEqual(["image_generations"])
    expect(offered("calls")).toEqual(["chat", "image_generations"])
    expect(offered("gift")).toEqual(["chat", "image_generations"])
  })

  test("of one model are not another's", () => {
    const snapshot = snapshotOf({ upstreams, models: [model("m", [route("main")]), model("n", [route("local")])] })
    const first = ({ name }: { name: string }) => snapshot.routes(snapshot.models.get(name)!, "chat")[0]!.upstream.name
    expect([first({ name: "m" }), first({ name: "n" })]).toEqual(["main", "local"])
  })
})

describe("time-outs", () => {
  test("are the built-in ones, then the gateway's, then the upstream's own", () => {
    const { upstreams, drainMs } = snapshotOf({
      settings: { timeouts: { silence: 1, total: 2, drain: 3 } },
      upstreams: [upstream("plain"), upstream("own", { timeouts: { total: 20, firstToken: 30 } })],
    })
    expect(upstreams.get("plain")!.timeouts).toEqual({ ...defaultTimeouts, silence: 1, total: 2 })
    expect(upstreams.get("own")!.timeouts).toEqual({ ...defaultTimeouts, silence: 1, total: 20, firstToken: 30 })
    expect(drainMs).toBe(3)
  })

  test("that nobody set are the built-in ones", () => {
    const { upstreams, drainMs } = snapshotOf({ upstreams: [upstream("plain")] })
    expect(upstreams.get("plain")!.timeouts).toEqual(defaultTimeouts)
    expect(drainMs).toBe(defaultDrainMs)
  })
})

test("requests are kept for 90 days unless a setting says otherwise, or for good", () => {
  const kept = (settings: CatalogRows["settings"]) => snapshotOf({ settings }).keepRequestsMs
  expect(kept({})).toBe(90 * 86_400_000)
  expect(kept({ retention: { requests: 3_600_000 } })).toBe(3_600_000)
  expect(kept({ retention: { requests: null } })).toBeNull()
})

test("plans are found by name", () => {
  const plan = { name: "team", concurrency: 1, models: ["*"], priceMultiplier: "2" }
  expect(snapshotOf({ plans: [plan] }).plans.get("team")).toEqual(plan)
})
