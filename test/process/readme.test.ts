import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { join } from "node:path"
import { demoVideos } from "../../src/cli/demo-config.ts"
import { apiRoutes } from "../../src/http/routes.ts"
import { findVendor } from "../../src/vendors/presets.ts"
import { videoVendors } from "../../src/vendors/video/registry.ts"
import { until, workbench } from "../support/workbench.ts"

setDefaultTimeout(30_000)
const readme = await Bun.file(join(import.meta.dir, "../../README.md")).text()
const section = readme.slice(readme.indexOf("## Endpoints"), readme.indexOf("## Run it for real"))
const lines = [...section.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, block]) => block!.trim().split("\n"))

const bench = workbench()
const demo = await bench.start(["demo", "--port", "0"])
const exported = /^export (.*)$/m.exec(demo.output())?.[1]?.split(" ") ?? []
const variables = Object.fromEntries(exported.map((each) => each.split("=") as [string, string]))
afterAll(() => bench.clear())

/** Lines that keep what they find for those after them, as in one shell. */
const keeping = /^(\w+)=\$\(/

async function keep(line: string, name: string): Promise<string> {
  const child = Bun.spawn(["bash", "-c", `set -eo pipefail; ${line}; echo $${name}`], {
    env: { PATH: process.env.PATH ?? "", ...variables },
    stdout: "pipe",
  })
  variables[name] = (await child.stdout.text()).trim()
  expect(await child.exited).toBe(0)
  return variables[name]
}

/** What a reader does before going on: asking after the job until it is completed. */
async function completed(): Promise<void> {
  const asking = lines.find((line) => line.includes("/v1/videos/$job "))!
  await until(async () => JSON.parse((await run(asking)).body).status === "completed", 15_000)
}

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
      "/v1/videos ",
      "/v1/videos?",
      "/v1/videos/$job ",
      "/v1/videos/$job/content ",
      "-X DELETE ",
      "/compat/v1/models?",
      "/health",
      "/api/ledger?",
      "/api/requests/",
      "/api/usage?",
      "/api/jobs?",
      "/api/jobs/$job",
    ])
      expect(lines.some((line) => line.includes(path))).toBe(true)
  })

  test.each(lines)("%s", async (line) => {
    const [, name] = keeping.exec(line) ?? []
    if (name !== undefined) return expect(await keep(line, name)).not.toBe("")
    if (line.includes("/content")) await completed()
    const { status, body } = await run(line)
    expect(status, body).toBe(line.includes("/api/accounts/demo/") ? 201 : 200)
    if (!line.includes(" -o ")) expect(body.length).toBeGreaterThan(2)
    if (line.includes("/api/")) expect(JSON.parse(body).data).not.toEqual([])
  })
})

test("the README's table of video vendors says what their adapters say", () => {
  const table = [...videoVendors.values()].map(({ vendor, images, cancel, locate }) =>
    [
      "",
      `\`${vendor}\``,
      findVendor(vendor)?.title,
      images.byUrl ? "as sent" : "fetched first",
      cancel === undefined ? "no" : "yes",
      locate === undefined ? "no" : "yes",
      `\`${demoVideos.find((video) => video.vendor === vendor)?.name}\``,
      "",
    ]
      .join(" | ")
      .trim(),
  )
  const head = section.indexOf("| `vendor` | company |")
  const rows = section.slice(head, section.indexOf("\n\n", head)).split("\n").slice(2)
  expect(rows).toEqual(table)
})
