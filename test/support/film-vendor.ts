import { createServer, type Socket } from "node:net"

/** Bytes that are nowhere the same for long. */
export function filmBytes(length: number): Uint8Array {
  const words = new Uint32Array(Math.ceil(length / 4)).map((_, at) => Math.imul(at + 1, 2654435761))
  return new Uint8Array(words.buffer, 0, length)
}

export interface FilmCall {
  readonly method: string
  readonly host: string
  readonly path: string
  readonly range: string | null
  readonly authorization: string | null
}

/** A vendor's store of films: each path answers in a way of its own. */
export interface FilmVendor {
  readonly port: number
  readonly calls: FilmCall[]
  /** How many blocks of the endless film were sent, and how many calls for it were left by the asker. */
  readonly endless: { blocks: number; left: number }
  stop(): Promise<void>
}

const block = new Uint8Array(256 * 1024)

export function startFilmVendor(film: Uint8Array, credential: string): FilmVendor {
  const calls: FilmCall[] = []
  const endless = { blocks: 0, left: 0 }
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      const { method, headers } = request
      const [host = "", range, authorization] = ["host", "range", "authorization"].map((name) => headers.get(name))
      calls.push({ method, host: host!.split(":")[0]!, path: pathname, range: range!, authorization: authorization! })
      if (pathname === "/closed" && authorization !== credential) return new Response("who are you", { status: 401 })
      if (pathname === "/signed-for-get" && method === "HEAD") return new Response(null, { status: 403 })
      if (pathname === "/status") return new Response("<Error/>", { status: Number(searchParams.get("code")) })
      if (pathname === "/away") return Response.redirect(searchParams.get("to")!, 302)
      if (pathname === "/page")
        return new Response("<script>alert(1)</script>", { headers: { "content-type": "text/html" } })
      if (pathname === "/packed") return packed(film)
      if (pathname === "/deaf") return new Response(film, { headers: { "content-type": "video/mp4" } })
      if (pathname === "/silent") return new Response(onePiece(), { headers: { "content-type": "video/mp4" } })
      if (pathname === "/never") return new Promise<Response>(() => {})
      if (pathname === "/endless")
        return new Response(withoutEnd(endless), { headers: { "content-type": "video/mp4" } })
      return part(film, range ?? null)
    },
  })
  return { port: server.port!, calls, endless, stop: () => server.stop(true) }
}

function part(film: Uint8Array, range: string | null): Response {
  const headers = {
    "content-type": "video/mp4",
    "accept-ranges": "bytes",
    etag: '"vendor-etag"',
    "last-modified": "Sun, 15 Nov 2026 00:00:00 GMT",
    "set-cookie": "a=b",
    "x-vendor-secret": "yes",
    "cache-control": "public",
  }
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(range ?? "") ?? []
  if (range === null) return new Response(film, { headers })
  const start = first === "" ? film.length - Number(last) : Number(first)
  const end = first === "" || last === "" ? film.length : Math.min(Number(last) + 1, film.length)
  if (start >= end)
    return new Response("<Error/>", { status: 416, headers: { ...headers, "content-range": `bytes */${film.length}` } })
  const about = { ...headers, "content-range": `bytes ${start}-${end - 1}/${film.length}` }
  return new Response(film.slice(start, end), { status: 206, headers: about })
}

function packed(film: Uint8Array): Response {
  const headers = { "content-type": "video/mp4", "content-encoding": "gzip", "accept-ranges": "bytes" }
  return new Response(Bun.gzipSync(new Uint8Array(film)), { headers })
}

function onePiece(): ReadableStream<Uint8Array> {
  return new ReadableStream({ start: (sink) => sink.enqueue(new Uint8Array(1000)) })
}

function withoutEnd(endless: { blocks: number; left: number }): ReadableStream<Uint8Array> {
  return new ReadableStream(
    {
      async pull(sink) {
        await Bun.sleep(0)
        endless.blocks++
        sink.enqueue(block)
      },
      cancel() {
        endless.left++
      },
    },
    { highWaterMark: 0 },
  )
}

/** A server that promises more bytes than it sends before it closes the connection. */
export async function startCutFilm(): Promise<{ readonly url: string; stop(): void }> {
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on("error", () => {})
    socket.once("data", () => {
      socket.end(`HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\ncontent-length: 100000\r\n\r\n${"x".repeat(30_000)}`)
    })
  })
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(0, "127.0.0.1", resolve)
  await promise
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/cut.mp4`,
    stop() {
      for (const socket of open) socket.destroy()
      server.close()
    },
  }
}
