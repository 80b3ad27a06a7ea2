import { expect, setDefaultTimeout, test } from "bun:test"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import { model, startGateway, upstream } from "../support/gateway.ts"
import { messages } from "../support/scene.ts"

setDefaultTimeout(150_000)

const everyMs = 500
const downMs = 60_000
const backWithinMs = 30_000

/** A port below those the system hands out, so that nobody else gets it while the vendor is down. */
async function startOnQuietPort(): Promise<Simulator> {
  for (let tries = 0; ; tries++) {
    try {
      return await startSimulator({ port: 20_000 + Math.floor(Math.random() * 10_000) })
    } catch (error) {
      if (tries === 20) throw error
    }
  }
}

test("a vendor that is down for a minute is replaced all the while, and used again soon after", async () => {
  let primary = await startOnQuietPort()
  const { port } = primary
  const second = await startSimulator()
  const gateway = await startGateway({
    upstreams: [
      upstream("first", primary.vendor("first").baseUrl),
      upstream("second", second.vendor("second").baseUrl),
    ],
    models: [model("m", ["first", "second"])],
  })
  let round = 0
  const servedBy = async (): Promise<string> => {
    const stream = round++ % 2 === 0
    const response = await gateway.chat({ model: "m", stream, messages })
    expect(response.status).toBe(200)
    const text = await response.text()
    if (stream) expect(text).toEndWith("data: [DONE]\n\n")
    else expect(JSON.parse(text).choices).toHaveLength(1)
    return (await gateway.story(response)).attempts.at(-1)!.upstream
  }
  const askFor = async (ms: number, see: (name: string) => boolean): Promise<void> => {
    const until = performance.now() + ms
    while (performance.now() < until) {
      if (see(await servedBy())) return
      await Bun.sleep(everyMs)
    }
  }
  const expectOnly = (expected: string) => (name: string) => {
    expect(name).toBe(expected)
    return false
  }

  try {
    await askFor(2000, expectOnly("first"))
    await primary.stop()
    await askFor(downMs, expectOnly("second"))
    // Left alone while it was down: five failures and a probe every fifteen seconds.
    const failed = gateway.failedAttempts.length
    expect(failed).toBeGreaterThanOrEqual(5)
    expect(failed).toBeLessThanOrEqual(5 + Math.ceil(downMs / 15_000) * 2)

    primary = await startSimulator({ port })
    const backAt = performance.now()
    let usedAgainAt: number | null = null
    await askFor(backWithinMs, (name) => {
      if (name === "first") usedAgainAt = performance.now()
      return name === "first"
    })
    expect(usedAgainAt).not.toBeNull()
    expect(usedAgainAt! - backAt).toBeLessThan(backWithinMs)
    await askFor(3000, expectOnly("first"))
    expect(gateway.circuits.map(({ state }) => state)).toEqual(["open", "closed"])
  } finally {
    await gateway.stop()
    await primary.stop()
    await second.stop()
  }
})
