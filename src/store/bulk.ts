import { CompiledQuery } from "kysely"
import { engineOf } from "./save.ts"
import type { Engine, Reader, Writer } from "./schema.ts"

export type SqlValue = string | bigint | null

export interface BulkTable {
  readonly name: string
  readonly columns: readonly string[]
  /** What follows the values, such as what to do with rows that are there already. */
  readonly end?: string
}

const mostRows = 64

/**
 * How many rows the next statement takes. A statement is a way to Postgres and back, so there it takes all it can; SQLite
 * is at hand and keeps only so many statements prepared, so there few texts serve any number of rows.
 */
function rowsAtOnce(engine: Engine, left: number): number {
  const most = Math.min(left, mostRows)
  return engine === "postgres" ? most : 2 ** Math.floor(Math.log2(most))
}

/**
 * Makes a function that inserts rows, given as the values of one row after the other. Writing SQL takes longer than
 * running it, so each text is written once and stays prepared.
 */
export function bulkInsert(table: BulkTable): (trx: Writer, values: readonly SqlValue[]) => Promise<void> {
  const queries: Readonly<Record<Engine, Map<number, CompiledQuery>>> = { sqlite: new Map(), postgres: new Map() }
  const width = table.columns.length

  function queryFor(engine: Engine, rows: number): CompiledQuery {
    const known = queries[engine].get(rows)
    if (known !== undefined) return known
    const query = CompiledQuery.raw(insertText(table, engine, rows))
    queries[engine].set(rows, query)
    return query
  }

  return async (trx, values) => {
    const engine = engineOf(trx)
    for (let at = 0; at < values.length; ) {
      const rows = rowsAtOnce(engine, (values.length - at) / width)
      const end = at + rows * width
      const parameters = at === 0 && end === values.length ? values : values.slice(at, end)
      await trx.executeQuery({ ...queryFor(engine, rows), parameters })
      at = end
    }
  }
}

function insertText({ name, columns, end = "" }: BulkTable, engine: Engine, rows: number): string {
  let parameters = 0
  const place = () => (engine === "postgres" ? `$${++parameters}` : "?")
  const row = () => `(${columns.map(place).join(", ")})`
  return `insert into ${name} (${columns.join(", ")}) values ${Array.from({ length: rows }, row).join(", ")} ${end}`
}

/** A query about any number of ids, given to it as one list. `ids` stands for the list wherever the text needs it. */
export function queryByIds<Row>(
  text: (ids: string) => string,
): (db: Reader, ids: readonly string[]) => Promise<readonly Row[]> {
  const queries: Readonly<Record<Engine, CompiledQuery<Row>>> = {
    // Read as text first, because the driver would write a parameter known to be JSON as JSON once more.
    postgres: CompiledQuery.raw(text("(select json_array_elements_text($1::text::json))")),
    sqlite: CompiledQuery.raw(text("(select value from json_each(?1))")),
  }
  return async (db, ids) => {
    const asked: CompiledQuery<Row> = { ...queries[engineOf(db)], parameters: [JSON.stringify(ids)] }
    return (await db.executeQuery(asked)).rows
  }
}
