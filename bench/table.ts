/** What one target cost over all rounds. */
export interface Result {
  readonly name: string
  readonly microsPerRequest: number
  readonly microsPerChunk: number
  readonly idleMegabytes: number
  readonly loadedMegabytes: number
}

const BUDGET = { perRequest: 6, perChunk: 2.5, idleMegabytes: 80, perCharged: 1.6, perBridgedChunk: 2.5 } as const

export interface Verdict {
  readonly line: string
  readonly over: boolean
}

export function renderTable(results: readonly Result[], floor: Result | undefined): string {
  const header = ["target", "CPU µs/request", "x nginx", "CPU µs/chunk", "x nginx", "idle MB", "loaded MB"]
  const rows = results.map((result) => [
    result.name,
    result.microsPerRequest.toFixed(1),
    ratio(result.microsPerRequest, floor?.microsPerRequest),
    result.microsPerChunk.toFixed(1),
    ratio(result.microsPerChunk, floor?.microsPerChunk),
    result.idleMegabytes.toFixed(0),
    result.loadedMegabytes.toFixed(0),
  ])
  const widths = header.map((title, column) =>
    Math.max(...[header, ...rows].map((row) => (row[column] ?? title).length)),
  )
  const line = (cells: readonly string[]) =>
    cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join("   ")
  return [line(header), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n")
}

function ratio(value: number, floor: number | undefined): string {
  return floor === undefined ? "-" : (value / floor).toFixed(2)
}

export function judge(product: Result, floor: Result | undefined): readonly Verdict[] {
  const times = (what: string, value: number, base: number | undefined, budget: number): Verdict => {
    if (base === undefined) return { line: `${what}: ${value.toFixed(1)} µs (no nginx in this run)`, over: false }
    return verdict(`${what}: ${(value / base).toFixed(1)}x nginx (budget ${budget.toFixed(1)}x)`, value / base > budget)
  }
  const { idleMegabytes } = product
  return [
    times("per request", product.microsPerRequest, floor?.microsPerRequest, BUDGET.perRequest),
    times("per chunk", product.microsPerChunk, floor?.microsPerChunk, BUDGET.perChunk),
    verdict(
      `idle memory: ${idleMegabytes.toFixed(0)} MB (budget ${BUDGET.idleMegabytes} MB)`,
      idleMegabytes > BUDGET.idleMegabytes,
    ),
  ]
}

/** What charging costs on one engine, beside the same request with billing off. */
export function judgeCharged(engine: string, times: number): Verdict {
  const text = `request with its charge, ${engine}: ${times.toFixed(2)}x billing off (budget ${BUDGET.perCharged}x)`
  return verdict(text, times > BUDGET.perCharged)
}

/** What a chunk costs that is translated, beside one that passes as it is. */
export function judgeBridged(times: number): Verdict {
  const text = `chunk over the messages bridge: ${times.toFixed(2)}x native (budget ${BUDGET.perBridgedChunk}x)`
  return verdict(text, times > BUDGET.perBridgedChunk)
}

/** The median, because noise goes both ways: a busy neighbour adds CPU, a saturated target saves wake-ups. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN
  return (lower + upper) / 2
}

function verdict(text: string, over: boolean): Verdict {
  return { line: `${text} ${over ? "OVER" : "ok"}`, over }
}
