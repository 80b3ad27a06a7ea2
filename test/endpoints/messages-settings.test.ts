import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { ConfigError } from "../../src/config/problems.ts"
import { readConfig } from "../../src/config/read.ts"
import type { JsonValue } from "../../src/core/json.ts"
import { askMessages, messageOf, modes, over, saying } from "../support/messages-scene.ts"
import { asked, type Scene, stopWithoutComplaint } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

function withSettings(settings: Readonly<Record<string, JsonValue>> = {}): Promise<Scene> {
  return over("bridged", simulator, { each: { a: { settings } } })
}

/** What the upstream is asked for such a request. */
async function sent(settings: Readonly<Record<string, JsonValue>>, more: object): Promise<Record<string, unknown>> {
  await using stage = await withSettings(settings)
  expect((await askMessages(stage, more)).status).toBe(200)
  return asked(stage)
}

const midSystem = {
  system: "First.",
  messages: [
    { role: "user", content: "one" },
    { role: "system", content: "Now in French." },
    { role: "user", content: "two" },
  ],
}

test.each([
  [
    "keep",
    [
      { role: "system", content: "First." },
      { role: "user", content: "one" },
      { role: "system", content: "Now in French." },
      { role: "user", content: "two" },
    ],
  ],
  [
    "user",
    [
      { role: "system", content: "First." },
      { role: "user", content: expect.stringMatching(/^one\s+Now in French\.\s+two$/) },
    ],
  ],
  [
    "merge",
    [
      { role: "system", content: expect.stringMatching(/^First\.\s+Now in French\.$/) },
      { role: "user", content: "one" },
      { role: "user", content: "two" },
    ],
  ],
])("mid_system %s", async (setting, messages) => {
  expect((await sent({ mid_system: setting }, midSystem)).messages).toEqual(messages)
  if (setting === "keep") expect((await sent({}, midSystem)).messages).toEqual(messages)
})

describe.each(modes)("reasoning_replay, %s", (_, stream) => {
  test("the upstream's own reasoning goes back to it where it wants that, and nobody else's", async () => {
    for (const replay of [true, false]) {
      await using stage = await withSettings(replay ? { reasoning_replay: true } : {})
      stage.vendor("a").behave(saying("bridged", { thinking: "let me see", text: "so" }))
      const { content } = messageOf(await askMessages(stage, { stream }), stream)
      const foreign = { type: "thinking", thinking: "of another vendor", signature: "c2ln" }
      const messages = [
        { role: "user", content: "one" },
        { role: "assistant", content },
        { role: "user", content: "two" },
        { role: "assistant", content: [foreign, { type: "text", text: "and" }] },
        { role: "user", content: "three" },
      ]
      await askMessages(stage, { stream, messages })
      expect(asked(stage).messages).toEqual([
        { role: "user", content: "one" },
        { role: "assistant", content: "so", ...(replay ? { reasoning_content: "let me see" } : {}) },
        { role: "user", content: "two" },
        { role: "assistant", content: "and" },
        { role: "user", content: "three" },
      ])
    }
  })
})

test("max_completion_tokens names the limit so", async () => {
  expect(await sent({}, { max_tokens: 7 })).toMatchObject({ max_tokens: 7 })
  const renamed = await sent({ max_completion_tokens: true }, { max_tokens: 7 })
  expect([renamed.max_completion_tokens, renamed.max_tokens]).toEqual([7, undefined])
})

