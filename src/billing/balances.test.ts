import { describe, expect, test } from "bun:test"
import { openBalances, TooSlow, within } from "./balances.ts"

/** A database whose answers the test gives, and a clock that the test moves. */
function stage() {
  const reads: { ids: readonly string[]; answer: PromiseWithResolvers<ReadonlyMap<string, bigint>> }[] = []
  let time = 1000
  const balances = openBalances(
    (ids) => {
      const answer = Promise.withResolvers<ReadonlyMap<string, bigint>>()
      reads.push({ ids, answer })
      return answer.promise
    },
    () => time,
  )
  return {
    balances,
    reads,
    pass: (ms: number) => {
      time += ms
    },
    /** Waits until the database is asked, and answers. */
    async answer(known: Readonly<Record<string, bigint>>, read = reads.length): Promise<void> {
      while (reads[read] === undefined) await Bun.sleep(1)
      reads[read].answer.resolve(new Map(Object.entries(known)))
    },
    async fail(error: Error, read = reads.length): Promise<void> {
      while (reads[read] === undefined) await Bun.sleep(1)
      reads[read].answer.reject(error)
    },
    /** Waits until so many reads have begun. */
    async begun(count: number): Promise<void> {
      while (reads.length < count) await Bun.sleep(1)
    },
  }
}

/** Knows this much of the account "a". */
async function knowing(balance: bigint) {
  const { balances, answer, ...rest } = stage()
  const asked = balances.of("a")
  await answer({ a: balance })
  expect(await asked).toBe(balance)
  return { balances, answer, ...rest }
}

/** What a promise is rejected with. */
function outcome(work: bigint | Promise<bigint>): Promise<unknown> {
  return Promise.resolve(work).catch((error: unknown) => error)
}

describe("how old a balance may be", () => {
  test("an account that was seen a moment ago is answered at once", async () => {
    const { balances, pass, reads } = await knowing(10n)
    pass(899)
    expect(balances.of("a")).toBe(10n)
    expect(reads).toHaveLength(1)
  })

  test("after less than a second the database is asked again, and its word counts", async () => {
    const { balances, pass, answer, reads } = await knowing(10n)
    pass(900)
    const asked = balances.of("a")
    expect(asked).toBeInstanceOf(Promise)
    await answer({ a: 3n })
    expect(await asked).toBe(3n)
    expect(balances.of("a")).toBe(3n)
    expect(reads).toHaveLength(2)
  })

  test("an account of which something else than a charge has changed is asked for at once", async () => {
    const { balances, answer } = await knowing(0n)
    balances.forget("a")
    balances.forget("unknown")
    const asked = balances.of("a")
    await answer({ a: 25n })
    expect(await asked).toBe(25n)
  })

  test("an account that the database does not know has nothing", async () => {
    const { balances, answer } = stage()
    const asked = balances.of("a")
    await answer({})
    expect(await asked).toBe(0n)
  })
})

describe("reading together", () => {
  test("all who ask in one turn are answered by one read that names each account once", async () => {
    const { balances, answer, reads } = stage()
    const asked = ["a", "b", "a", "c", "b"].map((id) => balances.of(id))
    await answer({ a: 1n, b: 2n, c: 3n })
    expect(await Promise.all(asked)).toEqual([1n, 2n, 1n, 3n, 2n])
    expect(reads.map(({ ids }) => ids)).toEqual([["a", "b", "c"]])
  })

  test("who asks while a read is under way gets the next one's answer, which began later", async () => {
    const { balances, answer, begun } = stage()
    const first = balances.of("a")
    await begun(1)
    const second = balances.of("a")
    await begun(2)
    await answer({ a: 1n }, 0)
    await answer({ a: 2n }, 1)
    expect(await Promise.all([first, second])).toEqual([1n, 2n])
  })
})

describe("charges on their way", () => {
  test("count from the moment they are made, and once when they are posted", async () => {
    const { balances } = await knowing(10n)
    balances.charged("a", 4n)
    expect(balances.of("a")).toBe(6n)
    balances.charged("a", 3n)
    expect(balances.of("a")).toBe(3n)
    balances.posted("a", 4n, 6n)
    expect(balances.of("a")).toBe(3n)
    balances.posted("a", 3n, 3n)
    expect(balances.of("a")).toBe(3n)
  })

  test("a posting tells what others have charged meanwhile, and is as good as a read", async () => {
    const { balances, pass, reads } = await knowing(10n)
    balances.charged("a", 1n)
    pass(5000)
    balances.posted("a", 1n, 2n)
    expect(balances.of("a")).toBe(2n)
    expect(reads).toHaveLength(1)
  })

  test("one that will never be posted counts no more", async () => {
    const { balances } = await knowing(10n)
    balances.charged("a", 4n)
    balances.dropped("a", 4n)
    expect(balances.of("a")).toBe(10n)
  })

  test("those that a journal kept from before count with the first read", async () => {
    const { balances, answer } = stage()
    balances.charged("a", 4n)
    const asked = balances.of("a")
    await answer({ a: 10n })
    expect(await asked).toBe(6n)
    balances.posted("a", 4n, 6n)
    expect(balances.of("a")).toBe(6n)
  })
})

