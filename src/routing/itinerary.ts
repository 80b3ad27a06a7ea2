import type { Route } from "../core/catalog.ts"
import type { Verdict } from "./failure.ts"

/** Asks to upstreams in one request, repeats included. */
export const mostAttempts = 4

/** The pause before the same route is asked again. */
export const repeatPauseMs = { least: 250, most: 500 } as const

/** What the choice of a route depends on besides the request itself. */
export interface RoutingView {
  /** The circuit lets a call through and the upstream has room. */
  admits(route: Route): boolean
  /** When the route's circuit opened; null while closed, and for an upstream without room. */
  openedAt(route: Route): number | null
  /** Whether the instance may still ask a route again, and the request has time for the pause before it. */
  mayRepeat(route: Route, pauseMs: number): boolean
  random(): number
}

export interface Step {
  readonly route: Route
  readonly pauseMs: number
  /** The same route as the attempt before. */
  readonly repeat: boolean
  readonly why: "first" | "repeat" | "waited" | "equal" | "next" | "last_resort" | "without_stream_options"
}

/** Routes in the order they are to be tried: by priority, and by weighted chance inside one. */
export function inOrder(routes: readonly Route[], random: () => number): readonly Route[] {
  if (routes.length < 2) return routes
  // A weighted draw without replacement: the smallest -ln(u)/weight comes first.
  return routes
    .map((route) => ({ route, draw: -Math.log(1 - random()) / route.weight }))
    .sort((a, b) => a.route.priority - b.route.priority || a.draw - b.draw)
    .map(({ route }) => route)
}

/** Walks the routes of one request, obeying the verdict on each failure. */
export class Itinerary {
  readonly #routes: readonly Route[]
  readonly #view: RoutingView
  readonly #tried = new Set<Route>()
  readonly #repeated = new Set<Route>()
  #attempts = 0
  #current: Route | null = null

  constructor(routes: readonly Route[], view: RoutingView) {
    this.#routes = inOrder(routes, view.random)
    this.#view = view
  }

  first(): Step | null {
    const open = this.#routes.find((route) => this.#view.admits(route))
    if (open !== undefined) return this.#go(open, 0, "first")
    // The breaker alone never refuses a request: of the open circuits the one that opened first is tried.
    const candidates = this.#routes.filter((route) => this.#view.openedAt(route) !== null)
    candidates.sort((a, b) => this.#view.openedAt(a)! - this.#view.openedAt(b)!)
    return candidates[0] === undefined ? null : this.#go(candidates[0], 0, "last_resort")
  }

  /** Where to go after a failure; null: nowhere. */
  after(verdict: Verdict): Step | null {
    if (this.#attempts >= mostAttempts || this.#current === null) return null
    switch (verdict.go) {
      case "stop":
        return null
      case "next":
        return this.#next()
      case "without_stream_options":
        return this.#go(this.#current, 0, "without_stream_options")
      case "same_once":
        return this.#again(pause(this.#view.random()), "repeat") ?? this.#next()
      case "wait": {
        const { priority } = this.#current
        const equal = this.#routes.find((route) => route.priority === priority && this.#isFresh(route))
        if (equal !== undefined) return this.#go(equal, 0, "equal")
        return this.#again(verdict.ms, "waited") ?? this.#next()
      }
    }
  }

  #again(pauseMs: number, why: Step["why"]): Step | null {
    const route = this.#current!
    if (this.#repeated.has(route) || !this.#view.admits(route) || !this.#view.mayRepeat(route, pauseMs)) return null
    this.#repeated.add(route)
    return this.#go(route, pauseMs, why)
  }

  #next(): Step | null {
    const route = this.#routes.find((candidate) => this.#isFresh(candidate))
    return route === undefined ? null : this.#go(route, 0, "next")
  }

  #isFresh(route: Route): boolean {
    return !this.#tried.has(route) && this.#view.admits(route)
  }

  #go(route: Route, pauseMs: number, why: Step["why"]): Step {
    const repeat = route === this.#current
    this.#attempts += 1
    this.#tried.add(route)
    this.#current = route
    return { route, pauseMs, repeat, why }
  }
}

function pause(chance: number): number {
  return repeatPauseMs.least + chance * (repeatPauseMs.most - repeatPauseMs.least)
}
