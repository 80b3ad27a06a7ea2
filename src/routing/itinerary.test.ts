import { describe, expect, test } from "bun:test"
import { sampleRoute as route } from "../../test/support/catalog-samples.ts"
import type { Route } from "../core/catalog.ts"
import type { Verdict } from "./failure.ts"
import { Itinerary, inOrder, mostAttempts, type RoutingView, repeatPauseMs, type Step } from "./itinerary.ts"

/** Chance with a seed (mulberry32), so that a draw can be told in advance. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

interface World {
  /** Names of routes that take no call. */
  readonly shut: Set<string>
  readonly openedAt: Map<string, number>
  budget: boolean
  chance: number
}

function world(): { state: World; view: RoutingView } {
  const state: World = { shut: new Set(), openedAt: new Map(), budget: true, chance: 0.5 }
  const view: RoutingView = {
    admits: ({ upstreamModel }) => !state.shut.has(upstreamModel),
    openedAt: ({ upstreamModel }) => state.openedAt.get(upstreamModel) ?? null,
    mayRepeat: () => state.budget,
    random: () => state.chance,
  }
  return { state, view }
}

const told = (step: Step | null) =>
  step === null ? null : `${step.route.upstreamModel} ${step.why}${step.repeat ? " again" : ""} ${step.pauseMs}`

/** The whole way of a request that meets these verdicts in turn. */
function walk(routes: readonly Route[], verdicts: readonly Verdict[], view = world().view): (string | null)[] {
  const itinerary = new Itinerary(routes, view)
  return [told(itinerary.first()), ...verdicts.map((verdict) => told(itinerary.after(verdict)))]
}

const next: Verdict = { go: "next" }
const sameOnce: Verdict = { go: "same_once" }
const stop: Verdict = { go: "stop" }
const bare: Verdict = { go: "without_stream_options" }
const wait = (ms: number): Verdict => ({ go: "wait", ms })

const [a, b, c, d, e] = ["a", "b", "c", "d", "e"].map((name, index) => route(name, { priority: index + 1 })) as [
  Route,
  Route,
  Route,
  Route,
  Route,
]

describe("the order of routes", () => {
  test("a lower priority comes first, whatever the weights and the chance", () => {
    const routes = [
      route("third", { priority: 9, weight: 1000 }),
      route("first", { priority: 0, weight: 1 }),
      route("second", { priority: 1 }),
    ]
    for (let seed = 0; seed < 50; seed++) {
      expect(inOrder(routes, seeded(seed)).map(({ upstreamModel }) => upstreamModel)).toEqual([
        "first",
        "second",
        "third",
      ])
    }
  })

  test("inside one priority the first place goes by weight", () => {
    const routes = [route("heavy", { weight: 300 }), route("light", { weight: 100 })]
    const random = seeded(7)
    const draws = 4000
    let heavyFirst = 0
    for (let draw = 0; draw < draws; draw++) if (inOrder(routes, random)[0]!.upstreamModel === "heavy") heavyFirst++
    expect(heavyFirst / draws).toBeGreaterThan(0.72)
    expect(heavyFirst / draws).toBeLessThan(0.78)
  })

  test("the same chance gives the same order, and every route stays in it once", () => {
    const routes = Array.from({ length: 8 }, (_, index) => route(`r${index}`, { weight: index + 1 }))
    const order = inOrder(routes, seeded(3))
    expect(inOrder(routes, seeded(3))).toEqual(order)
    expect(new Set(order)).toEqual(new Set(routes))
    expect(order).toHaveLength(8)
    expect(inOrder(routes, seeded(4))).not.toEqual(order)
  })

  test("the smallest and the largest chance still give an order", () => {
    const routes = [route("x", { weight: 1 }), route("y", { weight: 100 })]
    for (const chance of [0, 1 - Number.EPSILON / 2]) expect(inOrder(routes, () => chance)).toHaveLength(2)
  })

  test("the given list is not changed", () => {
    const routes = [b, a]
    inOrder(routes, seeded(1))
    expect(routes).toEqual([b, a])
  })
})

describe("the first step", () => {
  test("goes to the first route that takes a call", () => {
    const { state, view } = world()
    expect(walk([b, a, c], [], view)).toEqual(["a first 0"])
    state.shut.add("a")
    expect(walk([b, a, c], [], view)).toEqual(["b first 0"])
  })

  test("every circuit open: the one that opened first is tried", () => {
    const { state, view } = world()
    for (const [name, time] of [
      ["a", 300],
      ["b", 100],
      ["c", 200],
    ] as const) {
      state.shut.add(name)
      state.openedAt.set(name, time)
    }
    expect(walk([a, b, c], [sameOnce], view)).toEqual(["b last_resort 0", null])
  })

  test("an open circuit is not a last resort while another route takes calls", () => {
    const { state, view } = world()
    state.shut.add("a")
    state.openedAt.set("a", 1)
    expect(walk([a, b], [], view)).toEqual(["b first 0"])
  })

  test("routes that are full and not open are no last resort", () => {
    const { state, view } = world()
    state.shut.add("a").add("b")
    expect(walk([a, b], [], view)).toEqual([null])
    state.openedAt.set("b", 5)
    expect(walk([a, b], [], view)).toEqual(["b last_resort 0"])
  })

  test("no routes: nowhere to go, and nothing after that", () => {
    expect(walk([], [next, sameOnce, wait(1), bare])).toEqual([null, null, null, null, null])
  })
})

