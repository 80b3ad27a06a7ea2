import { describe, expect, test } from "bun:test"
import type { CircuitState } from "../core/events.ts"
import { Circuit, circuitRules } from "./circuit.ts"

const { failuresInARow, openMs } = circuitRules

function atTime(start = 1_000_000) {
  const clock = { now: start }
  const changes: CircuitState[] = []
  const circuit = new Circuit(
    () => clock.now,
    (state) => changes.push(state),
  )
  const fail = (times = 1) => {
    for (let i = 0; i < times; i++) circuit.enter().fail()
  }
  const succeed = (times = 1) => {
    for (let i = 0; i < times; i++) circuit.enter().succeed()
  }
  return { clock, circuit, changes, fail, succeed }
}

/** A circuit that has just opened. */
function opened(start?: number) {
  const world = atTime(start)
  world.fail(failuresInARow)
  expect(world.circuit.state).toBe("open")
  return world
}

test("the rules are those of the contract", () => {
  expect(circuitRules).toEqual({
    failuresInARow: 5,
    windowMs: 30_000,
    windowLeast: 10,
    windowShare: 0.5,
    openMs: 15_000,
  })
})

describe("failures in a row", () => {
  test("five open it, four do not", () => {
    const { circuit, changes, clock, fail } = atTime()
    fail(4)
    expect(circuit.state).toBe("closed")
    expect(circuit.admits).toBe(true)
    expect(circuit.openedAt).toBeNull()
    fail()
    expect(circuit.state).toBe("open")
    expect(circuit.admits).toBe(false)
    expect(circuit.openedAt).toBe(clock.now)
    expect(changes).toEqual(["open"])
  })

  test("a success in between starts the row again", () => {
    const { circuit, fail, succeed } = atTime()
    fail(4)
    succeed()
    fail(4)
    expect(circuit.state).toBe("closed")
  })

  test("a row has no time limit: rare calls that all fail open it too", () => {
    const { circuit, clock, fail } = atTime()
    for (let i = 0; i < 5; i++) {
      clock.now += 60_000
      fail()
    }
    expect(circuit.state).toBe("open")
  })

  test("works from the very first second of the clock", () => {
    const { circuit, fail } = atTime(0)
    fail(5)
    expect(circuit.state).toBe("open")
  })
})

describe("the share of failures", () => {
  /** Fails and succeeds in turn, so that no row grows; the last call is a failure. */
  function mixed(calls: number, world: ReturnType<typeof atTime>): void {
    for (let i = 0; i < calls; i++) (calls - i) % 2 === 1 ? world.fail() : world.succeed()
  }

  test("half of ten opens it", () => {
    const world = atTime()
    world.succeed(5)
    world.fail(4)
    expect(world.circuit.state).toBe("closed")
    world.fail()
    expect(world.circuit.state).toBe("open")
  })

  test("half of ten opens it also when failures and successes take turns", () => {
    const world = atTime()
    mixed(10, world)
    expect(world.circuit.state).toBe("open")
  })

  test("half of fewer than ten does not", () => {
    const world = atTime()
    mixed(8, world)
    expect(world.circuit.state).toBe("closed")
  })

  test("less than half does not, however many calls", () => {
    const world = atTime()
    for (let i = 0; i < 100; i++) {
      world.succeed(2)
      world.fail()
    }
    expect(world.circuit.state).toBe("closed")
  })

  test("the window slides: what is older than 30 s no longer counts", () => {
    const world = atTime()
    world.succeed()
    for (let i = 0; i < 4; i++) {
      world.fail()
      world.succeed()
    }
    world.clock.now += 30_000
    world.fail()
    expect(world.circuit.state).toBe("closed")
  })

  test("what is younger than 29 s still counts", () => {
    const world = atTime()
    world.succeed()
    for (let i = 0; i < 4; i++) {
      world.fail()
      world.succeed()
    }
    world.clock.now += 29_000
    world.fail()
    expect(world.circuit.state).toBe("open")
  })

  test("old successes do not cover new failures", () => {
    const world = atTime()
    world.succeed(1000)
    world.clock.now += 31_000
    mixed(10, world)
    expect(world.circuit.state).toBe("open")
  })

  test("spread over the window it is one window", () => {
    const world = atTime()
    for (let i = 0; i < 5; i++) {
      world.clock.now += 2_500
      world.succeed()
      world.clock.now += 2_500
      world.fail()
    }
    expect(world.circuit.state).toBe("open")
  })
})

