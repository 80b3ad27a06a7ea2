import { expect } from "bun:test"
import type { Simulator } from "../../simulator/simulator.ts"
import type { UpstreamConfig } from "../../src/config/document.ts"
import { postJson } from "../support/endpoints.ts"
import { expectWellFormed, typesOf } from "../support/responses-events.ts"
import { type Answer, readAnswer, type Scene, type SceneOptions, scene } from "../support/scene.ts"

export const deepseek: Partial<UpstreamConfig> = { vendor: "deepseek" }
export const mistral: Partial<UpstreamConfig> = { vendor: "mistral" }

/** One upstream that speaks chat completions alone. */
export function bridged(simulator: Simulator, options: SceneOptions = {}): Promise<Scene> {
  return scene(simulator, ["a"], { each: { a: deepseek }, ...options })
}

export async function ask(stage: Scene, more: object = {}): Promise<Answer> {
  const body = { model: "m", input: "Say hello", ...more }
  return readAnswer(stage.gateway, await postJson(stage.gateway, "/v1/responses", body))
}

export function expectCompleted(answer: Answer): void {
  expect(answer.status).toBe(200)
  expect(answer.headers.get("content-type")).toStartWith("text/event-stream")
  expectWellFormed(answer.text)
  expect(typesOf(answer.text).at(-1)).toBe("response.completed")
  expect(answer.story).toMatchObject({ ending: "completed", error: null, endpoint: "responses", stream: true })
}
