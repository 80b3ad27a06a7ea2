/** Another process holds the data file. */
export class StoreLockedError extends Error {
  constructor(file: string, ownerPid: number | null) {
    const owner = ownerPid === null ? "" : ` (pid ${ownerPid})`
    super(
      `${file} is in use by another Tollgate process${owner}; stop that process, give this one another data folder, ` +
        "or use Postgres (DATABASE_URL) to run several at once",
    )
    this.name = "StoreLockedError"
  }
}

/** The change was refused because other rows stand against it; the message names them. */
export class StoreConflict extends Error {
  constructor(message: string) {
    super(message)
    this.name = "StoreConflict"
  }
}

/** The change refers to something by a name that nothing has. */
export class StoreMissing extends Error {
  constructor(message: string) {
    super(message)
    this.name = "StoreMissing"
  }
}

/** SQLSTATE classes: connection, resources, operator intervention; a server that turned read-only in a failover; a transaction it gave up. */
const unavailableStates = /^(08|53|57P|25006|25P03)/
const unavailableDriverCodes = /^ERR_POSTGRES_(CONNECTION|IDLE_TIMEOUT|LIFETIME_TIMEOUT|NOT_CONNECTED|TLS)/
const unavailableSqliteCodes = /^SQLITE_(BUSY|LOCKED|IOERR|FULL|CANTOPEN|READONLY|PROTOCOL|NOTADB|CORRUPT)/
const unavailableSystemCodes =
  /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|FailedToOpenSocket)/

/** True where the database, not the request, is at fault, so that trying later makes sense. */
export function isUnavailable(error: unknown): boolean {
  return anyCause(error, ({ code, state }) => {
    if (code === "ERR_POSTGRES_SERVER_ERROR") return unavailableStates.test(state)
    return unavailableDriverCodes.test(code) || unavailableSqliteCodes.test(code) || unavailableSystemCodes.test(code)
  })
}

/** True where two writers made the same name at the same moment and this one came second. */
export function isDuplicate(error: unknown): boolean {
  return anyCause(
    error,
    ({ code, state }) =>
      state === "23505" || code === "SQLITE_CONSTRAINT_UNIQUE" || code === "SQLITE_CONSTRAINT_PRIMARYKEY",
  )
}

/** True where a query named a table that the database does not have. */
export function isMissingTable(error: unknown): boolean {
  return anyCause(error, ({ state, message }) => state === "42P01" || message.startsWith("no such table"))
}

interface Marks {
  readonly code: string
  /** SQLSTATE, which Bun keeps in `errno`. */
  readonly state: string
  readonly message: string
}

function anyCause(error: unknown, test: (marks: Marks) => boolean): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    const code = "code" in at ? String(at.code) : ""
    const state = "errno" in at ? String(at.errno) : ""
    if (test({ code, state, message: at.message })) return true
  }
  return false
}
