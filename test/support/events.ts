import type { Events } from "../../src/core/events.ts"

/** For tests about something else. */
export const nobodyListens: Events = {
  attemptFailed() {},
  requestEnded() {},
  circuitChanged() {},
  catalogLoaded() {},
  catalogRejected() {},
  databaseAway() {},
  databaseBack() {},
  limitsDegraded() {},
  journaling() {},
  chargesStuck() {},
  chargeUnposted() {},
  recordsDropped() {},
  journalDamaged() {},
  oddJobStatus() {},
  jobEnded() {},
  internalError() {},
}