describe("after a failure", () => {
  test("stop: nowhere, though other routes are left", () => {
    expect(walk([a, b], [stop])).toEqual(["a first 0", null])
  })

  test("next: each other route once, never the same one", () => {
    expect(walk([a, b, c], [next, next, next])).toEqual(["a first 0", "b next 0", "c next 0", null])
  })

  test("next passes over routes that take no call", () => {
    const { state, view } = world()
    state.shut.add("b")
    expect(walk([a, b, c], [next, next], view)).toEqual(["a first 0", "c next 0", null])
  })

  test("same once: the same route after a pause, then the next, which is repeated once as well", () => {
    expect(walk([a, b], [sameOnce, sameOnce, sameOnce, sameOnce])).toEqual([
      "a first 0",
      "a repeat again 375",
      "b next 0",
      "b repeat again 375",
      null,
    ])
  })

  test("the pause lies between 250 and 500 ms", () => {
    const { state, view } = world()
    state.chance = 0
    expect(walk([a], [sameOnce], view)[1]).toBe(`a repeat again ${repeatPauseMs.least}`)
    state.chance = 1
    expect(walk([a], [sameOnce], view)[1]).toBe(`a repeat again ${repeatPauseMs.most}`)
    expect(repeatPauseMs).toEqual({ least: 250, most: 500 })
  })

  test("a route is repeated once, whichever verdict asks for it", () => {
    expect(walk([a], [sameOnce, wait(10)])).toEqual(["a first 0", "a repeat again 375", null])
    expect(walk([a], [wait(10), sameOnce])).toEqual(["a first 0", "a waited again 10", null])
  })

  test("the budget for repeats is used up: the next route at once, or nowhere", () => {
    const { state, view } = world()
    state.budget = false
    expect(walk([a, b], [sameOnce, sameOnce], view)).toEqual(["a first 0", "b next 0", null])
    expect(walk([a, b], [wait(10), wait(10)], view)).toEqual(["a first 0", "b next 0", null])
  })

  test("a circuit that opened meanwhile is not asked again", () => {
    const { state, view } = world()
    const itinerary = new Itinerary([a, b], view)
    itinerary.first()
    state.shut.add("a")
    expect(told(itinerary.after(sameOnce))).toBe("b next 0")
  })

  test("without stream options: the same route at once, also when the budget is used up", () => {
    const { state, view } = world()
    state.budget = false
    expect(walk([a, b], [bare, next], view)).toEqual(["a first 0", "a without_stream_options again 0", "b next 0"])
  })

  test("going without stream options is not the route's one repeat", () => {
    expect(walk([a], [bare, sameOnce, sameOnce])).toEqual([
      "a first 0",
      "a without_stream_options again 0",
      "a repeat again 375",
      null,
    ])
  })
})

describe("told to wait", () => {
  const x = route("x")
  const y = route("y")
  const later = route("later", { priority: 2 })

  test("a free route of the same priority is asked at once, then the wait, then the next", () => {
    expect(walk([x, y, later], [wait(900), wait(700), wait(700)])).toEqual([
      "x first 0",
      "y equal 0",
      "y waited again 700",
      "later next 0",
    ])
  })

  test("no equal route: the same one is asked once more after the time it named", () => {
    expect(walk([x, later], [wait(1500), wait(1500)])).toEqual(["x first 0", "x waited again 1500", "later next 0"])
  })

  test("an equal route that takes no call is no equal route", () => {
    const { state, view } = world()
    state.shut.add("y")
    expect(walk([x, y, later], [wait(20)], view)).toEqual(["x first 0", "x waited again 20"])
  })

  test("equal means the priority of the route that failed, not of the first one", () => {
    const other = route("other", { priority: 2 })
    expect(walk([x, later, other], [next, wait(20)])).toEqual(["x first 0", "later next 0", "other equal 0"])
  })
})

describe("at most four attempts", () => {
  test("however many routes there are", () => {
    expect(mostAttempts).toBe(4)
    expect(walk([a, b, c, d, e], [next, next, next, next])).toEqual([
      "a first 0",
      "b next 0",
      "c next 0",
      "d next 0",
      null,
    ])
  })

  test("repeats count, and so does going without stream options", () => {
    expect(walk([a, b, c], [bare, sameOnce, next, next])).toEqual([
      "a first 0",
      "a without_stream_options again 0",
      "a repeat again 375",
      "b next 0",
      null,
    ])
    expect(walk([a], [bare, bare, bare, bare])[4]).toBeNull()
  })
})
