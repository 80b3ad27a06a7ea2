/** Builds one executable with everything inside: `dist/tollgate`. */
import { join } from "node:path"

const root = join(import.meta.dir, "..")
const outfile = join(root, "dist", "tollgate")

const result = await Bun.build({
  // The worker is an entry of its own, so that it is inside the executable too.
  entrypoints: [join(root, "src/main.ts"), join(root, "src/billing/tokens-worker.ts")],
  compile: { outfile },
  root,
  target: "bun",
  minify: { syntax: true, whitespace: true },
  sourcemap: "linked",
  naming: "[dir]/[name].[ext]",
})
if (!result.success) {
  for (const message of result.logs) console.error(message)
  process.exit(1)
}
console.log(outfile)