describe("a read and a posting at once", () => {
  test("a read that began before the posting and ends after it does not undo it", async () => {
    const { balances, pass, answer, begun } = await knowing(10n)
    balances.charged("a", 4n)
    pass(1000)
    const asked = balances.of("a")
    await begun(2)
    balances.posted("a", 4n, 6n)
    await answer({ a: 10n }, 1)
    expect(await asked).toBe(6n)
    expect(balances.of("a")).toBe(6n)
  })

  test("a read that has the charge in it already does not make it count twice", async () => {
    const { balances, pass, answer } = await knowing(10n)
    balances.charged("a", 4n)
    pass(1000)
    const asked = balances.of("a")
    // The database has committed, and its word to the poster is still under way.
    await answer({ a: 6n })
    expect(await asked).toBe(6n)
    balances.posted("a", 4n, 6n)
    expect(balances.of("a")).toBe(6n)
  })

  test("a charge made while a read is under way counts in its answer", async () => {
    const { balances, pass, answer, begun } = await knowing(10n)
    pass(1000)
    const asked = balances.of("a")
    await begun(2)
    balances.charged("a", 4n)
    await answer({ a: 10n }, 1)
    expect(await asked).toBe(6n)
  })

  test("a charge made and posted while a read is under way is not undone by its older word", async () => {
    const { balances, pass, answer, begun } = await knowing(10n)
    pass(1000)
    const asked = balances.of("a")
    await begun(2)
    balances.charged("a", 4n)
    balances.posted("a", 4n, 6n)
    await answer({ a: 10n }, 1)
    expect(await asked).toBe(6n)
    expect(balances.of("a")).toBe(6n)
  })
})

describe("while the database is away", () => {
  const away = new Error("away")

  test("an account that was seen before has what it had, less its charges since", async () => {
    const { balances, pass, fail } = await knowing(10n)
    pass(1000)
    const asked = balances.of("a")
    await fail(away)
    expect(await asked).toBe(10n)
    balances.charged("a", 4n)
    expect(balances.of("a")).toBe(6n)
    balances.charged("a", 7n)
    expect(balances.of("a")).toBe(-1n)
  })

  test("the database is left alone for a while, and then asked again while nobody waits for it", async () => {
    const { balances, pass, fail, answer, begun, reads } = await knowing(10n)
    pass(1000)
    const asked = balances.of("a")
    await fail(away)
    await asked
    expect([balances.of("a"), balances.of("a")]).toEqual([10n, 10n])
    expect(reads).toHaveLength(2)
    pass(5000)
    expect(balances.of("a")).toBe(10n)
    await begun(3)
    // One read is enough to find out.
    expect(balances.of("a")).toBe(10n)
    await answer({ a: 7n }, 2)
    await Bun.sleep(0)
    expect(balances.of("a")).toBe(7n)
    expect(reads).toHaveLength(3)
  })

  test("nobody can say what an account has that was never seen", async () => {
    const { balances, fail, answer } = stage()
    const asked = balances.of("a")
    await fail(away)
    expect(await outcome(asked)).toBe(away)
    // It is asked for each time, so that it is known as soon as it can be.
    const again = balances.of("a")
    await answer({ a: 5n })
    expect(await again).toBe(5n)
  })

  test("a failed read of several fails only for those that were never seen", async () => {
    const { balances, pass, fail } = await knowing(10n)
    pass(1000)
    const known = balances.of("a")
    const unknown = balances.of("b")
    await fail(away)
    expect(await outcome(unknown)).toBe(away)
    expect(await known).toBe(10n)
  })
})

test("what takes longer than it may is told as such", async () => {
  await expect(within(5, new Promise(() => {}))).rejects.toBeInstanceOf(TooSlow)
  expect(await within(1000, Promise.resolve(3))).toBe(3)
  await expect(within(1000, Promise.reject(new Error("no")))).rejects.toThrow("no")
})
