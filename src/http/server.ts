import type { Server } from "bun"

/** Above every body limit of ours, so that our own 413 answers and not the runtime's. */
const mostBodyBytes = 1024 * 1024 * 1024

export interface Listening {
  readonly url: string
  readonly port: number
  /** Stops listening and lets what is in flight finish; `now` cuts it. */
  stop(now?: boolean): Promise<void>
}

export function listen(
  host: string,
  port: number,
  handle: (request: Request) => Response | Promise<Response>,
): Listening {
  const server: Server<undefined> = Bun.serve({
    hostname: host,
    port,
    // Quiet streams are legal for minutes; our own watchdogs end what should end.
    idleTimeout: 0,
    maxRequestBodySize: mostBodyBytes,
    // Otherwise the runtime prints an excerpt of our source for every answer that is broken off on purpose.
    development: false,
    fetch: handle,
    error: () =>
      new Response('{"error":{"type":"api_error","code":"internal_error","message":"internal error"}}', {
        status: 500,
      }),
  })
  const bound = server.port ?? port
  const shown = host.includes(":") ? `[${host}]` : host
  return { url: `http://${shown}:${bound}`, port: bound, stop: (now = false) => server.stop(now) }
}
