import { describe, expect, test } from "bun:test"
import { BadRequest, maxHeadBytes, RequestParser, type RequestPart } from "./request-parser.ts"

function partsOf(...pieces: readonly (string | Uint8Array)[]): RequestPart[] {
  const parser = new RequestParser()
  const parts: RequestPart[] = []
  for (const piece of pieces) {
    parser.feed(typeof piece === "string" ? Buffer.from(piece, "latin1") : piece)
    for (let part = parser.next(); part !== null; part = parser.next()) parts.push(part)
  }
  return parts
}

/** Requests in one word each: `METHOD target:body`. */
function summary(parts: readonly RequestPart[]): string[] {
  const requests: string[] = []
  for (const part of parts) {
    if (part.kind === "head") requests.push(`${part.head.method} ${part.head.target}:`)
    else if (part.kind === "body") requests.push(requests.pop() + Buffer.from(part.bytes).toString("latin1"))
    else requests.push(`${requests.pop()};`)
  }
  return requests
}

function refusal(request: string): { status: number; message: string } {
  try {
    partsOf(request)
  } catch (error) {
    if (error instanceof BadRequest) return { status: error.status, message: error.message }
  }
  throw new Error("was not refused")
}

const chunkedRequest =
  "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;ext=1\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"

describe("requests that are read", () => {
  test("headers keep their order, case and repetitions", () => {
    const [head] = partsOf("GET /a?b=c HTTP/1.1\r\nhOsT: x\r\nX-B: 1\r\nx-a:  two words \r\nX-B: 3\r\n\r\n")
    expect(head?.kind === "head" && head.head.headers).toEqual([
      ["hOsT", "x"],
      ["X-B", "1"],
      ["x-a", "two words"],
      ["X-B", "3"],
    ])
  })

  test("pipelined requests of every framing come out whole, wherever the bytes are cut", () => {
    const all = Buffer.from(
      `POST /l HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello${chunkedRequest}GET /g HTTP/1.1\r\nHost: x\r\n\r\n`,
    )
    const expected = ["POST /l:hello;", "POST /c:abc0123456789;", "GET /g:;"]
    for (let cut = 0; cut <= all.length; cut++) {
      expect(summary(partsOf(all.subarray(0, cut), all.subarray(cut)))).toEqual(expected)
    }
    expect(summary(partsOf(...Array.from(all, (byte) => Uint8Array.of(byte))))).toEqual(expected)
  })

  test("connection: close and expect: 100-continue are seen in any case", () => {
    const [part] = partsOf("GET / HTTP/1.1\r\nHost: x\r\nConnection: foo, Close\r\nExpect: 100-Continue\r\n\r\n")
    expect(part?.kind === "head" && part.head).toMatchObject({ keepAlive: false, expectsContinue: true })
  })
})

describe("requests that are refused, with the reason", () => {
  const host = "Host: x\r\n"
  const cases: [string, string, number, string][] = [
    ["no request line", "hello\r\n\r\n", 400, "request line"],
    ["another version", `GET / HTTP/1.0\r\n${host}\r\n`, 505, "HTTP/1.0"],
    ["an absolute target", `GET http://x/ HTTP/1.1\r\n${host}\r\n`, 400, "target"],
    ["no host", "GET / HTTP/1.1\r\n\r\n", 400, "host"],
    ["two hosts", `GET / HTTP/1.1\r\n${host}${host}\r\n`, 400, "host"],
    ["space before the colon", `GET / HTTP/1.1\r\n${host}a : b\r\n\r\n`, 400, "header line"],
    ["a folded header", `GET / HTTP/1.1\r\n${host}a: b\r\n c\r\n\r\n`, 400, "header line"],
    ["a bare LF in a header", `GET / HTTP/1.1\r\n${host}a: b\nc: d\r\n\r\n`, 400, "header line"],
    [
      "length and chunked",
      `POST / HTTP/1.1\r\n${host}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
      400,
      "together",
    ],
    ["two lengths", `POST / HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 1\r\n\r\n`, 400, "more than once"],
    ["a negative length", `POST / HTTP/1.1\r\n${host}Content-Length: -1\r\n\r\n`, 400, "not a number"],
    ["a length past the limit", `POST / HTTP/1.1\r\n${host}Content-Length: 99999999999\r\n\r\n`, 413, "longer"],
    ["another coding", `POST / HTTP/1.1\r\n${host}Transfer-Encoding: gzip\r\n\r\n`, 501, "chunked"],
    ["a chunk size that is none", `${chunkedRequest.split("3;")[0]}xyz\r\n`, 400, "hexadecimal"],
    ["a chunk longer than its size", `${chunkedRequest.split("3;")[0]}1\r\nabc\r\n`, 400, "chunk"],
    ["an endless head", `GET / HTTP/1.1\r\na: ${"b".repeat(maxHeadBytes)}`, 431, "longer"],
  ]
  test.each(cases)("%s", (_, request, status, reason) => {
    const { status: got, message } = refusal(request)
    expect(got).toBe(status)
    expect(message).toContain(reason)
  })
})
