import { createHash, createHmac, timingSafeEqual } from "node:crypto"

export interface S3Keys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
  readonly bucket: string
}

interface Stored {
  readonly bytes: Buffer
  readonly type: string
  readonly modified: Date
}

interface Upload {
  readonly key: string
  readonly type: string
  readonly parts: Map<number, Buffer>
}

/** A small server that speaks the protocol of Amazon S3, and serves nobody whose signature is not right. */
export interface S3Server {
  readonly url: string
  readonly objects: Map<string, Stored>
  /** Uploads in parts that were neither completed nor given up. */
  readonly uploads: Map<string, Upload>
  /** What was asked, as `METHOD /path?query`, with the part of the file where one was. */
  readonly asked: string[]
  /** Answers this many of the next calls with 500. */
  failNext(calls: number): void
  stop(): Promise<void>
}

export function startS3(keys: S3Keys): S3Server {
  const objects = new Map<string, Stored>()
  const uploads = new Map<string, Upload>()
  const asked: string[] = []
  let failing = 0
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const url = new URL(request.url)
      asked.push([request.method, url.pathname + url.search, request.headers.get("range") ?? ""].join(" ").trim())
      const body = Buffer.from(await request.arrayBuffer())
      if (failing > 0) {
        failing--
        return trouble(500, "InternalError")
      }
      const refusal = signatureProblem(request, body, keys)
      if (refusal !== null) return trouble(403, refusal)
      const [, bucket, ...rest] = url.pathname.split("/")
      if (bucket !== keys.bucket) return trouble(404, "NoSuchBucket")
      return answer(request, {
        key: decodeURIComponent(rest.join("/")),
        query: url.searchParams,
        body,
        objects,
        uploads,
      })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    objects,
    uploads,
    asked,
    failNext: (calls) => {
      failing = calls
    },
    stop: () => server.stop(true),
  }
}

interface Ask extends Pick<S3Server, "objects" | "uploads"> {
  readonly key: string
  readonly query: URLSearchParams
  readonly body: Buffer
}

function answer(request: Request, ask: Ask): Response {
  const uploadId = ask.query.get("uploadId")
  if (request.method === "POST" && ask.query.has("uploads")) return beginUpload(request, ask)
  if (uploadId !== null) return partOfUpload(request.method, uploadId, ask)
  if (request.method === "PUT") {
    const type = request.headers.get("content-type") ?? "binary/octet-stream"
    ask.objects.set(ask.key, { bytes: ask.body, type, modified: new Date() })
    return new Response(null, { headers: { etag: etagOf(ask.body) } })
  }
  if (request.method === "DELETE") {
    ask.objects.delete(ask.key)
    return new Response(null, { status: 204 })
  }
  const stored = ask.objects.get(ask.key)
  return stored === undefined ? trouble(404, "NoSuchKey") : give(request, stored)
}

function beginUpload(request: Request, { key, uploads }: Ask): Response {
  const id = `upload-${crypto.randomUUID()}`
  uploads.set(id, { key, type: request.headers.get("content-type") ?? "binary/octet-stream", parts: new Map() })
  return xml(`<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`)
}

function partOfUpload(method: string, id: string, { query, body, objects, uploads }: Ask): Response {
  const upload = uploads.get(id)
  if (upload === undefined) return trouble(404, "NoSuchUpload")
  if (method === "PUT") {
    upload.parts.set(Number(query.get("partNumber")), body)
    return new Response(null, { headers: { etag: etagOf(body) } })
  }
  uploads.delete(id)
  if (method === "DELETE") return new Response(null, { status: 204 })
  const listed = [...body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber>\s*<ETag>(.*?)<\/ETag>/g)]
  const parts = listed.map(([, number]) => upload.parts.get(Number(number)))
  const isRight = listed.every(([, , etag], at) => parts[at] !== undefined && etagOf(parts[at]) === unescaped(etag!))
  const isLong = parts.slice(0, -1).every((part) => (part?.length ?? 0) >= 5 * 1024 * 1024)
  if (listed.length === 0 || !isRight) return trouble(400, "InvalidPart")
  if (!isLong) return trouble(400, "EntityTooSmall")
  const bytes = Buffer.concat(parts.filter((part) => part !== undefined))
  objects.set(upload.key, { bytes, type: upload.type, modified: new Date() })
  return xml(`<CompleteMultipartUploadResult><ETag>${etagOf(bytes)}</ETag></CompleteMultipartUploadResult>`)
}

