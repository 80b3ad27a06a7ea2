import { SQL } from "bun"
import { CompiledQuery, type DatabaseConnection, type Dialect, PostgresAdapter } from "kysely"
import { PostgresJSDialect, PostgresJSDriver, type PostgresJSReservedSql, type PostgresJSSql } from "kysely-postgres-js"
import { isUnavailable } from "./errors.ts"

const defaultPoolSize = 10
const connectWithinSeconds = 10
/** An instance that stands still in the middle of a transaction must not keep the others from the rows it has locked for long. */
const boundedBegin = "begin; set local idle_in_transaction_session_timeout = 15000"

export function openPostgres(url: string, poolSize = defaultPoolSize): Dialect {
  const pool = new SQL(url, {
    adapter: "postgres",
    // Given again because the variable PGDATABASE would win over the one in the URL.
    ...databaseOf(url),
    max: poolSize,
    bigint: true,
    connectionTimeout: connectWithinSeconds,
    connection: { application_name: "tollgate" },
  })
  const client: PostgresJSSql = {
    reserve: async (options) => honestTransactions(await pool.reserve(options)),
    end: (options) => pool.end(options),
    options: { adapter: "postgres", max: poolSize },
  }
  const dialect = new PostgresJSDialect({ postgres: () => client })
  return {
    createAdapter: () => new LockedOutsideAdapter(),
    createDriver: () => new PlainRollbackDriver({ postgres: () => client }),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
  }
}

function databaseOf(url: string): { database?: string } {
  const name = decodeURIComponent(new URL(url).pathname.slice(1))
  return name === "" ? {} : { database: name }
}

/** Where the server is, without user and password, for messages. */
export function placeOf(url: string): string {
  const parsed = URL.parse(url)
  return parsed === null ? "of a URL that cannot be read" : parsed.host + parsed.pathname
}

/**
 * Postgres answers the COMMIT of a transaction in which a statement failed by rolling it back, without an error. Money
 * must not get lost like that when someone caught the error and went on, so here it becomes one.
 */
function honestTransactions(connection: Bun.ReservedSQL): PostgresJSReservedSql {
  return {
    release: () => connection.release(),
    unsafe(query, parameters) {
      // With the transaction and not at connecting, where poolers in between refuse it; in one message with its begin.
      if (query === "begin") return connection.unsafe(boundedBegin)
      const pending = connection.unsafe(query, parameters)
      if (query !== "commit") return pending
      const checked = pending.then((result) => {
        if (result.command === "COMMIT") return result
        throw new Error("the transaction was rolled back, because a statement in it had failed")
      })
      return Object.assign(checked, { cancel: () => pending.cancel() })
    },
  }
}

/** Kysely's own way with a failed rollback expects the connection of another driver and hides the error that led to it. */
class PlainRollbackDriver extends PostgresJSDriver {
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    try {
      await connection.executeQuery(CompiledQuery.raw("rollback"))
    } catch (error) {
      // Where the connection is gone, so is the transaction.
      if (!isUnavailable(error)) throw error
    }
  }
}

/** Migrations run in one transaction under a lock of that transaction, which unlike Kysely's own ends with it by itself. */
class LockedOutsideAdapter extends PostgresAdapter {
  override async acquireMigrationLock(): Promise<void> {}
  override async releaseMigrationLock(): Promise<void> {}
}