describe("the probe", () => {
  test("is let through 15 s after the opening, one at a time", () => {
    const { circuit, clock } = opened()
    clock.now += openMs - 1
    expect(circuit.admits).toBe(false)
    clock.now += 1
    expect(circuit.state).toBe("half_open")
    expect(circuit.admits).toBe(true)
    const probe = circuit.enter()
    expect(probe.probe).toBe(true)
    expect(circuit.admits).toBe(false)
  })

  test("its success closes the circuit and forgets the failures of before", () => {
    const { circuit, clock, changes, fail } = opened()
    clock.now += openMs
    circuit.enter().succeed()
    expect(circuit.state).toBe("closed")
    expect(circuit.openedAt).toBeNull()
    expect(changes).toEqual(["open", "closed"])
    fail(4)
    expect(circuit.state).toBe("closed")
    expect(circuit.enter().probe).toBe(false)
  })

  test("after its success the share is counted afresh", () => {
    const well = opened()
    well.clock.now += openMs
    well.circuit.enter().succeed()
    well.succeed(6)
    well.fail(4)
    expect(well.circuit.state).toBe("closed")
    const unwell = opened()
    unwell.clock.now += openMs
    unwell.circuit.enter().succeed()
    unwell.fail(4)
    unwell.succeed(5)
    unwell.fail()
    expect(unwell.circuit.state).toBe("open")
  })

  test("its failure starts the pause again", () => {
    const { circuit, clock, changes } = opened()
    clock.now += openMs + 5_000
    circuit.enter().fail()
    expect(circuit.state).toBe("open")
    expect(circuit.openedAt).toBe(clock.now)
    expect(changes).toEqual(["open"])
    clock.now += openMs - 1
    expect(circuit.admits).toBe(false)
    clock.now += 1
    expect(circuit.admits).toBe(true)
  })

  test("withdrawn, it says nothing and the next one may go", () => {
    const { circuit, clock } = opened()
    const openedAt = circuit.openedAt
    clock.now += openMs
    circuit.enter().withdraw()
    expect(circuit.state).toBe("half_open")
    expect(circuit.openedAt).toBe(openedAt)
    expect(circuit.admits).toBe(true)
  })

  test("ends once: what is said after that is not heard", () => {
    const { circuit, clock } = opened()
    clock.now += openMs
    const probe = circuit.enter()
    probe.succeed()
    for (let i = 0; i < 10; i++) probe.fail()
    expect(circuit.state).toBe("closed")
  })

  test("a call made as the last resort closes the circuit when it succeeds", () => {
    const { circuit } = opened()
    const permit = circuit.enter()
    expect(permit.probe).toBe(true)
    permit.succeed()
    expect(circuit.state).toBe("closed")
  })
})

test("a straggler from before the opening that fails does not prolong the pause", () => {
  const { circuit, clock, fail } = atTime()
  const straggler = circuit.enter()
  fail(5)
  const { openedAt } = circuit
  clock.now += 10_000
  straggler.fail()
  expect(circuit.openedAt).toBe(openedAt)
  clock.now += 5_000
  expect(circuit.admits).toBe(true)
})

test("a straggler does not end the probe that is under way", () => {
  const { circuit, clock, fail } = atTime()
  const straggler = circuit.enter()
  fail(5)
  clock.now += openMs
  circuit.enter()
  straggler.fail()
  expect(circuit.admits).toBe(false)
})

test("withdrawn calls count neither for nor against", () => {
  const { circuit, fail } = atTime()
  fail(4)
  for (let i = 0; i < 20; i++) circuit.enter().withdraw()
  expect(circuit.state).toBe("closed")
  fail()
  expect(circuit.state).toBe("open")
})

describe("trouble after a success", () => {
  test("counts as a failure, and a success after it ends the row", () => {
    const { circuit, succeed } = atTime()
    for (let i = 0; i < 4; i++) circuit.trouble()
    expect(circuit.state).toBe("closed")
    succeed()
    for (let i = 0; i < 4; i++) circuit.trouble()
    expect(circuit.state).toBe("closed")
    circuit.trouble()
    expect(circuit.state).toBe("open")
  })

  test("streams that begin well and are all cut short open it by their share", () => {
    const { circuit, succeed } = atTime()
    for (let i = 0; i < 5; i++) {
      succeed()
      circuit.trouble()
    }
    expect(circuit.state).toBe("open")
  })

  test("does not prolong the pause of an open circuit", () => {
    const { circuit, clock } = opened()
    const { openedAt } = circuit
    clock.now += 1000
    circuit.trouble()
    expect(circuit.openedAt).toBe(openedAt)
  })
})
