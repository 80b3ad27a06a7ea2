import { chmodSync, rmSync } from "node:fs"
import { join } from "node:path"
import { type Applied, applyConfig } from "../catalog/apply.ts"
import { exportConfig } from "../catalog/export.ts"
import { CatalogError, type CatalogProblem } from "../catalog/problem.ts"
import type { ConfigDocument } from "../config/document.ts"
import { StoreConflict } from "../store/errors.ts"
import type { House } from "./house.ts"

/**
 * A running gateway on SQLite holds its data file alone, so `apply` and `export` of the same data folder are handed to
 * it through a socket that only the owner of the folder can open.
 */
const socketName = "control.sock"

/** What the operating system allows for the path of a socket. */
const longestSocketPath = 100

export function controlSocket(dataDir: string): string | null {
  const path = join(dataDir, socketName)
  return path.length > longestSocketPath ? null : path
}

export interface ControlServer {
  stop(): Promise<void>
}

export function serveControl(path: string, house: House, afterChange: () => Promise<void>): ControlServer {
  rmSync(path, { force: true })
  const server = Bun.serve({
    unix: path,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      if (pathname === "/export") return new Response(await exportConfig(house.store))
      if (pathname !== "/apply") return new Response("not found", { status: 404 })
      const { document, prune } = (await request.json()) as ApplyOrder
      return Response.json(await applied(document, prune))
    },
    error: (error) => Response.json({ failed: error.message } satisfies ApplyReply),
  })
  chmodSync(path, 0o600)

  async function applied(document: ConfigDocument, prune: boolean): Promise<ApplyReply> {
    try {
      const result = await applyConfig(house.store, house.vault, document, { prune })
      await afterChange()
      return { applied: { changes: result.changes, unchanged: result.unchanged } }
    } catch (error) {
      if (error instanceof CatalogError) return { problems: error.problems }
      if (error instanceof StoreConflict) return { conflict: error.message }
      throw error
    }
  }
  return { stop: () => server.stop(true) }
}

interface ApplyOrder {
  readonly document: ConfigDocument
  readonly prune: boolean
}

export type ApplyReply =
  | { readonly applied: Applied }
  | { readonly problems: readonly CatalogProblem[] }
  | { readonly conflict: string }
  | { readonly failed: string }

/** Asks the gateway that runs on a data folder; null where none answers. */
export async function askToApply(dataDir: string, order: ApplyOrder): Promise<ApplyReply | null> {
  const response = await ask(dataDir, "/apply", { method: "POST", body: JSON.stringify(order) })
  return response === null ? null : ((await response.json()) as ApplyReply)
}

export async function askToExport(dataDir: string): Promise<string | null> {
  const response = await ask(dataDir, "/export", {})
  return response === null ? null : response.text()
}

async function ask(dataDir: string, path: string, init: RequestInit): Promise<Response | null> {
  const unix = controlSocket(dataDir)
  if (unix === null) return null
  try {
    return await fetch(`http://localhost${path}`, { ...init, unix })
  } catch {
    return null
  }
}
