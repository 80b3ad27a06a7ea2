import type { AccountConfig } from "../../src/config/document.ts"

/** The API key of an account by its name. */
export function keyOf(account: string): string {
  return `sk-test-${account}-0123456789`
}

/** An account with money and a key of its own. */
export function account(name: string, more: Partial<AccountConfig> = {}): AccountConfig {
  return {
    name,
    plan: "default",
    concurrency: null,
    balance: "100",
    keys: [{ name: "k", key: keyOf(name) }],
    ...more,
  }
}
