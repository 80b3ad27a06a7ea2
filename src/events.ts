import type { Events } from "./core/events.ts"
import type { Log } from "./log.ts"
import type { Metrics } from "./metrics.ts"

/** Each event as a log record and a count. */
export function tellEvents(log: Log, metrics: Metrics): Events {
  return {
    attemptFailed(story, attempt) {
      metrics.count("tollgate_attempts_failed_total", { upstream: attempt.upstream, cause: attempt.outcome })
      log.warn({ request: story.requestId, model: story.model, ...attempt }, "attempt failed")
    },
    requestEnded(story) {
      metrics.count("tollgate_requests_total", { endpoint: story.endpoint, ending: story.ending ?? "" })
      log.debug(story, "request ended")
    },
    circuitChanged(upstream, state) {
      metrics.count("tollgate_circuit_changes_total", { upstream, state })
      log.warn({ upstream, state }, "circuit changed")
    },
    catalogLoaded: (version) => log.info({ version }, "catalog loaded"),
    catalogRejected: (version, problems) =>
      log.error({ version, problems }, "catalog not usable, keeping the last good one"),
    databaseAway(error) {
      metrics.count("tollgate_database_away_total")
      log.error({ error: messageOf(error) }, "database away")
    },
    databaseBack: () => log.info("database back"),
    limitsDegraded(away, why) {
      if (!away) return log.info("Redis back")
      metrics.count("tollgate_limits_degraded_total")
      log.error({ why }, "Redis away: this instance keeps to its own share of each limit")
    },
    journaling(active, why) {
      if (!active) return log.info("the journal is empty again")
      metrics.count("tollgate_journal_total")
      log.error({ why }, "charges go to the journal")
    },
    chargesStuck(stuck, why) {
      if (!stuck) return log.info("charges can be kept again")
      metrics.count("tollgate_charges_stuck_total")
      log.fatal({ why }, "charges can be kept nowhere: new requests are refused")
    },
    chargeUnposted(record, why) {
      metrics.count("tollgate_charges_unposted_total")
      log.fatal({ record, why }, "a charge could not be posted")
    },
    recordsDropped: (count) => log.error({ count }, "requests were not put on record"),
    journalDamaged: (problem) => log.fatal({ problem }, "the journal is damaged"),
    oddJobStatus(vendor, word) {
      metrics.count("tollgate_job_odd_status_total", { vendor })
      log.warn({ vendor, word }, "unknown status of a video job")
    },
    jobEnded(job) {
      metrics.count("tollgate_jobs_total", { vendor: job.vendor, state: job.state })
      log.info(job, "video job ended")
    },
    internalError(requestId, error) {
      metrics.count("tollgate_internal_errors_total")
      const stack = error instanceof Error ? error.stack : undefined
      log.error({ request: requestId, error: messageOf(error), stack }, "internal error")
    },
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
