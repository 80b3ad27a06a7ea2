import { afterAll, expect, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { headerOf, model, startGateway, upstream } from "../support/gateway.ts"

const simulator = await startSimulator()
const vendor = simulator.vendor("a")
const gateway = await startGateway({ upstreams: [upstream("a", vendor.baseUrl)], models: [model("m", ["a"])] })
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
})

test("a chat completion is relayed with the upstream's model name and credential", async () => {
  const response = await gateway.chat({ model: "m", messages: [{ role: "user", content: "hi" }] })
  expect(response.status).toBe(200)
  const story = await gateway.story(response)
  expect(story.attempts).toHaveLength(1)
  expect(story.usage?.output).toBeGreaterThan(0)
  const call = vendor.calls[0]!
  expect(JSON.parse(Buffer.from(call.body).toString())).toEqual({
    model: "m-upstream",
    messages: [{ role: "user", content: "hi" }],
  })
  expect(headerOf(call, "authorization")).toBe("Bearer credential-of-a")
})
