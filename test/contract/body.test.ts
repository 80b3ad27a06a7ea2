import { afterAll, afterEach, describe, expect, test } from "bun:test"
import { rawChunk, rawConnection, rawHead, rawRequest } from "../support/raw-http.ts"
import { chatPath, credential, startBodyScene, typical } from "./body-scene.ts"

const { vendor, gateway, ask, expectRefused, expectUnharmed, stop } = await startBodyScene()
afterEach(expectUnharmed)
afterAll(stop)

describe("400 invalid_json", () => {
  const broken: Record<string, string> = {
    "nothing at all": "",
    "white space only": " \r\n\t",
    "a word": "hello",
    "cut in mid-string": '{"model":"m',
    "cut in mid-object": '{"model":"m"',
    "a comma too many": '{"model":"m",}',
    "a comma too few": '{"model":"m" "stream":true}',
    "single quotes": "{'model':'m'}",
    "a key without quotes": '{model:"m"}',
    "a comment": '{"model":"m"/* x */}',
    NaN: '{"model":"m","x":NaN}',
    "a leading zero": '{"model":"m","x":01}',
    "a bare point": '{"model":"m","x":1.}',
    "a bare exponent": '{"model":"m","x":1e}',
    "a plus sign": '{"model":"m","x":+1}',
    "a raw line break in a string": '{"model":"m","x":"a\nb"}',
    "a raw control character in a string": '{"model":"m","x":"a\u0001b"}',
    "an unknown escape": '{"model":"m","x":"\\q"}',
    "half an escape": '{"model":"m","x":"\\u12"}',
    "something after the object": '{"model":"m"} x',
    "two objects": '{"model":"m"}{"model":"m"}',
    "a byte order mark": '\ufeff{"model":"m"}',
    "a form": "model=m&messages=x",
    "a word spelled wrong": '{"model":"m","stream":True}',
    "a NUL": '{"model":"m"}\u0000',
  }
  for (const [name, text] of Object.entries(broken)) {
    test(name, async () => expectRefused(await ask(text), 400, "invalid_json"))
  }

  test("the message names what is wrong and where", async () => {
    const response = await ask('{"model":"m",}')
    expect(response.text).toContain("the request body is not valid JSON: unexpected ")
    expect(response.text).toContain("at byte 13")
  })

  for (const [name, text] of Object.entries({
    "a list": '[{"model":"m"}]',
    "a string": '"model"',
    "a number": "42",
    null: "null",
    true: "true",
  })) {
    test(`not an object: ${name}`, async () => {
      expectRefused(await ask(text), 400, "invalid_json", "the request body must be a JSON object")
    })
  }

  for (const [name, open, close] of [
    ["lists", "[", "]"],
    ["objects", '{"a":', "}"],
  ] as const) {
    test(`${name} nested 100,000 deep`, async () => {
      const deep = `{"model":"m","x":${open.repeat(100_000)}1${close.repeat(100_000)}}`
      expectRefused(await ask(deep), 400, "invalid_json")
    })
  }

  test("nesting that people use passes", async () => {
    const deep = `{"model":"m","messages":[],"x":${"[".repeat(900)}${"]".repeat(900)}}`
    expect((await ask(deep)).status).toBe(200)
  })
})

describe("400 missing_model", () => {
  const message = 'the request body must have a "model": a non-empty string'
  for (const text of [
    "{}",
    '{"Model":"m"}',
    '{"x":{"model":"m"}}',
    '{"model":""}',
    '{"model":null}',
    '{"model":1}',
    '{"model":true}',
    '{"model":["m"]}',
    '{"model":{"model":"m"}}',
    '{"model ":"m"}',
    '{"__proto__":{"model":"m"}}',
  ]) {
    test(text, async () => expectRefused(await ask(text), 400, "missing_model", message))
  }
})

