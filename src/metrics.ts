/** Counters that only grow, for whoever collects them. */
export interface Metrics {
  /** Adds one to a counter; `labels` tell apart what is counted under one name. */
  count(name: CounterName, labels?: Readonly<Record<string, string>>): void
  /** All of them in the text format of Prometheus. */
  text(): string
}

const counters = {
  tollgate_requests_total: "Requests that have ended, by endpoint and ending.",
  tollgate_attempts_failed_total: "Asks to an upstream that gave no answer, by upstream and cause.",
  tollgate_circuit_changes_total: "Changes of an upstream's circuit, by upstream and new state.",
  tollgate_database_away_total: "Times the database was found away.",
  tollgate_limits_degraded_total: "Times that limits fell back to this instance's own share because Redis was away.",
  tollgate_journal_total: "Times that charges went to the local journal because the database was away.",
  tollgate_charges_stuck_total: "Times that charges could be kept nowhere.",
  tollgate_charges_unposted_total: "Charges that were set aside and need a person.",
  tollgate_jobs_total: "Video jobs that reached their verdict, by vendor and state.",
  tollgate_job_odd_status_total: "Status words of video jobs that nobody knows, by vendor; the words are in the log.",
  tollgate_internal_errors_total: "Faults of the gateway itself.",
} as const

export type CounterName = keyof typeof counters

export function openMetrics(): Metrics {
  const values = new Map<CounterName, Map<string, number>>()
  return {
    count(name, labels = {}) {
      const series = values.get(name) ?? new Map<string, number>()
      const key = labelText(labels)
      series.set(key, (series.get(key) ?? 0) + 1)
      values.set(name, series)
    },
    text() {
      const lines: string[] = []
      for (const name of Object.keys(counters) as CounterName[]) {
        lines.push(`# HELP ${name} ${counters[name]}`, `# TYPE ${name} counter`)
        for (const [labels, value] of values.get(name) ?? []) lines.push(`${name}${labels} ${value}`)
      }
      return `${lines.join("\n")}\n`
    },
  }
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")
}
