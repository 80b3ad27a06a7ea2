import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { utf8 } from "./bytes.ts"
import {
  defaultMaxDepth,
  type JsonKind,
  JsonProblem,
  JsonScanner,
  type JsonShape,
  type Span,
  scanJson,
  spliceBytes,
} from "./json-bytes.ts"

const wanted = ["model", "stream", "größe"]

/** Scans the bytes as if they had arrived cut at these offsets. */
function scanCut(bytes: Uint8Array, cuts: readonly number[], keys: readonly string[] = wanted): JsonShape {
  const scanner = new JsonScanner(keys)
  let from = 0
  for (const cut of [...cuts].sort((a, b) => a - b)) {
    // A copy that is overwritten afterwards: the scanner must not look back into a chunk.
    const chunk = bytes.slice(from, cut)
    scanner.push(chunk)
    chunk.fill(0)
    from = cut
  }
  scanner.push(bytes.subarray(from))
  return scanner.end()
}

function shapeOrProblem(read: () => JsonShape): JsonShape | JsonProblem {
  try {
    return read()
  } catch (problem) {
    if (problem instanceof JsonProblem) return problem
    throw problem
  }
}

function problemOf(bytes: Uint8Array, ...cuts: number[]): JsonProblem | null {
  const answer = shapeOrProblem(() => scanCut(bytes, cuts))
  return answer instanceof JsonProblem ? answer : null
}

/** What JSON.parse says of the bytes, as UTF-8: `undefined` when it refuses them. */
function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"))
  } catch {
    return undefined
  }
}

function textAt(bytes: Uint8Array, span: Span | undefined): string | undefined {
  return span && Buffer.from(bytes.subarray(span.start, span.end)).toString("utf8")
}

describe("what is no JSON", () => {
  test("broken UTF-8 inside a string passes, outside it does not", () => {
    expect(scanJson(Uint8Array.of(0x22, 0xff, 0xc3, 0xe2, 0x22), []).root).toBe("string")
    expect(problemOf(Uint8Array.of(0x5b, 0xff, 0x5d))?.message).toBe("unexpected byte 0xff at byte 1")
  })

  test.each([
    ['{"a":1,}', 'unexpected "}" at byte 7', 7],
    ['{"a" "b"}', 'unexpected "\\"" at byte 5', 5],
    ['["a\nb"]', "unexpected control character 0x0a at byte 3", 3],
    ['{"model":"gpt', "unexpected end of body at byte 13", 13],
    ["", "unexpected end of body at byte 0", 0],
    ["\ufeff{}", "unexpected byte 0xef (a byte order mark?) at byte 0", 0],
  ] as const)("%j: the problem says what and where", (text, message, offset) => {
    const bytes = utf8(text)
    for (let cut = 0; cut <= bytes.length; cut++) {
      const problem = problemOf(bytes, cut)
      expect(problem?.message).toBe(message)
      expect(problem?.offset).toBe(offset)
    }
  })

  test("a scanner that has failed goes on failing", () => {
    const scanner = new JsonScanner([])
    const message = 'unexpected "}" at byte 1'
    expect(() => scanner.push(utf8("[}"))).toThrow(message)
    expect(() => scanner.push(utf8("1]"))).toThrow(message)
    expect(() => scanner.end()).toThrow(message)
  })
})

describe("depth", () => {
  const nested = (depth: number) => utf8("[".repeat(depth) + "]".repeat(depth))

  test("containers are accepted down to the limit", () => {
    expect(scanJson(nested(defaultMaxDepth - 1), []).root).toBe("array")
    expect(scanJson(nested(defaultMaxDepth), []).rootSpan).toEqual({ start: 0, end: 2 * defaultMaxDepth })
  })

  test.each([defaultMaxDepth + 1, 100_000])("%d levels are refused at the first one too deep", (depth) => {
    const problem = problemOf(nested(depth))
    expect(problem?.message).toBe(`nested deeper than 1000 levels at byte ${defaultMaxDepth}`)
  })

  test("objects count like arrays, and the limit can be chosen", () => {
    const deep = utf8('{"a":[{"b":1}]}')
    new JsonScanner([], 3).push(deep)
    expect(() => new JsonScanner([], 2).push(deep)).toThrow("nested deeper than 2 levels at byte 6")
  })
})

