import { expect, test } from "bun:test"
import { oneAtATime } from "./turns.ts"

test("one starts when the one before it has ended, well or badly", async () => {
  const inTurn = oneAtATime()
  const seen: string[] = []
  const work = (name: string, fails = false) =>
    inTurn(async () => {
      seen.push(`${name} starts`)
      await Promise.resolve()
      seen.push(`${name} ends`)
      if (fails) throw new Error(name)
      return name
    })
  const outcomes = await Promise.allSettled([work("a"), work("b", true), work("c")])
  expect(seen).toEqual(["a starts", "a ends", "b starts", "b ends", "c starts", "c ends"])
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"])
  expect(await work("d")).toBe("d")
})
