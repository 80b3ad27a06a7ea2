import type { Socket } from "bun"

/** One caller of many: cheap, so that a thousand of them leave the machine to the gateway. */
export interface Caller {
  /** What has arrived so far, head included. */
  text(): string
  readonly closed: boolean
  /** Leaves by closing the connection. */
  leave(): void
}

interface State {
  text: string
  closed: boolean
}

/** Opens a connection and sends a request on it. */
export async function call(port: number, request: string): Promise<Caller> {
  const state: State = { text: "", closed: false }
  const over = (): void => {
    state.closed = true
  }
  const socket: Socket<undefined> = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      open: (opened) => void opened.write(request),
      data(_, bytes) {
        state.text += bytes.toString("latin1")
      },
      close: over,
      error: over,
    },
  })
  return {
    text: () => state.text,
    get closed() {
      return state.closed
    },
    leave: () => socket.terminate(),
  }
}

/** Several at once, a few at a time, so that no connection is dropped by a full queue of the listener. */
export async function callMany(count: number, port: number, request: string): Promise<Caller[]> {
  const atOnce = 100
  const callers: Caller[] = []
  while (callers.length < count) {
    const size = Math.min(atOnce, count - callers.length)
    callers.push(...(await Promise.all(Array.from({ length: size }, () => call(port, request)))))
  }
  return callers
}
