import { type HeaderPair, valuesOf } from "../wire/request-parser.ts"

/** A file that came in a form. */
export interface Upload {
  /** Of its part. */
  readonly name: string
  readonly fileName: string
  readonly contentType: string
  readonly bytes: Uint8Array
}

export interface Form {
  /** The last value of each name. */
  readonly fields: ReadonlyMap<string, string>
  readonly files: readonly Upload[]
}

const headEnd = Buffer.from("\r\n\r\n")

/** Reads a form, or says what a vendor would not like about it. */
export function readForm(headers: readonly HeaderPair[], body: Uint8Array): Form | { readonly problem: string } {
  const [contentType = ""] = valuesOf(headers, "content-type")
  const [, quoted, bare] = /^multipart\/form-data\s*;.*?\bboundary=(?:"([^"]+)"|([^\s;]+))/i.exec(contentType) ?? []
  const boundary = quoted ?? bare
  if (boundary === undefined)
    return { problem: `content-type ${JSON.stringify(contentType)} is no form with a boundary` }
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const fields = new Map<string, string>()
  const files: Upload[] = []
  for (const part of partsOf(bytes, boundary) ?? [null]) {
    const read = part === null ? null : readPart(part)
    if (read === null) return { problem: "Could not parse multipart form" }
    if (typeof read.value === "string") fields.set(read.name, read.value)
    else files.push(read.value)
  }
  return { fields, files }
}

/** What stands between the delimiters, or null where they are not what they have to be. */
function partsOf(bytes: Buffer, boundary: string): Buffer[] | null {
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  const opening = bytes.subarray(0, delimiter.length - 2).equals(delimiter.subarray(2)) ? -2 : bytes.indexOf(delimiter)
  const parts: Buffer[] = []
  for (let at = opening; ; ) {
    if (at === -1) return null
    const start = at + delimiter.length
    const next = bytes.toString("latin1", start, start + 2)
    if (next === "--") return parts
    const end = bytes.indexOf(delimiter, start)
    if (next !== "\r\n" || end === -1) return null
    parts.push(bytes.subarray(start + 2, end))
    at = end
  }
}

function readPart(part: Buffer): { readonly name: string; readonly value: string | Upload } | null {
  const end = part.indexOf(headEnd)
  if (end === -1) return null
  const head = part.toString("utf8", 0, end)
  const disposition = /^content-disposition:\s*form-data(.*)$/im.exec(head)?.[1] ?? ""
  const name = parameter(disposition, "name")
  if (name === undefined) return null
  const bytes = part.subarray(end + headEnd.length)
  const fileName = parameter(disposition, "filename")
  if (fileName === undefined) return { name, value: bytes.toString("utf8") }
  const contentType = /^content-type:\s*(.*?)\s*$/im.exec(head)?.[1] ?? "application/octet-stream"
  return { name, value: { name, fileName, contentType, bytes } }
}

function parameter(disposition: string, name: string): string | undefined {
  const [, quoted, bare] =
    new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;]+))`, "i").exec(disposition) ?? []
  return quoted?.replaceAll(/\\(.)/g, "$1") ?? bare
}
