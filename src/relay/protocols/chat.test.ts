import { describe, expect, test } from "bun:test"
import { sampleRoute } from "../../../test/support/catalog-samples.ts"
import { readAsk } from "../../admission/ask.ts"
import { GatewayError } from "../../core/errors.ts"
import { joinBytes, textOf, utf8 } from "../../lib/bytes.ts"
import { scanJson } from "../../lib/json-bytes.ts"
import { chat } from "./chat.ts"

function ask(body: string) {
  return readAsk(new Request("http://gateway/v1/chat/completions", { method: "POST", body }), chat)
}

const native = chat.carriage(sampleRoute("m"))
if (native.kind !== "call") throw new Error("chat is one call")
const bodyFor = native.body

/** What goes upstream for a body, to a route whose model has the same name. */
async function sent(body: string, streamOptions = true, upstreamModel = "m"): Promise<string> {
  return textOf(joinBytes([bodyFor(await ask(body), sampleRoute(upstreamModel), { streamOptions })].flat()))
}

describe("asking for usage on a stream", () => {
  const table: readonly (readonly [what: string, body: string, sent: string])[] = [
    [
      "absent: put in before the model",
      '{"stream":true,"model":"m"}',
      '{"stream":true,"stream_options":{"include_usage":true},"model":"m"}',
    ],
    [
      "absent, odd spacing: nothing else moves",
      ' {\n\t"model" : "m" ,\r\n "stream" :true , "temperature":1.0e0}\n',
      ' {\n\t"stream_options":{"include_usage":true},"model" : "m" ,\r\n "stream" :true , "temperature":1.0e0}\n',
    ],
    [
      "null: replaced",
      '{"model":"m","stream":true,"stream_options": null }',
      '{"model":"m","stream":true,"stream_options": {"include_usage":true} }',
    ],
    [
      "empty: filled",
      '{"model":"m","stream":true,"stream_options":{}}',
      '{"model":"m","stream":true,"stream_options":{"include_usage":true}}',
    ],
    [
      "empty with spaces: filled, the spaces stay",
      '{"model":"m","stream":true,"stream_options":{ \n\t}}',
      '{"model":"m","stream":true,"stream_options":{ \n\t"include_usage":true}}',
    ],
    [
      "other options only: ours is added at the end",
      '{"stream_options":{"include_obfuscation":false },"model":"m","stream":true}',
      '{"stream_options":{"include_obfuscation":false ,"include_usage":true},"model":"m","stream":true}',
    ],
    [
      "false: the word alone changes",
      '{"model":"m","stream":true,"stream_options":{ "include_usage" : false , "x":[1,{"include_usage":false}]}}',
      '{"model":"m","stream":true,"stream_options":{ "include_usage" : true , "x":[1,{"include_usage":false}]}}',
    ],
    [
      "a value of another kind: replaced",
      '{"model":"m","stream":true,"stream_options":{"include_usage":{"a":[0]}}}',
      '{"model":"m","stream":true,"stream_options":{"include_usage":true}}',
    ],
    [
      "only deeper down: ours is added on top",
      '{"model":"m","stream":true,"stream_options":{"x":{"include_usage":true}}}',
      '{"model":"m","stream":true,"stream_options":{"x":{"include_usage":true},"include_usage":true}}',
    ],
    [
      "keys spelled with escapes are the same keys",
      '{"model":"m","stream":true,"stream\\u005foptions":{"include\\u005Fus\\u0061ge":false}}',
      '{"model":"m","stream":true,"stream\\u005foptions":{"include\\u005Fus\\u0061ge":true}}',
    ],
    [
      "twice inside, however spelled: ours comes last, which is the one that readers take",
      '{"model":"m","stream":true,"stream_options":{"include_usage":true,"include\\u005fusage":false}}',
      '{"model":"m","stream":true,"stream_options":{"include_usage":true,"include\\u005fusage":false,"include_usage":true}}',
    ],
    [
      "bytes of more than one unit before it: offsets are bytes",
      '{"user":"Grüße 👋","model":"m","stream":true,"stream_options":{"é":"ü","include_usage":false}}',
      '{"user":"Grüße 👋","model":"m","stream":true,"stream_options":{"é":"ü","include_usage":true}}',
    ],
  ]
  test.each(table)("%s", async (_, body, expected) => {
    const result = await sent(body)
    expect(result).toBe(expected)
    const parsed = JSON.parse(result)
    expect(parsed.stream_options.include_usage).toBe(true)
    const { stream_options: _given, ...asked } = JSON.parse(body)
    const { stream_options: _sent, ...rest } = parsed
    expect(rest).toEqual(asked)
  })

  test.each(["1", '"yes"', "[]", "true", "false"])("%s is no object: the upstream shall say so", async (value) => {
    const body = `{"model":"m","stream":true,"stream_options":${value}}`
    expect(await sent(body)).toBe(body)
  })

  test("a body that needs no change is sent as the very same bytes", async () => {
    const asked = await ask('{"model":"m","stream":true,"stream_options":{"include_usage" : true}}')
    expect(bodyFor(asked, sampleRoute("m"), { streamOptions: true })).toBe(asked.body.whole())
  })

  test.each([
    '{"model":"m"}',
    '{"model":"m","stream":false}',
    '{"model":"m","stream":null}',
    '{"model":"m","stream":"true"}',
    '{"model":"m","stream":1,"stream_options":{"include_usage":false}}',
    '{"model":"m","options":{"stream":true}}',
  ])("%s is no stream and stays as it is", async (body) => {
    expect(await sent(body)).toBe(body)
  })

  test("an upstream that refuses the option gets the caller's bytes", async () => {
    const body = '{"model":"m","stream":true}'
    expect(await sent(body, false)).toBe(body)
  })

  test("the option and the model's name change together, wherever they stand", async () => {
    expect(await sent('{"stream_options":{},"stream":true,"model":"m"}', true, 'their "m"')).toBe(
      '{"stream_options":{"include_usage":true},"stream":true,"model":"their \\"m\\""}',
    )
    expect(await sent('{"model": "m" ,"stream":true}', true, "n")).toBe(
      '{"stream_options":{"include_usage":true},"model": "n" ,"stream":true}',
    )
  })

  test("given twice at the top is refused, however spelled", async () => {
    const twice = ask('{"model":"m","stream":true,"stream_options":{},"stream\\u005foptions":{}}')
    expect(await twice.catch((error: unknown) => error instanceof GatewayError && error.code)).toBe("duplicate_key")
  })
})