test("pdf sends the file; without it the model is told that there was one", async () => {
  const source = { type: "base64", media_type: "application/pdf", data: "JVBERi0=" }
  const content = [
    { type: "document", source, title: "a.pdf" },
    { type: "text", text: "Sum it up" },
  ]
  const more = { messages: [{ role: "user", content }] }
  const file = { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" }
  expect((await sent({ pdf: true }, more)).messages).toEqual([
    {
      role: "user",
      content: [
        { type: "file", file },
        { type: "text", text: "Sum it up" },
      ],
    },
  ])
  const told = JSON.stringify((await sent({}, more)).messages)
  expect(told).not.toContain("JVBERi0=")
  expect(told).toContain("a.pdf")
  expect(told).toContain("Sum it up")
})

describe.each(modes)("tool_name_limit, %s", (_, stream) => {
  const name = `mcp__plugin_${"long_".repeat(14)}server__do.it`

  test.each([
    [{}, 64],
    [{ tool_name_limit: "32" }, 32],
  ])("with %j names have at most %i characters upstream and their own for the caller", async (settings, limit) => {
    await using stage = await withSettings(settings)
    const tools = [{ name, input_schema: { type: "object", properties: {} } }]
    await askMessages(stage, { stream, tools })
    const [{ function: declared }] = asked(stage).tools as [{ function: { name: string } }]
    expect(declared.name).toMatch(/^[A-Za-z0-9_-]+$/)
    expect(declared.name.length).toBe(limit)

    stage
      .vendor("a")
      .behave(saying("bridged", { toolCalls: [{ id: "c1", name: declared.name, arguments: '{"a":1}' }] }))
    const choice = { type: "tool", name }
    const { content } = messageOf(await askMessages(stage, { stream, tools, tool_choice: choice }), stream)
    expect(content).toEqual([{ type: "tool_use", id: "c1", name, input: { a: 1 } }])
    expect(asked(stage).tool_choice).toEqual({ type: "function", function: { name: declared.name } })

    const result = { type: "tool_result", tool_use_id: "c1", content: "ok" }
    const messages = [
      { role: "user", content: "go" },
      { role: "assistant", content },
      { role: "user", content: [result] },
    ]
    await askMessages(stage, { stream, tools, messages })
    const [, said] = asked(stage).messages as { tool_calls: { function: { name: string } }[] }[]
    expect(said!.tool_calls[0]!.function.name).toBe(declared.name)
  })

  test("none leaves names as they are", async () => {
    await using stage = await withSettings({ tool_name_limit: "none" })
    stage.vendor("a").behave(saying("bridged", { toolCalls: [{ id: "c1", name, arguments: "{}" }] }))
    const tools = [{ name, input_schema: { type: "object", properties: {} } }]
    const { content } = messageOf(await askMessages(stage, { stream, tools }), stream)
    expect(content).toMatchObject([{ name }])
    expect(asked(stage).tools).toMatchObject([{ function: { name } }])
  })
})

test("no_stream_options: not asked for, and usage is counted where none comes", async () => {
  await using stage = await withSettings({ no_stream_options: true })
  const answer = await askMessages(stage, { stream: true })
  expect(asked(stage).stream_options).toBeUndefined()
  expect(messageOf(answer, true).usage.output_tokens).toBeGreaterThan(0)
})

test("an upstream that turns out to refuse stream_options is asked again without", async () => {
  await using stage = await over("bridged", simulator)
  stage.vendor("a").behave({ kind: "echo_stream_options_error" })
  expect(messageOf(await askMessages(stage, { stream: true }), true).stop_reason).toBe("end_turn")
  expect(stage.calls()).toEqual([2])
})

test("the config file refuses a word that is none of the three", () => {
  const file = (word: string) =>
    `upstreams:\n  - name: u\n    vendor: openai\n    api_key: k\n    mid_system: ${word}\n    reasoning_replay: true\n`
  for (const word of ["keep", "user", "merge"]) {
    const [upstream] = readConfig(file(word), "t.yaml", {}).document.upstreams ?? []
    expect(upstream?.settings).toEqual({ mid_system: word, reasoning_replay: true })
  }
  expect(() => readConfig(file("developer"), "t.yaml", {})).toThrow(ConfigError)
  expect(() => readConfig(file("developer"), "t.yaml", {})).toThrow(
    't.yaml:5: upstreams[0].mid_system: must be one of keep, user, merge (got "developer")',
  )
})
