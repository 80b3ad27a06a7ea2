import { afterEach, beforeEach, expect, test } from "bun:test"
import { type Simulator, startSimulator } from "./simulator.ts"
import { chatBody, eventually, post, rawClient } from "./testing/raw-client.ts"
import type { SimulatedVendor } from "./vendor.ts"

let simulator: Simulator
let vendor: SimulatedVendor
beforeEach(async () => {
  simulator = await startSimulator()
  vendor = simulator.vendor("v")
})
afterEach(() => simulator.stop())

const request = post("/v/v1/chat/completions", chatBody({ stream: true }))
const crowd = 1500
const leavers = 2000
const leaversAtOnce = 100

test("1,500 streams at once all get their whole answer", async () => {
  vendor.behave({ kind: "chat", text: "a b c d e", gapMs: 50, firstTokenDelayMs: 500 })
  const clients = await Promise.all(Array.from({ length: crowd }, () => rawClient(simulator.port)))
  for (const client of clients) client.send(request)
  await eventually(() => vendor.openCalls() === crowd)
  await Promise.all(clients.map((client) => client.until("data: [DONE]\n\n\r\n0\r\n\r\n")))
  expect(vendor.calls.filter(({ finished }) => finished)).toHaveLength(crowd)
  for (const client of clients) client.leave()
  await eventually(() => simulator.openConnections() === 0)
}, 20_000)

test("clients that leave in mid-stream leave nothing behind", async () => {
  vendor.behave({ kind: "chat", gapMs: 60_000 })
  for (let left = 0; left < leavers; left += leaversAtOnce) {
    const clients = await Promise.all(Array.from({ length: leaversAtOnce }, () => rawClient(simulator.port)))
    for (const client of clients) client.send(request)
    await eventually(() => vendor.openCalls() === leaversAtOnce)
    for (const [index, client] of clients.entries()) client.leave(index % 2 === 0 ? "fin" : "rst")
    await eventually(() => vendor.openCalls() === 0 && simulator.openConnections() === 0)
  }
  expect(vendor.calls.filter(({ closedByPeer }) => closedByPeer)).toHaveLength(leavers)
  expect(simulator.complaints).toEqual([])
}, 20_000)