describe("top-level fields", () => {
  test("each kind of value is found with the exact spans of key and value", () => {
    const values: readonly [JsonKind, string][] = [
      ["string", '"a\\"}"'],
      ["number", "-1.5e3"],
      ["true", "true"],
      ["false", "false"],
      ["null", "null"],
      ["object", '{"o":{}}'],
      ["array", "[[1],2]"],
    ]
    for (const [kind, value] of values) {
      const bytes = utf8(` { "x" : [ 1 ] , "model" \n:\t${value} , "y":0 } `)
      const shape = scanJson(bytes, ["model"])
      const field = shape.fields.get("model")
      expect(field?.kind).toBe(kind)
      expect(textAt(bytes, field?.key)).toBe('"model"')
      expect(textAt(bytes, field?.value)).toBe(value)
      expect(shape.root).toBe("object")
      expect(shape.rootSpan).toEqual({ start: 1, end: bytes.length - 1 })
    }
  })

  test("keys are compared after decoding their escapes and their UTF-8", () => {
    const bytes = utf8('{"mod\\u0065l":1,"\\u0073\\u0074\\u0072\\u0065\\u0061\\u006d":2,"größe":3}')
    const shape = scanJson(bytes, wanted)
    expect([...shape.fields].map(([key, field]) => [key, textAt(bytes, field.value)])).toEqual([
      ["model", "1"],
      ["stream", "2"],
      ["größe", "3"],
    ])
    expect(scanJson(utf8('{"gr\\u00f6\\u00DFe":0}'), wanted).fields.has("größe")).toBe(true)
  })

  test("bytes that only look like a wanted key are not taken for it", () => {
    const latin1 = Buffer.from('{"größe":1}', "latin1")
    expect(scanJson(latin1, ["größe"]).fields.size).toBe(0)
    expect(scanJson(utf8('{"a\\\\u0062":1,"a\\nb":2}'), ["a\\u0062x", "a\\nb"]).fields.size).toBe(0)
    expect(scanJson(utf8('{"Model":1,"model ":2,"mode":3,"models":4}'), ["model"]).fields.size).toBe(0)
  })

  test("a key given twice, however spelled, is named once; the first one counts", () => {
    const bytes = utf8('{"model":1,"\\u006dodel":2,"stream":true,"model":3}')
    const shape = scanJson(bytes, wanted)
    expect(shape.duplicates).toEqual(["model"])
    expect(textAt(bytes, shape.fields.get("model")?.value)).toBe("1")
  })

  test("deeper keys and keys of other roots are left alone", () => {
    expect(scanJson(utf8('{"a":{"model":1,"model":2},"b":[{"model":3}]}'), wanted).fields.size).toBe(0)
    expect(scanJson(utf8('[{"model":1}]'), wanted)).toMatchObject({ root: "array", fields: new Map(), duplicates: [] })
    expect(scanJson(utf8(' "model" '), wanted)).toMatchObject({ root: "string", rootSpan: { start: 1, end: 8 } })
    expect(scanJson(utf8("-12"), wanted)).toMatchObject({ root: "number", rootSpan: { start: 0, end: 3 } })
  })

  test("`__proto__` and the empty key are keys like any other", () => {
    expect([...scanJson(utf8('{"__proto__":{},"":1}'), ["__proto__", "", "constructor"]).fields.keys()]).toEqual([
      "__proto__",
      "",
    ])
  })

  test("an endless key in many chunks is no wanted key, and the one after it is found", () => {
    const bytes = utf8(`{"${"\\u006d".repeat(50_000)}":1,"model":2}`)
    const cuts = Array.from({ length: 1000 }, (_, i) => i * 300)
    const shape = scanCut(bytes, cuts)
    expect(textAt(bytes, shape.fields.get("model")?.value)).toBe("2")
    expect(shape.fields.size).toBe(1)
  })

  test("twenty megabytes before `model` in chunks", () => {
    const bytes = utf8(`{"messages":[{"content":"${"häh ".repeat(4_200_000)}"}],"model":"m"}`)
    expect(bytes.length).toBeGreaterThan(20_000_000)
    const scanner = new JsonScanner(["model"])
    for (let at = 0; at < bytes.length; at += 65_537) scanner.push(bytes.subarray(at, at + 65_537))
    expect(scanner.end().fields.get("model")?.value).toEqual({ start: bytes.length - 4, end: bytes.length - 1 })
  })
})

