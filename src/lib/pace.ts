/** How many bytes may be worked on before others get their turn: a few milliseconds' worth. */
const bytesPerTurn = 512 * 1024

let spent = 0
let turn: Promise<void> | null = null

/**
 * Shares the event loop between large bodies and everything else: after work on so many bytes, whoever asks waits for the
 * next turn of the loop. One count for the whole process, because they all work on the same thread.
 */
export function paced(bytes: number): Promise<void> | null {
  spent += bytes
  if (spent < bytesPerTurn) return null
  turn ??= new Promise((resolve) => {
    setImmediate(() => {
      spent = 0
      turn = null
      resolve()
    })
  })
  return turn
}
