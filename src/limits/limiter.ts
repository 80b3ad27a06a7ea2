/** Requests in flight per account. `take` is refused when the account already holds its limit. */
export interface Limiter {
  /** Takes a slot under the id of the request; limit 0 is unlimited. */
  take(account: string, limit: number, lease: string): boolean | Promise<boolean>
  /** Gives a slot back; giving twice, or one that was never taken, does nothing. */
  give(account: string, lease: string): void
  inFlight(account: string): number | Promise<number>
}
