/** The slots that this instance itself holds: by account and lease, each with a mark of the caller's. */
export interface HeldSlots<Mark extends object | null> {
  count(account: string): number
  /** Adds a lease, or marks one that is held already. */
  set(account: string, lease: string, mark: Mark): void
  has(account: string, lease: string): boolean
  /** Removes a lease; tells its mark, or nothing if it was not held. */
  delete(account: string, lease: string): Mark | undefined
  accounts(): readonly string[]
  leases(account: string): readonly string[]
  /** Leases that have another mark. */
  leasesWithout(account: string, mark: Mark): readonly string[]
}

export function heldSlots<Mark extends object | null>(): HeldSlots<Mark> {
  const held = new Map<string, Map<string, Mark>>()
  return {
    count: (account) => held.get(account)?.size ?? 0,
    set(account, lease, mark) {
      const leases = held.get(account)
      if (leases === undefined) held.set(account, new Map([[lease, mark]]))
      else leases.set(lease, mark)
    },
    has: (account, lease) => held.get(account)?.has(lease) ?? false,
    delete(account, lease) {
      const leases = held.get(account)
      const mark = leases?.get(lease)
      if (leases === undefined || mark === undefined) return undefined
      leases.delete(lease)
      if (leases.size === 0) held.delete(account)
      return mark
    },
    accounts: () => [...held.keys()],
    leases: (account) => [...(held.get(account)?.keys() ?? [])],
    leasesWithout: (account, mark) =>
      [...(held.get(account) ?? [])].filter(([, given]) => given !== mark).map(([lease]) => lease),
  }
}
