/** The second reference: what Bun itself costs. Passes bytes and does no work; `bun bench/bare-proxy.ts UPSTREAM`. */

const origin = process.argv[2]
if (origin === undefined) throw new Error("usage: bun bench/bare-proxy.ts http://UPSTREAM:PORT")

function passChunks(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel: (reason) => reader.cancel(reason),
  })
}

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  async fetch(request) {
    const path = request.url.slice(request.url.indexOf("/", "http://".length))
    const answer = await fetch(origin + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: await request.arrayBuffer(),
      decompress: false,
    })
    const type = answer.headers.get("content-type") ?? ""
    const streaming = type.startsWith("text/event-stream") && answer.body !== null
    const body = streaming ? passChunks(answer.body) : await answer.arrayBuffer()
    return new Response(body, { status: answer.status, headers: { "content-type": type } })
  },
})
console.log(`listening on http://${server.hostname}:${server.port}`)
