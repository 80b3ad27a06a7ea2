import { expect, test } from "bun:test"
import { Patience } from "./patience.ts"

test("who waits too long is given up once, who is forgotten in time is not", async () => {
  const patience = new Patience(60)
  const gone: string[] = []
  patience.watch(() => gone.push("slow"))
  const quick = patience.watch(() => gone.push("quick"))
  patience.forget(quick)
  await Bun.sleep(250)
  expect(gone).toEqual(["slow"])
})

test("works again after everybody has left", async () => {
  const patience = new Patience(30)
  const gone: number[] = []
  patience.watch(() => gone.push(1))
  await Bun.sleep(150)
  patience.watch(() => gone.push(2))
  await Bun.sleep(150)
  expect(gone).toEqual([1, 2])
})