describe("chunks", () => {
  const tricky = utf8(
    ' {"mod\\u0065l" : "a\\\\\\"\\u00e9é😀", "stream":true,"n":[-0.5e-10,null,false,{}],"größe":12, "stream":{"x":[]}}\n',
  )

  test("a body cut in two at any byte, or into single bytes, has the same shape", () => {
    const whole = scanJson(tricky, wanted)
    expect([...whole.fields.keys()]).toEqual(["model", "stream", "größe"])
    expect(whole.duplicates).toEqual(["stream"])
    for (let cut = 0; cut <= tricky.length; cut++) expect(scanCut(tricky, [cut])).toEqual(whole)
    expect(scanCut(tricky, Array.from(tricky.keys()))).toEqual(whole)
  })

  test("a body that stops anywhere before its end is refused there", () => {
    for (let end = 0; end < tricky.length - 2; end++) {
      expect(problemOf(tricky.subarray(0, end))?.message).toBe(`unexpected end of body at byte ${end}`)
    }
  })
})

test("while a body passes, the scanner tells what has ended and what is being read", () => {
  const scanner = new JsonScanner(["a", "b"])
  const seen = (text: string) => {
    scanner.push(utf8(text))
    return [[...scanner.fields.keys()], scanner.unfinished]
  }
  expect(seen('{"a"')).toEqual([[], null])
  expect(seen(': [1, {"x":2}, "b"')).toEqual([[], { name: "a", start: 6 }])
  expect(seen('], "c": [')).toEqual([["a"], null])
  expect(seen('], "b" : ')).toEqual([["a"], null])
  expect(seen("12")).toEqual([["a"], { name: "b", start: 40 }])
  expect(seen("}")).toEqual([["a", "b"], null])
  expect([...scanner.end().fields.values()].map(({ entries }) => entries)).toEqual([3, 0])
})

describe("splicing", () => {
  const bytes = utf8("abcdef")
  const edit = (start: number, end: number, put: string) => ({ at: { start, end }, put: utf8(put) })

  test("spans are replaced, removed and inserted", () => {
    const result = spliceBytes(bytes, [
      edit(0, 0, "<"),
      edit(1, 3, "XYZ"),
      edit(3, 4, ""),
      edit(6, 6, ">"),
      edit(6, 6, "!"),
    ])
    expect(Buffer.from(result).toString()).toBe("<aXYZef>!")
    expect(Buffer.from(spliceBytes(bytes, [])).toString()).toBe("abcdef")
  })

  test.each([
    ["overlapping", [edit(1, 3, ""), edit(2, 4, "")], "edit 1 starts at byte 2, but bytes before 3 are taken"],
    ["unsorted", [edit(4, 5, ""), edit(0, 1, "")], "edit 1 starts at byte 0, but bytes before 5 are taken"],
    ["past the end", [edit(5, 7, "")], "edit 0 ends at byte 7, outside 5..6"],
    ["backwards", [edit(3, 2, "")], "edit 0 ends at byte 2, outside 3..6"],
  ] as const)("%s edits are refused by name", (_, edits, message) => {
    expect(() => spliceBytes(bytes, edits)).toThrow(new RangeError(message))
  })
})

const space = fc.string({ unit: fc.constantFrom(" ", "\n", "\t", "\r"), maxLength: 2 })
const stringText = fc
  .array(
    fc.oneof(
      fc.string({ unit: "binary" }).map((text) => JSON.stringify(text).slice(1, -1)),
      fc.string({ unit: "grapheme" }).map((text) => JSON.stringify(text).slice(1, -1)),
      fc.constantFrom("\\u00E9", "\\/", "\\ud83d\\uDE00", "\\u0000", "\u007f", "model", '\\"}', "\\\\"),
    ),
    { maxLength: 4 },
  )
  .map((parts) => `"${parts.join("")}"`)