describe("a whole answer", () => {
  const reader = native.answer
  if (reader.kind === "pass_on") throw new Error("chat answers are read whole")
  const asked = ask('{"model":"m"}')
  const readAnswer = async (text: string) => reader.read(utf8(text), scanJson(utf8(text), reader.fields), await asked)
  const usageOf = async (text: string) => {
    const reading = await readAnswer(text)
    return "reading" in reading ? reading.reading : undefined
  }

  test.each(['{"choices":[]}', "{}", '{"error":null}', '{"error":{"message":"x"},"choices":[]}'])(
    "%s is one",
    async (text) => {
      expect(await readAnswer(text)).not.toHaveProperty("problem")
    },
  )

  test.each(['{"error":{"message":"x"}}', '{"error":"x"}', "[]", "null", '"text"', "3"])("%s is none", async (text) => {
    expect(await readAnswer(text)).toHaveProperty("problem")
  })

  test("its usage is read from the top level, and from nowhere else", async () => {
    expect(
      await usageOf('{"x":{"usage":{"prompt_tokens":9}},"usage":{"prompt_tokens":1,"completion_tokens":2}}'),
    ).toEqual({
      measured: {
        tokens: {
          input: 1,
          cachedInput: 0,
          cacheWrite: 0,
          audioInput: 0,
          output: 2,
          reasoning: 0,
          audioOutput: 0,
        },
      },
      invalid: false,
    })
    const nothing = { measured: {}, invalid: false }
    expect(await usageOf('{"x":{"usage":{"prompt_tokens":9}}}')).toEqual(nothing)
    expect(await usageOf('{"usage":null}')).toEqual(nothing)
    expect(await usageOf('{"usage":[1]}')).toEqual({ measured: {}, invalid: true })
  })

  test("what it produced is told for counting", async () => {
    const reading = await readAnswer('{"choices":[{"message":{"content":"hello"}}]}')
    expect("produced" in reading && reading.produced()).toBe("hello")
  })
})
