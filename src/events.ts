import type { Events } from "./core/events.ts"
import type { Log } from "./log.ts"

/** Events as log records; metrics join them here. */
export function logEvents(log: Log): Events {
  return {
    attemptFailed: (story, attempt) =>
      log.warn({ request: story.requestId, model: story.model, ...attempt }, "attempt failed"),
    requestEnded: (story) => log.debug(story, "request ended"),
    circuitChanged: (upstream, state) => log.warn({ upstream, state }, "circuit changed"),
    catalogLoaded: (version) => log.info({ version }, "catalog loaded"),
    catalogRejected: (version, problems) =>
      log.error({ version, problems }, "catalog not usable, keeping the last good one"),
    databaseAway: (error) => log.error({ error: messageOf(error) }, "database away"),
    databaseBack: () => log.info("database back"),
    limitsDegraded: (away, why) =>
      away
        ? log.error({ why }, "Redis away: this instance keeps to its own share of each limit")
        : log.info("Redis back"),
    journaling: (active, why) =>
      active ? log.error({ why }, "charges go to the journal") : log.info("the journal is empty again"),
    chargesStuck: (stuck, why) =>
      stuck
        ? log.fatal({ why }, "charges can be kept nowhere: new requests are refused")
        : log.info("charges can be kept again"),
    chargeUnposted: (record, why) => log.fatal({ record, why }, "a charge could not be posted"),
    recordsDropped: (count) => log.error({ count }, "requests were not put on record"),
    journalDamaged: (problem) => log.fatal({ problem }, "the journal is damaged"),
    oddJobStatus: (vendor, word) => log.warn({ vendor, word }, "unknown status of a video job"),
    jobEnded: (job) => log.info(job, "video job ended"),
    internalError: (requestId, error) =>
      log.error(
        { request: requestId, error: messageOf(error), stack: error instanceof Error ? error.stack : undefined },
        "internal error",
      ),
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
