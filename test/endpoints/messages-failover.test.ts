import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { messagesEvents } from "../support/messages-check.ts"
import {
  askMessages,
  expectMessagesError,
  modes,
  postMessages,
  saying,
  vendorFor,
  type Way,
} from "../support/messages-scene.ts"
import { asked, readAnswer, type Scene, type SceneOptions, scene, stopWithoutComplaint } from "../support/scene.ts"
import { acme, plan, slotsHeld, untilHeld } from "../support/slots.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

const orders: readonly (readonly [string, readonly Way[]])[] = [
  ["native, then bridged", ["native", "bridged"]],
  ["bridged, then native", ["bridged", "native"]],
]

/** What vendors of each dialect say when a prompt does not fit. */
const tooLong = {
  native: "prompt is too long: 210000 tokens > 200000 maximum",
  bridged: "This model's maximum context length is 8192 tokens",
}

/** Upstreams named "a", "b", …, each reached its way, in order of priority. */
function mixed(order: readonly Way[], options: SceneOptions = {}): Promise<Scene> {
  const names = order.map((_, position) => "abcdef"[position]!)
  const each = Object.fromEntries(names.map((name, position) => [name, vendorFor[order[position]!]]))
  return scene(simulator, names, { each, ...options })
}

/** What an answer says, whichever upstream gave it. */
function textOf(text: string, stream: boolean): string {
  if (!stream)
    return JSON.parse(text)
      .content.map((block: { text?: string }) => block.text ?? "")
      .join("")
  return messagesEvents(text)
    .map(({ delta }) => delta?.text ?? "")
    .join("")
}

describe.each(orders)("%s", (_, order) => {
  describe.each(modes)("%s", (_mode, stream) => {
    const [first, second] = order as [Way, Way]
    const troubles: Record<string, readonly [Behaviour, calls: number]> = {
      "529 overloaded": [{ kind: "status", status: 529 }, 2],
      "500": [{ kind: "status", status: 500 }, 2],
      reset: [{ kind: "reset" }, 2],
      "a web page": [{ kind: "html", status: 200 }, 2],
      "401": [{ kind: "status", status: 401 }, 1],
      "429": [{ kind: "status", status: 429, headers: { "retry-after": "60" } }, 1],
      "a prompt that is too long, by its code": [
        { kind: "status", status: 400, json: { error: { code: "context_length_exceeded", message: "too long" } } },
        1,
      ],
      "a prompt that is too long, in the vendor's words": [
        { kind: "status", status: 400, json: { error: { message: tooLong[first] } } },
        1,
      ],
      ...(stream
        ? {
            "a preamble and no more": [
              first === "native"
                ? { kind: "messages", text: "never", gapMs: 1, cut: { afterEvents: 3, how: "rst" } }
                : { kind: "chat", text: "never", gapMs: 1, cut: { afterEvents: 1, how: "rst" } },
              2,
            ],
          }
        : { "an error under 200": [{ kind: "status", status: 200, json: { error: { message: "no" } } }, 2] }),
    }
    test.concurrent.each(Object.keys(troubles))(
      "%s: the other takes over, nothing of the first is seen",
      async (name) => {
        const [trouble, calls] = troubles[name]!
        await using stage = await mixed(order)
        stage.vendor("a").behave(trouble)
        stage.vendor("b").behave(saying(second, { text: "from the second" }))
        const answer = await askMessages(stage, { stream })
        expect(answer.status).toBe(200)
        expect(textOf(answer.text, stream)).toBe("from the second")
        expect(answer.text).not.toContain("never")
        if (stream) expect(answer.text.match(/^event: message_start$/gm)).toHaveLength(1)
        expect(stage.calls()).toEqual([calls, 1])
        expect(answer.story).toMatchObject({ ending: "completed", estimated: false })
        expect(answer.attempts.at(-1)).toEndWith(":answered")
        expect(asked(stage, "b").model).toBe("m-upstream")
      },
    )

    test("what the first has begun nobody else goes on with", async () => {
      if (!stream) return
      await using stage = await mixed(order)
      const cut = { afterEvents: 5, how: "rst" } as const
      const gapMs = 100
      const text = "one two three four five six"
      stage
        .vendor("a")
        .behave(first === "native" ? { kind: "messages", text, cut, gapMs } : { kind: "chat", text, cut, gapMs })
      stage.vendor("b").behave(saying(second, { text: "from the second" }))
      const answer = await askMessages(stage, { stream })
      expect(answer.text).toContain("one ")
      expect(answer.text).not.toContain("from")
      expect(answer.text).toContain("upstream_stream_truncated")
      expect(answer.text).not.toContain("message_stop")
      expect(stage.calls()).toEqual([1, 0])
    })

    test("one slot, whoever is asked", async () => {
      await using stage = await mixed(order, { plans: [plan(1)], accounts: [acme(null)] })
      stage.vendor("a").behave({ kind: "status", status: 500 })
      stage.vendor("b").behave({ kind: "hang" })
      const leaving = new AbortController()
      const held = postMessages(stage.gateway, { stream: true }, { signal: leaving.signal })
      await untilHeld(stage.gateway, 1)
      expectMessagesError(await askMessages(stage, { stream }), 429, "rate_limit_error", "concurrency_limit")
      expect(await slotsHeld(stage.gateway)).toBe(1)
      leaving.abort()
      await held.catch(() => {})
      await untilHeld(stage.gateway, 0)
      stage.vendor("b").behave(saying(second, { text: "again" }))
      expect((await askMessages(stage, { stream })).status).toBe(200)
      expect(await slotsHeld(stage.gateway)).toBe(0)
    })
  })
})

