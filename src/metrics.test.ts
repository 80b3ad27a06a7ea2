import { expect, test } from "bun:test"
import { openMetrics } from "./metrics.ts"

test("what was counted is told by name and labels, with what it means", () => {
  const metrics = openMetrics()
  metrics.count("tollgate_job_odd_status_total", { vendor: "kling" })
  metrics.count("tollgate_job_odd_status_total", { vendor: "kling" })
  metrics.count("tollgate_job_odd_status_total", { vendor: 'a "b"\\c\n' })
  metrics.count("tollgate_database_away_total")
  const lines = metrics.text().split("\n")
  expect(lines).toContain('tollgate_job_odd_status_total{vendor="kling"} 2')
  expect(lines).toContain('tollgate_job_odd_status_total{vendor="a \\"b\\"\\\\c\\n"} 1')
  expect(lines).toContain("tollgate_database_away_total 1")
  expect(lines).toContain("# TYPE tollgate_job_odd_status_total counter")
  expect(metrics.text()).toEndWith("\n")
})

test("a counter that nobody has counted is described, without a value", () => {
  expect(openMetrics().text()).not.toMatch(/^tollgate_/m)
  expect(openMetrics().text()).toContain("# HELP tollgate_requests_total ")
})
