import { Database, type SQLQueryBindings, type Statement } from "bun:sqlite"
import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from "node:fs"
import { dirname } from "node:path"
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  SqliteAdapter,
  type SqliteDatabase,
  SqliteDriver,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type SqliteStatement,
  type TransactionSettings,
} from "kysely"
import { claimFile } from "./sqlite-lock.ts"

export const inMemory = ":memory:"
const busyTimeoutMs = 5_000
const cachedStatements = 256
const ownerOnly = 0o600

/** One connection for all: Kysely's driver lets one query or transaction at a time have it, in the order they came. */
export function openSqlite(file: string): { readonly dialect: Dialect; readonly release: () => void } {
  if (file === inMemory) return { dialect: sqliteDialect(openDatabase(file)), release() {} }
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const release = claimFile(file)
  try {
    // Made with its mode before SQLite writes to it; its log files take the mode over.
    closeSync(openSync(file, "a", ownerOnly))
    chmodSync(file, ownerOnly)
    return { dialect: sqliteDialect(openDatabase(file)), release }
  } catch (error) {
    release()
    throw error
  }
}

/** Only reads, and leaves the file to whoever has claimed it. */
export function openSqliteForReading(file: string): Dialect {
  if (!existsSync(file)) throw new Error("there is no such file")
  const database = new Database(file, { readonly: true, safeIntegers: true, strict: true })
  try {
    database.run(`pragma busy_timeout = ${busyTimeoutMs}`)
    return sqliteDialect(database)
  } catch (error) {
    database.close()
    throw error
  }
}

function openDatabase(file: string): Database {
  const database = new Database(file, { safeIntegers: true, strict: true })
  try {
    database.run(`pragma busy_timeout = ${busyTimeoutMs}`)
    database.run("pragma journal_mode = wal")
    database.run("pragma synchronous = full")
    database.run("pragma foreign_keys = on")
    // What a statement needs to undo itself would go through a file each time otherwise.
    database.run("pragma temp_store = memory")
    // Without it INSERT OR REPLACE would delete ledger lines past their triggers.
    database.run("pragma recursive_triggers = on")
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

function sqliteDialect(database: Database): Dialect {
  return {
    createAdapter: () => new TransactionalSqliteAdapter(),
    createDriver: () => new ImmediateSqliteDriver(database),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}

/** SQLite does roll DDL back; saying so makes a migration happen as a whole or not at all. */
class TransactionalSqliteAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true
  }
}

/** A transaction that may write takes the write lock first, so that it never fails half-way for the want of it. */
class ImmediateSqliteDriver extends SqliteDriver {
  readonly #database: Database

  constructor(database: Database) {
    super({ database: new PreparedDatabase(database) })
    this.#database = database
  }

  override async beginTransaction(connection: DatabaseConnection, settings?: TransactionSettings): Promise<void> {
    const begin = settings?.accessMode === "read only" ? "begin" : "begin immediate"
    await connection.executeQuery(CompiledQuery.raw(begin))
  }

  /** After some errors, such as a full disk, SQLite has rolled back by itself, and asking again would hide the error. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#database.inTransaction) await super.rollbackTransaction(connection)
  }
}

/** `bun:sqlite` in the shape Kysely asks for, keeping the statements used last prepared. */
class PreparedDatabase implements SqliteDatabase {
  readonly #database: Database
  readonly #statements = new Map<string, PreparedStatement>()

  constructor(database: Database) {
    this.#database = database
  }

  prepare(sql: string): PreparedStatement {
    const known = this.#statements.get(sql)
    // Put in again at the end, so that the first of the map is the one not used for the longest time.
    if (known !== undefined) this.#statements.delete(sql)
    const statement = known ?? new PreparedStatement(this.#database.prepare(sql))
    this.#statements.set(sql, statement)
    if (this.#statements.size > cachedStatements) this.#forgetOldest()
    return statement
  }

  #forgetOldest(): void {
    for (const [sql, statement] of this.#statements) {
      statement.finalize()
      this.#statements.delete(sql)
      return
    }
  }

  close(): void {
    for (const statement of this.#statements.values()) statement.finalize()
    this.#statements.clear()
    this.#database.close()
  }
}

class PreparedStatement implements SqliteStatement {
  readonly reader: boolean
  readonly #statement: Statement<unknown, SQLQueryBindings[]>

  constructor(statement: Statement<unknown, SQLQueryBindings[]>) {
    this.#statement = statement
    this.reader = statement.reader
  }

  all(parameters: readonly SQLQueryBindings[]): unknown[] {
    return this.#statement.all(...parameters)
  }

  run(parameters: readonly SQLQueryBindings[]): { changes: number | bigint; lastInsertRowid: number | bigint } {
    return this.#statement.run(...parameters)
  }

  iterate(parameters: readonly SQLQueryBindings[]): IterableIterator<unknown> {
    return this.#statement.iterate(...parameters)
  }

  finalize(): void {
    this.#statement.finalize()
  }
}
