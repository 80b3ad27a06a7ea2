import { controlPrefix, receiveControl } from "./control.ts"
import { type Accept, Session, type SessionOptions } from "./session.ts"
import { createVendor, type SimulatedVendor, type VendorState } from "./vendor.ts"
import { receiveCall } from "./vendor-call.ts"
import { Connection } from "./wire/connection.ts"
import { BadRequest } from "./wire/request-parser.ts"

/** Vendors' wire protocols on a real socket, which can be told to misbehave. */
export interface Simulator {
  /** `http://HOST:PORT` */
  readonly url: string
  readonly port: number
  /** Requests that were not HTTP/1.1, and defects of the simulator itself; a healthy run has none. */
  readonly complaints: readonly string[]
  /** One named vendor, made when first named, here or in a request. */
  vendor(name: string): SimulatedVendor
  /** TCP connections that are open now. */
  openConnections(): number
  /** Ends every connection at once; from then on connecting is refused. */
  stop(): Promise<void>
}

export interface SimulatorOptions {
  /** 0, or none: a free one. */
  readonly port?: number
  readonly host?: string
  /** Closes keep-alive connections that were idle for so long; never otherwise. */
  readonly idleCloseMs?: number
}

const maxComplaints = 100
const vendorName = /^[\w.-]+$/

export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const host = options.host ?? "127.0.0.1"
  const complaints: string[] = []
  const sessions = new Set<Session>()
  const vendors = new Map<string, VendorState>()
  const sessionOptions: SessionOptions = {
    accept: acceptInto(vendorOf),
    complain: (problem) => void (complaints.length < maxComplaints && complaints.push(problem)),
    ...(options.idleCloseMs === undefined ? {} : { idleCloseMs: options.idleCloseMs }),
  }
  const listener = listen(host, options.port ?? 0, sessions, sessionOptions)
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${listener.port}`

  function vendorOf(name: string): VendorState {
    if (!vendorName.test(name))
      throw new TypeError(`vendor name ${JSON.stringify(name)} has characters beside a-z 0-9 . _ -`)
    const known = vendors.get(name) ?? createVendor(name, url)
    vendors.set(name, known)
    return known
  }

  return {
    url,
    port: listener.port,
    complaints,
    vendor: vendorOf,
    openConnections: () => sessions.size,
    async stop() {
      for (const { connection } of [...sessions]) connection.fin()
      listener.stop(true)
      // The calls that were open settle before their owner looks at them.
      await new Promise<void>((resolve) => setImmediate(resolve))
    },
  }
}

function listen(
  host: string,
  port: number,
  sessions: Set<Session>,
  options: SessionOptions,
): Bun.TCPSocketListener<Session> {
  return Bun.listen<Session>({
    hostname: host,
    port,
    socket: {
      open(socket) {
        socket.data = new Session(new Connection(socket), options)
        sessions.add(socket.data)
      },
      data: (socket, bytes) => socket.data.onData(bytes),
      drain: (socket) => socket.data.connection.onDrain(),
      // A peer that ends its side has left, as far as HTTP clients go; Bun closes the socket by itself then.
      close(socket) {
        sessions.delete(socket.data)
        socket.data.onClose()
      },
      error: (socket) => socket.data.connection.reset(),
    },
  })
}

function acceptInto(vendorOf: (name: string) => VendorState): Accept {
  return (head, connection, requestNumber) => {
    if (head.target.startsWith(controlPrefix)) return receiveControl(vendorOf, head, connection)
    const name = head.target.split(/[/?]/, 2)[1] ?? ""
    if (!vendorName.test(name)) throw new BadRequest(404, `the path ${head.target} does not start with a vendor's name`)
    return receiveCall(vendorOf(name), head, connection, requestNumber)
  }
}
