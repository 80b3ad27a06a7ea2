/** A way to a local port that can be blocked: what is sent then is lost, while connections look open. */
export interface Way {
  readonly url: string
  block(): void
  clear(): void
  close(): void
}

interface Pair {
  readonly target: Promise<Bun.Socket<undefined>>
}

export async function openWay(port: number): Promise<Way> {
  let blocked = false
  const listener = Bun.listen<Pair>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(client) {
        const target = Bun.connect<undefined>({
          hostname: "127.0.0.1",
          port,
          socket: {
            data: (_, bytes) => void (blocked || client.write(bytes)),
            close: () => void client.end(),
          },
        })
        client.data = { target }
      },
      async data({ data }, bytes) {
        const kept = Uint8Array.from(bytes)
        if (!blocked) (await data.target).write(kept)
      },
      async close({ data }) {
        ;(await data.target).end()
      },
    },
  })
  return {
    url: `redis://127.0.0.1:${listener.port}`,
    block() {
      blocked = true
    },
    clear() {
      blocked = false
    },
    close: () => listener.stop(true),
  }
}
