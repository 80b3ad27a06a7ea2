/** An answer that is not the one the upstream gave: the bench fails with this text. */
export class WrongAnswer extends Error {}

const HEAD_END = Buffer.from("\r\n\r\n")
const LINE_FEED = 10
const EXCERPT = 200
/** Stands in the expected bytes where any byte is right, such as in an id made for the answer; UTF-8 never has it. */
export const ANY_BYTE = 0xff

type Part = "head" | "body" | "chunk-size" | "chunk-data" | "chunk-end" | "trailer" | "done"

/**
 * Reads one HTTP/1.1 answer as it arrives and compares its body with the expected bytes on the way, so that checking
 * every answer costs the load generator next to nothing and streams are never collected.
 */
export class AnswerReader {
  readonly #expected: Buffer
  #part: Part = "head"
  #head: Buffer = Buffer.alloc(0)
  #seen = 0
  #left = 0
  #line = ""

  constructor(expected: Buffer) {
    this.#expected = expected
  }

  /** True as soon as the answer is complete and right; then the reader is ready for the next one. */
  feed(bytes: Buffer): boolean {
    let rest = this.#part === "head" ? this.#readHead(bytes) : bytes
    while (rest.length > 0 && this.#part !== "done" && this.#part !== "head") rest = this.#step(rest)
    if (this.#part !== "done") return false
    if (rest.length > 0) throw new WrongAnswer(`${rest.length} bytes came after the end of the answer`)
    if (this.#seen !== this.#expected.length) {
      throw new WrongAnswer(`the body ended after ${this.#seen} of ${this.#expected.length} bytes`)
    }
    this.#part = "head"
    this.#head = Buffer.alloc(0)
    this.#seen = 0
    return true
  }

  #readHead(bytes: Buffer): Buffer {
    const all = this.#head.length === 0 ? bytes : Buffer.concat([this.#head, bytes])
    const end = all.indexOf(HEAD_END)
    if (end < 0) {
      this.#head = Buffer.from(all)
      return Buffer.alloc(0)
    }
    const head = all.toString("latin1", 0, end + 2)
    const rest = all.subarray(end + HEAD_END.length)
    if (!head.startsWith("HTTP/1.1 200 ")) {
      throw new WrongAnswer(`"${head.slice(0, head.indexOf("\r\n"))}" ${rest.toString("utf8", 0, EXCERPT)}`)
    }
    const length = head.match(/\r\ncontent-length: *(\d+)\r\n/i)
    if (length) {
      this.#left = Number(length[1])
      this.#part = this.#left === 0 ? "done" : "body"
    } else if (/\r\ntransfer-encoding: *chunked\r\n/i.test(head)) {
      this.#part = "chunk-size"
    } else {
      throw new WrongAnswer("the answer has neither content-length nor chunked transfer-encoding")
    }
    return rest
  }

  /** Takes what belongs to the current part and returns the remainder. */
  #step(bytes: Buffer): Buffer {
    switch (this.#part) {
      case "body":
        return this.#takeBody(bytes, "done")
      case "chunk-data":
        return this.#takeBody(bytes, "chunk-end")
      case "chunk-size":
        return this.#takeLine(bytes, (line) => {
          this.#left = Number.parseInt(line, 16)
          if (Number.isNaN(this.#left)) throw new WrongAnswer(`"${line}" is not a chunk size`)
          this.#part = this.#left === 0 ? "trailer" : "chunk-data"
        })
      case "chunk-end":
        return this.#takeLine(bytes, (line) => {
          if (line !== "") throw new WrongAnswer("a chunk is longer than it says")
          this.#part = "chunk-size"
        })
      default:
        return this.#takeLine(bytes, (line) => {
          if (line === "") this.#part = "done"
        })
    }
  }

  #takeBody(bytes: Buffer, next: Part): Buffer {
    const piece = bytes.length <= this.#left ? bytes : bytes.subarray(0, this.#left)
    const wanted = this.#expected.subarray(this.#seen, this.#seen + piece.length)
    const same = piece.equals(wanted) ? -1 : piece.findIndex((byte, i) => byte !== wanted[i] && wanted[i] !== ANY_BYTE)
    if (same >= 0) {
      const got = piece.toString("utf8", same, same + EXCERPT)
      throw new WrongAnswer(`the body differs after ${this.#seen + same} bytes, where it goes on: ${got}`)
    }
    this.#seen += piece.length
    this.#left -= piece.length
    if (this.#left === 0) this.#part = next
    return bytes.subarray(piece.length)
  }

  #takeLine(bytes: Buffer, use: (line: string) => void): Buffer {
    const end = bytes.indexOf(LINE_FEED)
    this.#line += bytes.toString("latin1", 0, end < 0 ? bytes.length : end)
    if (end < 0) return Buffer.alloc(0)
    const line = this.#line.endsWith("\r") ? this.#line.slice(0, -1) : this.#line
    this.#line = ""
    use(line)
    return bytes.subarray(end + 1)
  }
}
