/** Waits, but not beyond the moment a signal fires: whoever was waited for is gone then. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  const wake = (): void => resolve()
  signal.addEventListener("abort", wake)
  if (!signal.aborted) await promise
  clearTimeout(timer)
  signal.removeEventListener("abort", wake)
}
