import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { askMessages, messageOf, messagesPath, modes, over, ways } from "../support/messages-scene.ts"
import { asked, stopWithoutComplaint } from "../support/scene.ts"

/** What coding agents send that other clients do not; the shapes are those of a recorded session of Claude Code. */

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

const longName = `mcp__plugin_issue-tracker_${"workspace_".repeat(6)}create_issue`
const cached = { cache_control: { type: "ephemeral", ttl: "1h" } }
const agentHeaders = {
  "user-agent": "claude-cli/2.1.197 (external, sdk-cli)",
  "anthropic-version": "2023-06-01",
  "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,mid-conversation-system-2026-04-07",
  "anthropic-dangerous-direct-browser-access": "true",
}

/** A turn in the middle of a session: a tool was searched for and called, and the agent added a reminder. */
const session = {
  max_tokens: 32_000,
  system: [
    { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.197; cch=0a1b2;" },
    { type: "text", text: "You are an agent.", ...cached },
  ],
  messages: [
    { role: "user", content: [{ type: "text", text: "File an issue", ...cached }] },
    { role: "system", content: "The user's time zone is UTC." },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Which tool?", signature: "c2ln" },
        { type: "text", text: "I look for a tool." },
        { type: "tool_use", id: "toolu_1", name: "ToolSearch", input: { query: "issue" } },
        { type: "tool_use", id: "toolu_2", name: longName, input: { title: "x" } },
      ],
    },
    {
      role: "user",
      content: [
        { type: "text", text: "<system-reminder>be brief</system-reminder>" },
        { type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "tool_reference", tool_name: longName }] },
        { type: "tool_result", tool_use_id: "toolu_2", content: "refused", is_error: true, ...cached },
      ],
    },
  ],
  tools: [
    { name: "ToolSearch", description: "Finds tools", input_schema: { type: "object", properties: {} } },
    { name: longName, input_schema: { type: "object" }, defer_loading: true },
    { type: "web_search_20250305", name: "web_search", max_uses: 8 },
  ],
  metadata: { user_id: `user_${"0123456789abcdef".repeat(8)}_account__session_1` },
  thinking: { type: "adaptive" },
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  output_config: { effort: "high" },
}
const options = { path: `${messagesPath}?beta=true`, headers: agentHeaders }

describe.each(modes)("%s", (_, stream) => {
  test("a session's turn reaches a vendor of messages byte for byte", async () => {
    await using stage = await over("native", simulator)
    const body = JSON.stringify({ model: "m", ...session, stream })
    expect((await askMessages(stage, body, options)).status).toBe(200)
    const [call] = stage.vendor("a").calls
    expect(call!.path).toEndWith("/v1/messages?beta=true")
    expect(Buffer.from(call!.body).toString()).toBe(body.replace('"m"', '"m-upstream"'))
    const received = Object.fromEntries(call!.headers.map(([name, value]) => [name.toLowerCase(), value]))
    expect(received).toMatchObject(agentHeaders)
  })

  test("the same turn is one that a chat upstream takes", async () => {
    await using stage = await over("bridged", simulator)
    stage.vendor("a").behave({ kind: "chat", text: "It was refused.", gapMs: 1 })
    const answer = await askMessages(stage, { ...session, stream }, options)
    expect(messageOf(answer, stream)).toMatchObject({ model: "m", stop_reason: "end_turn" })
    const [call] = stage.vendor("a").calls
    expect(call!.path).toEndWith("/v1/chat/completions")
    const { messages, tools, user, ...rest } = asked(stage) as {
      messages: Record<string, unknown>[]
      tools: { function: { name: string } }[]
      user: string
    }
    const upstreamName = tools[1]!.function.name
    expect(upstreamName.length).toBeLessThanOrEqual(64)
    expect(tools.map((tool) => tool.function.name)).toEqual(["ToolSearch", upstreamName])
    expect(user).toMatch(/^[0-9a-f]{64}$/)
    expect(Object.keys(rest).sort()).toEqual(["max_tokens", "model", ...(stream ? ["stream", "stream_options"] : [])])
    expect(messages).toEqual([
      { role: "system", content: "You are an agent." },
      { role: "user", content: "File an issue" },
      { role: "system", content: "The user's time zone is UTC." },
      {
        role: "assistant",
        content: "I look for a tool.",
        tool_calls: [
          { id: "toolu_1", type: "function", function: { name: "ToolSearch", arguments: '{"query":"issue"}' } },
          { id: "toolu_2", type: "function", function: { name: upstreamName, arguments: '{"title":"x"}' } },
        ],
      },
      { role: "tool", tool_call_id: "toolu_1", content: expect.stringContaining(longName) },
      { role: "tool", tool_call_id: "toolu_2", content: "Error: refused" },
      { role: "user", content: "<system-reminder>be brief</system-reminder>" },
    ])
  })

  test("a call of the tool with the long name comes back under it", async () => {
    await using stage = await over("bridged", simulator)
    await askMessages(stage, { ...session, stream }, options)
    const name = (asked(stage).tools as { function: { name: string } }[])[1]!.function.name
    expect(name).not.toBe(longName)
    stage.vendor("a").behave({ kind: "chat", toolCalls: [{ id: "c1", name, arguments: '{"title":"y"}' }], gapMs: 1 })
    const { content, stop_reason } = messageOf(await askMessages(stage, { ...session, stream }, options), stream)
    expect([content, stop_reason]).toEqual([
      [{ type: "tool_use", id: "c1", name: longName, input: { title: "y" } }],
      "tool_use",
    ])
  })
})

test.each(ways)("after a stream that broke, the same body works without stream (%s)", async (way) => {
  await using stage = await over(way, simulator)
  const cut = { afterEvents: way === "native" ? 5 : 3, how: "rst" } as const
  const text = "one two three"
  const kind = way === "native" ? "messages" : "chat"
  stage.vendor("a").behave({ kind, text, cut, gapMs: 100 }, { kind, text })
  const broken = await askMessages(stage, { ...session, stream: true }, options)
  expect(broken.text).toContain("event: error")
  const again = await askMessages(stage, { ...session, stream: false }, options)
  expect(JSON.parse(again.text)).toMatchObject({ type: "message", content: [{ type: "text", text }] })
  const bodies = stage.vendor("a").calls.map(({ body }) => JSON.parse(Buffer.from(body).toString()))
  expect(bodies[1].messages).toEqual(bodies[0].messages)
})

test("the probe of the root and the list of models answer", async () => {
  await using stage = await over("bridged", simulator)
  const { url, key } = stage.gateway
  const probe = await fetch(`${url}/`, { method: "HEAD" })
  expect([probe.status, await probe.text()]).toEqual([200, ""])
  for (const headers of [{ "x-api-key": key }, { authorization: `Bearer ${key}` }]) {
    const listed = await fetch(`${url}/compat/v1/models?limit=1000`, { headers: headers as Record<string, string> })
    expect(listed.status).toBe(200)
    expect(await listed.json()).toMatchObject({
      data: [
        { type: "model", id: expect.any(String), display_name: expect.any(String) },
        { type: "model", id: expect.any(String) },
      ],
      has_more: false,
    })
  }
})
