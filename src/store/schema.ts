import type { Generated, GeneratedAlways, Kysely, Transaction } from "kysely"
import type { Endpoint } from "../core/endpoints.ts"
import type { Ending } from "../core/story.ts"
import type { Tokenizer } from "../core/tokenizer.ts"
import type { JobState, SecondsSource } from "../core/video-job.ts"

export type Engine = "sqlite" | "postgres"
export type LineKind = "topup" | "charge" | "adjustment"

/**
 * The tables as both engines deliver them. Every integer is a `bigint` in SQLite and in Postgres alike, so that amounts
 * stay exact; times are Unix milliseconds, flags are 0n or 1n, JSON is text. Store functions convert at their edge.
 */
export interface Tables {
  plans: PlansTable
  accounts: AccountsTable
  keys: KeysTable
  people: PeopleTable
  upstreams: UpstreamsTable
  upstream_credentials: UpstreamCredentialsTable
  models: ModelsTable
  routes: RoutesTable
  settings: SettingsTable
  versions: VersionsTable
  ledger: LedgerTable
  requests: RequestsTable
  usage_hours: UsageTable & { hour: bigint }
  usage_days: UsageTable & { day: bigint }
  jobs: JobsTable
}

/** Reads go over either; what must happen in one piece asks for a transaction. */
export type Reader = Kysely<Tables>
export type Writer = Transaction<Tables>

interface Dated {
  created_at: bigint
  updated_at: bigint
}

interface PlansTable extends Dated {
  id: string
  name: string
  concurrency: bigint
  models: string
  price_multiplier: string
}

interface AccountsTable extends Dated {
  id: string
  name: string
  plan_id: string
  concurrency: bigint | null
  suspended: Generated<bigint>
}

interface KeysTable extends Dated {
  id: string
  account_id: string
  name: string
  digest: string
  prefix: string
  last_four: string
  revoked_at: bigint | null
}

interface PeopleTable extends Dated {
  id: string
  email: string
  password_hash: string
  role: "admin" | "member"
  account_id: string
}

interface UpstreamsTable extends Dated {
  id: string
  name: string
  vendor: string
  base_url: string | null
  headers: string
  timeouts: string
  concurrency: bigint
  settings: string
}

interface UpstreamCredentialsTable extends Dated {
  upstream_id: string
  position: bigint
  sealed: Uint8Array
  digest: string
}

interface ModelsTable extends Dated {
  id: string
  name: string
  price: string
  endpoints: string | null
  tokenizer: Tokenizer | null
}

interface RoutesTable extends Dated {
  model_id: string
  position: bigint
  upstream_id: string
  upstream_model: string
  priority: bigint
  weight: bigint
}

interface SettingsTable extends Dated {
  key: string
  value: string
}

interface VersionsTable {
  name: string
  value: bigint
}

interface LedgerTable {
  id: GeneratedAlways<bigint>
  account_id: string
  kind: LineKind
  amount: bigint
  balance_after: bigint
  reference: string
  note: string | null
  measured: string | null
  estimated: Generated<bigint>
  created_at: bigint
  price: Generated<string | null>
  usage_invalid: Generated<bigint>
}

interface RequestsTable {
  id: string
  account_id: string
  key_id: string
  key_name: string
  endpoint: Endpoint
  model: string
  upstream: string | null
  upstream_model: string | null
  stream: bigint
  attempts: string
  status: bigint
  error: string | null
  ending: Ending
  started_at: bigint
  ended_at: bigint
  first_token_ms: bigint | null
  duration_ms: bigint
  measured: string
  estimated: bigint
  usage_invalid: bigint
  price: string | null
  charge: bigint
}

interface JobsTable {
  id: string
  state: JobState
  next_look_at: bigint
  /** Nobody else may claim the job before this time; null: anybody may. */
  lease_until: bigint | null
  lease_owner: string | null
  fence: bigint
  polls: Generated<bigint>
  last_look_at: bigint | null
  missing_since: bigint | null
  hidden: Generated<bigint>
  account_id: string
  created_at: bigint
  submitted_at: bigint | null
  finished_at: bigint | null
  key_id: string
  key_name: string
  request_id: string
  model: string
  with_image: bigint
  upstream_id: string
  upstream: string
  vendor: string
  upstream_model: string
  base_url: string
  credential_digest: string | null
  sent_seconds: bigint | null
  vendor_id: string | null
  microseconds: bigint | null
  seconds_source: SecondsSource | null
  charge: Generated<bigint>
  result_needs_credential: Generated<bigint>
  result_kept: Generated<bigint>
  trouble: string | null
  error: string | null
  price: string | null
  tariff: string
  ref: string | null
  result_url: string | null
  attempts: string
}

/** What was used of one model and upstream ("" where none was asked) by one account, in one hour or day since 1970. */
interface UsageTable extends Record<UsageCounter, bigint> {
  account_id: string
  model: string
  upstream: string
}

export const usageCounters = [
  "requests",
  "failures",
  "estimated",
  "input_tokens",
  "cached_input_tokens",
  "cache_write_tokens",
  "audio_input_tokens",
  "output_tokens",
  "reasoning_tokens",
  "audio_output_tokens",
  "images",
  "microseconds",
  "characters",
  "charge",
  "duration_ms",
  "first_token_ms",
  "first_tokens",
] as const
export type UsageCounter = (typeof usageCounters)[number]
