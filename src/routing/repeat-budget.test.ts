import { expect, test } from "bun:test"
import { type RepeatBudget, repeatBudget, repeatRules } from "./repeat-budget.ts"

function atTime(start = 0): { budget: RepeatBudget; clock: { now: number } } {
  const clock = { now: start }
  return { budget: repeatBudget(() => clock.now), clock }
}

/** Repeats as long as it is allowed, and tells how often that was. */
function useUp(budget: RepeatBudget): number {
  let repeats = 0
  for (; budget.mayRepeat() && repeats < 10_000; repeats++) budget.repeated()
  return repeats
}

function ask(budget: RepeatBudget, times: number): void {
  for (let i = 0; i < times; i++) budget.requestCame()
}

test("a quiet instance may repeat ten times in ten seconds", () => {
  expect(repeatRules).toEqual({ windowMs: 10_000, share: 0.2, floor: 10 })
  expect(useUp(atTime().budget)).toBe(10)
})

test("a busy one may repeat a fifth of its requests on top", () => {
  const { budget } = atTime()
  ask(budget, 1000)
  expect(useUp(budget)).toBe(210)
  ask(budget, 5)
  expect(useUp(budget)).toBe(1)
})

test("asking whether a repeat is allowed costs nothing", () => {
  const { budget } = atTime()
  for (let i = 0; i < 100; i++) expect(budget.mayRepeat()).toBe(true)
})

test("what was used is still used in the next half window, and free after it", () => {
  const { budget, clock } = atTime(1_000)
  expect(useUp(budget)).toBe(10)
  clock.now = 9_999
  expect(budget.mayRepeat()).toBe(false)
  clock.now = 10_000
  expect(useUp(budget)).toBe(10)
})

test("requests of the half window before still count, older ones do not", () => {
  const { budget, clock } = atTime(4_999)
  ask(budget, 100)
  clock.now = 9_999
  expect(useUp(budget)).toBe(30)
  clock.now = 15_000
  expect(useUp(budget)).toBe(10)
})

test("after a long silence nothing of before counts", () => {
  const { budget, clock } = atTime(0)
  ask(budget, 1000)
  useUp(budget)
  clock.now = 3_600_000
  expect(useUp(budget)).toBe(10)
})