describe.each(modes)("%s", (_, stream) => {
  test("native, bridged, native: there and back within one request", async () => {
    await using stage = await mixed(["native", "bridged", "native"])
    stage.vendor("a").behave({ kind: "status", status: 401 })
    stage.vendor("b").behave({ kind: "status", status: 404 })
    stage.vendor("c").behave({ kind: "messages", text: "from the third", gapMs: 1 })
    const body = `{"model": "m","max_tokens":9,"messages":[{"role":"user","content":"é"}],"top_k":5,"stream":${stream}}`
    const answer = await readAnswer(stage.gateway, await postMessages(stage.gateway, body))
    expect(textOf(answer.text, stream)).toBe("from the third")
    expect(answer.attempts).toEqual(["a:first:status", "b:next:status", "c:next:answered"])
    expect(Buffer.from(stage.vendor("c").calls[0]!.body).toString()).toBe(body.replace('"m"', '"m-upstream"'))
    expect(asked(stage, "b").top_k).toBeUndefined()
  })

  test("what the bridge cannot carry goes to the upstream that speaks the dialect", async () => {
    await using stage = await mixed(["bridged", "native"])
    const answer = await askMessages(stage, {
      stream,
      tools: [{ type: "web_search_20250305", name: "web_search" }],
      tool_choice: { type: "tool", name: "web_search" },
    })
    expect(answer.status).toBe(200)
    expect(answer.attempts).toEqual(["a:first:not_bridgeable", "b:next:answered"])
    expect(stage.calls()).toEqual([0, 1])
  })

  test("when all fail the last one's refusal is told, in this dialect", async () => {
    await using stage = await mixed(["native", "bridged"])
    stage
      .vendor("a")
      .behave({ kind: "status", status: 401, json: { type: "error", error: { type: "x", message: "first" } } })
    stage.vendor("b").behave({ kind: "status", status: 403, json: { error: { message: "second" } } })
    const answer = await askMessages(stage, { stream })
    const id = answer.headers.get("request-id")
    expect([answer.status, JSON.parse(answer.text)]).toEqual([
      403,
      { type: "error", error: { type: "permission_error", message: "second", request_id: id }, request_id: id },
    ])
  })
})
