import { allScripts, type Script } from "./slots.lua.ts"

/** One connection. It is lost as a whole with the first call that fails: a call is rejected only by a lost link. */
export interface RedisLink {
  call(command: string, ...args: readonly (string | number)[]): Promise<unknown>
  run(script: Script, key: string, ...args: readonly (string | number)[]): Promise<unknown>
  readonly isOver: boolean
  close(): void
}

export interface LinkOptions {
  readonly url: string
  /** How long any call may take, the opening too. */
  readonly patienceMs: number
  /** Called once at the most: not for a link that never opened, and not after `close`. */
  onLost(error: unknown): void
}

export async function openLink({ url, patienceMs, onLost }: LinkOptions): Promise<RedisLink> {
  // Commands that waited for a connection would run long after whoever sent them has gone on without an answer.
  const client = new Bun.RedisClient(url, {
    autoReconnect: false,
    enableOfflineQueue: false,
    connectionTimeout: patienceMs,
  })
  let state: "opening" | "open" | "over" = "opening"
  const close = (): void => {
    state = "over"
    client.close()
  }
  const lose = (error: unknown): void => {
    if (state !== "open") return
    close()
    onLost(error)
  }
  client.onclose = lose

  const send = (command: string, args: readonly (string | number)[]): Promise<unknown> =>
    within(patienceMs, client.send(command, args.map(String)))
  const call = async (command: string, ...args: readonly (string | number)[]): Promise<unknown> => {
    try {
      return await send(command, args)
    } catch (error) {
      lose(error)
      throw error
    }
  }
  const run = async (script: Script, key: string, ...args: readonly (string | number)[]): Promise<unknown> => {
    try {
      return await send("EVALSHA", [script.sha, 1, key, ...args])
    } catch (error) {
      if (!lacksScript(error)) {
        lose(error)
        throw error
      }
      return call("EVAL", script.text, 1, key, ...args)
    }
  }

  try {
    const scripts = client.connect().then(() => allScripts.map(({ text }) => client.send("SCRIPT", ["LOAD", text])))
    await within(
      patienceMs,
      scripts.then((loading) => Promise.all(loading)),
    )
  } catch (error) {
    close()
    throw error
  }
  state = "open"
  return {
    call,
    run,
    close,
    get isOver() {
      return state === "over"
    },
  }
}

/** Scripts are gone after SCRIPT FLUSH, which leaves the connection as it is. */
function lacksScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT")
}

function within<T>(patienceMs: number, answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(new Error(`Redis did not answer within ${patienceMs} ms`))
    // In two halves, because a stall of this process uses up one of them only: Redis is not to blame for it.
    let timer = setTimeout(() => {
      timer = setTimeout(giveUp, patienceMs / 2)
    }, patienceMs / 2)
    answer.then(
      (value) => {
        clearTimeout(timer)
        resolve(value)
      },
      (error) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })
}