const numberText = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.constantFrom("-0", "0.0", "1E+2", "10e-3", `-${"7".repeat(400)}`, `0.${"3".repeat(400)}`),
)
const keyText = fc.oneof(stringText, fc.constantFrom('"model"', '"stream"', '"__proto__"', '"mod\\u0065l"'))
const spaced = (text: fc.Arbitrary<string>) => fc.tuple(space, text, space).map((parts) => parts.join(""))
const member = (value: fc.Arbitrary<string>, key = keyText) =>
  fc.tuple(spaced(key), spaced(value)).map((pair) => pair.join(":"))

const { jsonText } = fc.letrec<{ jsonText: string }>((tie) => ({
  jsonText: fc.oneof(
    { maxDepth: 4 },
    fc.oneof(stringText, numberText, fc.constantFrom("true", "false", "null", "[]", "{}")),
    fc.array(spaced(tie("jsonText")), { maxLength: 4 }).map((items) => `[${items.join(",")}]`),
    fc.array(member(tie("jsonText")), { maxLength: 4 }).map((members) => `{${members.join(",")}}`),
  ),
}))
const otherKey = stringText.filter((text) => JSON.parse(text) !== "model")
const modelKey = fc.constantFrom('"model"', '"\\u006dodel"', '"mod\\u0065l"', '"\\u006d\\u006F\\u0064\\u0065\\u006C"')

describe("any JSON", () => {
  const bodies = fc.record({
    before: fc.array(member(jsonText, otherKey), { maxLength: 4 }),
    key: spaced(modelKey),
    gap: space,
    value: jsonText,
    after: fc.array(member(jsonText, otherKey), { maxLength: 4 }),
    cuts: fc.array(fc.nat(), { maxLength: 8 }),
  })

  test("cut anywhere it has the same shape, and replacing `model` changes nothing else", () => {
    fc.assert(
      fc.property(bodies, ({ before, key, gap, value, after, cuts }) => {
        const prefix = ` {${before.map((text) => `${text},`).join("")}${key}:${gap}`
        const suffix = `${gap}${after.map((text) => `,${text}`).join("")}}\n`
        const bytes = utf8(prefix + value + suffix)
        const shape = scanJson(bytes, ["model", "stream"])
        expect(
          scanCut(
            bytes,
            cuts.map((cut) => cut % bytes.length),
            ["model", "stream"],
          ),
        ).toEqual(shape)

        const field = shape.fields.get("model")
        expect(textAt(bytes, field?.key)).toBe(key.trim())
        expect(field?.value).toEqual({ start: utf8(prefix).length, end: utf8(prefix + value).length })
        const changed = spliceBytes(bytes, [{ at: field!.value, put: utf8('"new"') }])
        expect(changed).toEqual(utf8(`${prefix}"new"${suffix}`))
        expect(parsed(changed)).toEqual({ ...(parsed(bytes) as object), model: "new" })
      }),
      { numRuns: 300 },
    )
  })

  const bytesOfInterest = fc.oneof(
    fc.constantFrom(...utf8('{}[],:"\\0123456789.-+eEtrufalsn \t\n\r\u0000/u')),
    fc.integer({ min: 0, max: 255 }),
  )
  const mutation = fc.record({
    at: fc.nat(),
    remove: fc.nat({ max: 2 }),
    put: fc.array(bytesOfInterest, { maxLength: 2 }),
  })

  test("with some bytes changed it is accepted exactly when JSON.parse accepts it", () => {
    fc.assert(
      fc.property(jsonText, fc.array(mutation, { minLength: 1, maxLength: 3 }), fc.nat(), (text, mutations, cut) => {
        const mutated = [...utf8(text)]
        for (const { at, remove, put } of mutations) mutated.splice(at % (mutated.length + 1), remove, ...put)
        const bytes = Uint8Array.from(mutated)
        const value = parsed(bytes)
        const answer = shapeOrProblem(() => scanCut(bytes, [cut % (bytes.length + 1)], ["model"]))
        expect(answer instanceof JsonProblem).toBe(value === undefined)
        if (answer instanceof JsonProblem || answer.root !== "object") return
        expect(answer.fields.has("model")).toBe(Object.hasOwn(value as object, "model"))
      }),
      { numRuns: 1500 },
    )
  })
})
