import { afterAll, describe, expect, test } from "bun:test"
import { join } from "node:path"
import { apiRoutes } from "../../src/http/routes.ts"
import { workbench } from "../support/workbench.ts"

const readme = await Bun.file(join(import.meta.dir, "../../README.md")).text()
const section = readme.slice(readme.indexOf("## Endpoints"), readme.indexOf("## Run it for real"))
const lines = [...section.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, block]) => block!.trim().split("\n"))

const bench = workbench()
const demo = await bench.start(["demo", "--port", "0"])
const exported = /^export (.*)$/m.exec(demo.output())?.[1]?.split(" ") ?? []
const variables = Object.fromEntries(exported.map((each) => each.split("=") as [string, string]))
afterAll(() => bench.clear())

async function run(line: string): Promise<{ status: number; body: string }> {
  // The line as it stands, with nothing added but a word on its status at the end.
  const child = Bun.spawn(["bash", "-c", `set -o pipefail; ${line} -sS -w '\\n%{http_code}'`], {
    cwd: bench.folder,
    env: { PATH: process.env.PATH ?? "", ...variables },
    stdout: "pipe",
    stderr: "pipe",
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (code !== 0) throw new Error(`${line}\n${err}`)
  const at = out.lastIndexOf("\n")
  return { status: Number(out.slice(at + 1)), body: out.slice(0, at) }
}

describe("the README's calls", () => {
  test("there is one for every endpoint", () => {
    for (const { path } of apiRoutes) expect(lines.some((line) => line.includes(`$TOLLGATE_URL${path} `))).toBe(true)
    for (const path of [
      "/v1/models ",
      "/compat/v1/models?",
      "/health",
      "/api/ledger?",
      "/api/requests/",
      "/api/usage?",
    ])
      expect(lines.some((line) => line.includes(path))).toBe(true)
  })

  test.each(lines)("%s", async (line) => {
    const { status, body } = await run(line)
    expect(status, body).toBe(line.includes("/api/accounts/demo/") ? 201 : 200)
    if (!line.includes(" -o ")) expect(body.length).toBeGreaterThan(2)
    if (line.includes("/api/")) expect(JSON.parse(body).data).not.toEqual([])
  })
})