function give(request: Request, { bytes, type, modified }: Stored): Response {
  const always = { "content-type": type, etag: etagOf(bytes), "last-modified": modified.toUTCString() }
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.get("range") ?? "")
  if (request.method === "HEAD")
    return new Response(null, { headers: { ...always, "content-length": String(bytes.length) } })
  if (range === null) return new Response(new Uint8Array(bytes), { headers: always })
  const [start, end] = [Number(range[1]), range[2] === "" ? bytes.length - 1 : Number(range[2])]
  if (start >= bytes.length) return trouble(416, "InvalidRange")
  const headers = { ...always, "content-range": `bytes ${start}-${Math.min(end, bytes.length - 1)}/${bytes.length}` }
  return new Response(new Uint8Array(bytes.subarray(start, end + 1)), { status: 206, headers })
}

function xml(text: string, status = 200): Response {
  return new Response(`<?xml version="1.0" encoding="UTF-8"?>${text}`, {
    status,
    headers: { "content-type": "application/xml" },
  })
}

function trouble(status: number, code: string): Response {
  return xml(`<Error><Code>${code}</Code><Message>${code}</Message></Error>`, status)
}

function etagOf(bytes: Uint8Array): string {
  return `"${createHash("md5").update(bytes).digest("hex")}"`
}

function unescaped(text: string): string {
  return text.replaceAll("&quot;", '"').replaceAll("&#34;", '"')
}

/** How far a call's time may be off. */
const mostSkewMs = 15 * 60 * 1000
const scheme =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/

/** Why a call is not served, by AWS Signature Version 4; null where its signature is right. */
function signatureProblem(request: Request, body: Buffer, keys: S3Keys): string | null {
  const [, keyId, day, region, names = "", signature = ""] =
    scheme.exec(request.headers.get("authorization") ?? "") ?? []
  const time = request.headers.get("x-amz-date") ?? ""
  const digest = request.headers.get("x-amz-content-sha256") ?? ""
  if (keyId !== keys.accessKeyId) return "InvalidAccessKeyId"
  if (region !== keys.region || day !== time.slice(0, 8)) return "AuthorizationHeaderMalformed"
  if (Math.abs(Date.now() - timeOf(time)) > mostSkewMs) return "RequestTimeTooSkewed"
  if (digest !== "UNSIGNED-PAYLOAD" && digest !== sha256(body)) return "XAmzContentSHA256Mismatch"
  const signed = names.split(";")
  if (!["host", "x-amz-content-sha256", "x-amz-date"].every((name) => signed.includes(name))) return "AccessDenied"
  const canonical = sha256(canonicalRequest(request, signed, digest))
  const text = ["AWS4-HMAC-SHA256", time, `${day}/${region}/s3/aws4_request`, canonical].join("\n")
  const key = [day!, region!, "s3", "aws4_request"].reduce<string | Buffer>(hmac, `AWS4${keys.secretAccessKey}`)
  const isRight = timingSafeEqual(hmac(key, text), Buffer.from(signature, "hex"))
  return isRight ? null : "SignatureDoesNotMatch"
}

function canonicalRequest(request: Request, signed: readonly string[], digest: string): string {
  const { pathname, searchParams } = new URL(request.url)
  const query = [...searchParams]
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .sort()
    .join("&")
  const headers = signed.map((name) => `${name}:${(request.headers.get(name) ?? "").trim()}\n`).join("")
  return [request.method, pathname, query, headers, signed.join(";"), digest].join("\n")
}

function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}

function timeOf(stamp: string): number {
  return Date.parse(stamp.replace(/^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z$/, "$1-$2-$3T$4:$5:$6Z"))
}

function sha256(data: string | Buffer): string {
  return createHash("sha256").update(data).digest("hex")
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest()
}
