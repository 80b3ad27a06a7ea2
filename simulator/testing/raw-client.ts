import { connect, type Socket } from "node:net"

/** A client that shows exactly what arrives: each read on its own, and how the connection ended. */
export interface RawClient {
  /** Every read, in order; two writes that arrived apart are two reads. */
  readonly reads: readonly Buffer[]
  readonly socket: Socket
  text(): string
  /** `end` for a FIN, an error code such as `ECONNRESET`; pending while the connection is open. */
  readonly ended: Promise<string>
  send(bytes: string | Uint8Array): void
  /** Resolves once what has arrived holds the text. */
  until(text: string): Promise<void>
  /** Leaves, by FIN or RST. */
  leave(how?: "fin" | "rst"): void
}

export async function rawClient(port: number): Promise<RawClient> {
  const reads: Buffer[] = []
  const socket = connect({ port, host: "127.0.0.1", noDelay: true })
  const text = (): string => Buffer.concat(reads).toString("latin1")
  socket.on("data", (bytes: Buffer) => reads.push(bytes))
  const ended = new Promise<string>((resolve) => {
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    socket.once("end", () => resolve("end"))
    socket.once("close", () => resolve("close"))
  })
  await new Promise<void>((resolve) => socket.once("connect", resolve))
  return {
    reads,
    socket,
    text,
    ended,
    send: (bytes) => void socket.write(bytes),
    until: (wanted) => eventually(() => text().includes(wanted)),
    leave: (how = "fin") => void (how === "fin" ? socket.destroy() : socket.resetAndDestroy()),
  }
}

const pollMs = 2
const patienceMs = 5000

/** Waits for something that has no event of its own; fails if it never comes. */
export async function eventually(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + patienceMs
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`still not so after ${patienceMs} ms: ${condition}`)
    await Bun.sleep(pollMs)
  }
}

/** The bytes of a POST. */
export function post(path: string, body: string, headers = ""): string {
  return `POST ${path} HTTP/1.1\r\nHost: sim\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

/** A chat request's body. */
export function chatBody(extra: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ model: "sim-large", messages: [{ role: "user", content: "Say hello" }], ...extra })
}