describe("400 duplicate_key", () => {
  const twice: Record<string, readonly string[]> = {
    model: [
      '{"model":"m","model":"m"}',
      '{"model":"m","messages":[],"model":"other"}',
      '{"model":"m","mod\\u0065l":"other"}',
      '{"\\u006d\\u006f\\u0064\\u0065\\u006c":"m","model":"other"}',
      '{"\\u006Dodel":"m","mode\\u006C":"m"}',
      '{"model":"m","model":null}',
    ],
    stream: [
      '{"model":"m","stream":false,"stream":true}',
      '{"model":"m","stream":true,"str\\u0065am":true}',
      '{"stream":null,"model":"m","stream":false}',
    ],
    stream_options: ['{"model":"m","stream":true,"stream_options":{},"stream_options":null}'],
  }
  for (const [key, texts] of Object.entries(twice)) {
    for (const text of texts) {
      test(text, async () => {
        const message = `the key "${key}" stands more than once in the request body`
        expectRefused(await ask(text), 400, "duplicate_key", message)
      })
    }
  }

  test("a key that stands twice elsewhere is the upstream's to judge", async () => {
    const text = '{"model":"m","messages":[],"x":{"model":1,"model":2},"temperature":1,"temperature":2}'
    expect((await ask(text)).status).toBe(200)
    expect(Buffer.from(vendor.calls[0]!.body).toString()).toBe(text.replace('"m"', '"m-upstream"'))
  })

  test("a key whose pieces arrive apart is still seen twice", async () => {
    const connection = await rawConnection(gateway.url)
    connection.send(rawHead(chatPath, [credential, "Transfer-Encoding: chunked"]))
    for (const piece of ['{"model":"m","mo', "d\\u00", "65l", '":"x"}', ""]) {
      connection.send(rawChunk(piece))
      await Bun.sleep(2)
    }
    expectRefused(await connection.response(), 400, "duplicate_key")
    connection.leave()
  })
})

describe("415 unsupported_media_type", () => {
  for (const encoding of ["gzip", "GZIP", "br", "zstd", "deflate", "gzip, gzip", "aws-chunked"]) {
    test(`content-encoding: ${encoding}`, async () => {
      const response = await ask(Bun.gzipSync(Buffer.from(typical)), [`Content-Encoding: ${encoding}`])
      expectRefused(response, 415, "unsupported_media_type")
    })
  }
  for (const type of ["multipart/form-data; boundary=x", "Multipart/Form-Data; boundary=x", "multipart/mixed"]) {
    test(`content-type: ${type}`, async () => {
      expectRefused(await ask(typical, [`Content-Type: ${type}`]), 415, "unsupported_media_type")
    })
  }

  test("identity, and any or no content-type over JSON, is taken", async () => {
    for (const header of ["Content-Encoding: identity", "Content-Type: text/plain", "X-Nothing: 1"]) {
      expect((await ask(typical, [header])).status).toBe(200)
    }
  })
})

describe("framing that two readers could read differently is refused, and nothing reaches an upstream", () => {
  const chunkedBody = Buffer.concat([rawChunk(typical), rawChunk("")]).toString()
  const length = `Content-Length: ${typical.length}`
  const ambiguous: Record<string, [headers: readonly string[], body: string]> = {
    "content-length and transfer-encoding": [[length, "Transfer-Encoding: chunked"], chunkedBody],
    "transfer-encoding and content-length": [["Transfer-Encoding: chunked", length], chunkedBody],
    "two lengths that differ": [[length, "Content-Length: 5"], typical],
    "a list of lengths": [[`${length}, 5`], typical],
    "an unknown transfer coding": [["Transfer-Encoding: xchunked"], chunkedBody],
    "chunked not last": [["Transfer-Encoding: chunked, gzip"], chunkedBody],
    "a coding before chunked": [["Transfer-Encoding: gzip, chunked"], chunkedBody],
    "a folded header": [["X-A: b\r\n c", length], typical],
    "a space before the colon": [["Content-Length : 5", length], typical],
    "a negative length": [["Content-Length: -1"], typical],
    "a signed length": [[`Content-Length: +${typical.length}`], typical],
    "a hexadecimal length": [["Content-Length: 0x1b"], typical],
    "a chunk size that is no number": [["Transfer-Encoding: chunked"], `zz\r\n${typical}\r\n0\r\n\r\n`],
    "a chunk longer than it says": [["Transfer-Encoding: chunked"], `5\r\n${typical}\r\n0\r\n\r\n`],
  }
  for (const [name, [headers, body]] of Object.entries(ambiguous)) {
    test(name, async () => {
      const connection = await rawConnection(gateway.url)
      connection.send(rawHead(chatPath, [credential, ...headers]))
      connection.send(body)
      // The runtime refuses these itself, some without a word.
      const status = await connection.response().then(
        (response) => response.status,
        () => 0,
      )
      expect([0, 400]).toContain(status)
      await connection.closed
      expect(vendor.calls).toHaveLength(0)
    })
  }

  test("a request hidden in the body of another is body", async () => {
    const hidden = rawRequest(chatPath, [credential], typical)
    const body = Buffer.concat([Buffer.from('{"model":"unknown"}'), hidden])
    const response = await ask(body)
    expectRefused(response, 400, "invalid_json")
  })
})
