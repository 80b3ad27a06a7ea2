/** Who is calling: the account behind an accepted credential. */
export interface Principal {
  readonly keyId: string
  readonly keyName: string
  readonly accountId: string
  readonly accountName: string
  readonly planName: string
  /** The account's own limit of requests in flight; null: the plan's. */
  readonly concurrency: number | null
  readonly suspended: boolean
}
