const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
type Unit = keyof typeof units

const pattern = /^(\d{1,15})(ms|s|m|h|d)$/

/** Milliseconds of a text such as `60s`, `500ms`, `30m`, `2h` or `90d`; null for anything else, a number without a unit included. */
export function parseDuration(text: string): number | null {
  const match = pattern.exec(text)
  if (match === null) return null
  return Number(match[1]) * units[match[2] as Unit]
}

/** The shortest text that `parseDuration` reads as exactly these milliseconds. */
export function formatDuration(ms: number): string {
  for (const unit of ["d", "h", "m", "s"] as const) {
    if (ms !== 0 && ms % units[unit] === 0) return `${ms / units[unit]}${unit}`
  }
  return `${ms}ms`
}
