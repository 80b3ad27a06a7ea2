import { expect, test } from "bun:test"
import { dirname, join, relative } from "node:path"

const root = join(import.meta.dir, "..")

/** Layers from the ground up: a folder imports from its own layer's left side and from below, never from above. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  core: ["lib"],
  vendors: ["lib", "core"],
  bridge: ["lib", "core"],
  config: ["lib", "core", "vendors"],
  store: ["lib", "core"],
  limits: ["lib", "core"],
  upstream: ["lib", "core", "version"],
  catalog: ["lib", "core", "vendors", "config", "store"],
  admin: ["lib", "core", "store", "catalog", "vendors"],
  auth: ["lib", "core", "store"],
  billing: ["lib", "core", "store"],
  routing: ["lib", "core", "upstream"],
  admission: ["lib", "core", "limits", "catalog", "billing"],
  relay: ["admission", "lib", "core", "bridge", "limits", "upstream", "vendors", "catalog", "billing", "routing"],
  video: ["admission", "lib", "core", "limits", "upstream", "vendors", "catalog", "billing", "routing", "store"],
  http: ["lib", "core", "limits", "catalog", "auth", "admission", "relay", "video"],
  version: [],
  log: [],
  metrics: [],
  events: ["core", "log", "metrics"],
  settings: ["core", "log", "store"],
  app: [
    "lib",
    "core",
    "store",
    "limits",
    "upstream",
    "catalog",
    "auth",
    "billing",
    "routing",
    "relay",
    "video",
    "http",
    "admin",
    "version",
  ],
  cli: [
    "lib",
    "core",
    "config",
    "store",
    "upstream",
    "catalog",
    "billing",
    "http",
    "app",
    "events",
    "log",
    "metrics",
    "settings",
    "simulator",
  ],
  main: ["lib", "config", "store", "settings", "version", "cli"],
}

interface Import {
  readonly from: string
  readonly to: string
}

const everything = [...new Bun.Glob("{src,simulator,bench}/**/*.ts").scanSync(root)]
  .filter((file) => !file.endsWith(".test.ts"))
  .sort()
const sources = everything.filter((file) => file.startsWith("src/"))

/** The folder below src, or the file's own name for those that stand there alone; "simulator" and the like for what is outside. */
function placeOf(file: string): string {
  const [first, second] = file.split("/")
  return first === "src" ? second!.replace(/\.ts$/, "") : first!
}

async function importsOf(file: string): Promise<readonly Import[]> {
  const text = await Bun.file(join(root, file)).text()
  const targets = [...text.matchAll(/(?:from|import\(|new URL\()\s*"(\.[^"]+)"/g)].map((match) => match[1]!)
  return targets.map((target) => ({ from: file, to: relative(root, join(root, dirname(file), target)) }))
}

const allImports = (await Promise.all(everything.map(importsOf))).flat()
const imports = allImports.filter(({ from }) => from.startsWith("src/"))

test("imports point one way, from the outside in", () => {
  const wrong = imports
    .filter(({ from, to }) => {
      const [here, there] = [placeOf(from), placeOf(to)]
      return here !== there && to !== "package.json" && !(allowed[here] ?? []).includes(there)
    })
    .map(({ from, to }) => `${from} -> ${to}`)
  expect(wrong).toEqual([])
})

test("every folder has a place in the order", () => {
  const places = new Set(sources.map(placeOf))
  expect([...places].filter((place) => allowed[place] === undefined)).toEqual([])
})

test("no file imports itself by a detour", () => {
  const next = Map.groupBy(allImports, ({ from }) => from)
  const state = new Map<string, "open" | "done">()
  const cycles: string[] = []
  const visit = (file: string, trail: readonly string[]): void => {
    if (state.get(file) === "done") return
    if (state.get(file) === "open") {
      cycles.push([...trail.slice(trail.indexOf(file)), file].join(" -> "))
      return
    }
    state.set(file, "open")
    for (const { to } of next.get(file) ?? []) visit(to, [...trail, file])
    state.set(file, "done")
  }
  for (const file of everything) visit(file, [])
  expect(cycles).toEqual([])
})

async function filesWith(pattern: RegExp, except: readonly string[]): Promise<readonly string[]> {
  const found: string[] = []
  for (const file of sources) {
    const code = (await Bun.file(join(root, file)).text()).replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "")
    if (pattern.test(code) && !except.includes(file)) found.push(file)
  }
  return found
}

test("the gateway reaches out in one place only; the command line talks to its own instance", async () => {
  expect(await filesWith(/(?<![.\w])fetch\(/, ["src/upstream/client.ts", "src/cli/control.ts"])).toEqual([])
})

test("the environment is read in one place only, handed over by main", async () => {
  expect(await filesWith(/process\.env|Bun\.env/, ["src/main.ts", "src/settings.ts"])).toEqual([])
})

test("SQL stands in the store only", async () => {
  const outside = sources.filter((file) => placeOf(file) !== "store")
  const users: string[] = []
  for (const file of outside)
    if (/from "(kysely|bun:sqlite)"/.test(await Bun.file(join(root, file)).text())) users.push(file)
  expect(users).toEqual([])
})

test("source files stay short enough to have one subject", async () => {
  const long: string[] = []
  for (const file of sources) {
    const lines = (await Bun.file(join(root, file)).text()).split("\n").length
    if (lines > 400) long.push(`${file}: ${lines} lines`)
  }
  expect(long).toEqual([])
})
