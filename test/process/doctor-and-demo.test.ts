import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import { demoVideos } from "../../src/cli/demo-config.ts"
import { videoVendors } from "../../src/vendors/video/registry.ts"
import { until, type Variables, workbench } from "../support/workbench.ts"

setDefaultTimeout(30_000)
const bench = workbench()
let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator()
})
afterAll(async () => {
  await bench.clear()
  await simulator.stop()
})

const key = "sk-process-0123456789"
const longMasterKey = "a master key of at least 32 characters"

function yaml(baseUrl: string, more = ""): string {
  return `upstreams:
  - { name: main, vendor: openai, base_url: "${baseUrl}", api_key: upstream-credential }
models:
  - { name: m, price: free, routes: [{ upstream: main, model: sim-large }] }
accounts:
  - { name: acme, balance: 5, keys: [{ name: ci, key: ${key} }] }
${more}`
}

describe("doctor", () => {
  const examined = async (name: string, text: string, env: Variables = {}) => {
    const data = bench.freshData()
    const applied = await bench.run(["apply", bench.file(`${name}.yaml`, text), "--data", data])
    expect(applied).toMatchObject({ code: 0, err: "" })
    const { code, out, err } = await bench.run(["doctor", "--data", data], env)
    return { code, err, lines: out.trimEnd().split("\n"), data }
  }

  test("everything right: a line for each check, exit code 0", async () => {
    const vendor = simulator.vendor("healthy")
    vendor.expectKey("upstream-credential")
    const { code, err, lines, data } = await examined("healthy", yaml(vendor.baseUrl))
    expect([code, err]).toEqual([0, ""])
    expect(lines).toEqual([
      `ok    settings: data in ${data}`,
      "ok    redis: not configured; limits are held in process",
      "ok    database: sqlite, tables up to date",
      "ok    catalog: 1 models, 1 upstreams",
      "ok    upstream main: answers (200)",
    ])
    expect(vendor.calls.map(({ method, path }) => `${method} ${path}`)).toEqual(["GET /healthy/v1/models"])
  })

  test("an upstream that refuses the connection, one that refuses the credential: named, exit code 1", async () => {
    const strict = simulator.vendor("strict")
    strict.expectKey("another-credential")
    const more = `plans: [{ name: default }]\n`
    const text = `${yaml("http://127.0.0.1:1/v1", more)}`.replace(
      "models:",
      `  - { name: strict, vendor: openai, base_url: "${strict.baseUrl}", api_keys: [first-credential, another-credential] }\nmodels:`,
    )
    const { code, lines } = await examined("ill", text)
    expect(code).toBe(1)
    const upstreams = lines.filter((line) => line.includes("upstream ")).sort()
    expect(upstreams).toHaveLength(3)
    expect(upstreams[0]).toStartWith("FAIL  upstream main: http://127.0.0.1:1/v1 does not answer: ")
    expect(upstreams[1]).toBe("FAIL  upstream strict (key 1): answers 401: the vendor refuses the credential")
    expect(upstreams[2]).toBe("ok    upstream strict (key 2): answers (200)")
    expect(lines.join("\n")).not.toContain("-credential")
  })

  test("a Redis that is not there is named, exit code 1", async () => {
    const { code, lines } = await examined("redis", yaml(simulator.vendor("plain").baseUrl), {
      REDIS_URL: "redis://127.0.0.1:1",
    })
    expect(code).toBe(1)
    expect(lines.filter((line) => line.startsWith("FAIL"))).toHaveLength(1)
    expect(lines.find((line) => line.startsWith("FAIL"))).toStartWith("FAIL  redis: ")
  })

  test("a database that is not there is named without its password, exit code 1", async () => {
    const env = { DATABASE_URL: "postgres://u:hunter2@127.0.0.1:1/x", TOLLGATE_MASTER_KEY: longMasterKey }
    const { code, out, err } = await bench.run(["doctor"], env)
    expect([code, err]).toEqual([1, ""])
    expect(out).toContain("FAIL  database: cannot open the database 127.0.0.1:1/x")
    expect(out).not.toContain("hunter2")
  })
})

interface FinishedJob {
  readonly id: string
  readonly status: string
  readonly video_url: string
  readonly seconds: number
}

describe("demo", () => {
  test("every curl line works as printed, streaming and failover included; SIGINT ends it and removes its data", async () => {
    const demo = await bench.start(["demo", "--port", "0"])
    await until(() => demo.output().includes(" -o gate.mp4"))
    const curls = [...demo.output().matchAll(/^(?:job=\$\()?curl (?:[^\n]*\\\n)*[^\n]*/gm)].map(([text]) => text)
    expect(curls).toHaveLength(6)
    const [whole, streamed, takeDown, submit, poll, fetchFilm] = curls as [
      string,
      string,
      string,
      string,
      string,
      string,
    ]
    expect(demoFolders()).toHaveLength(1)

    const answer = await shell(whole)
    expect(answer.choices[0]?.message.content).toContain("Say hello to the gateway")
    expect(answer.model).toBe("gpt-5-2026-08")

    const events = (await shellText(streamed)).split("\n\n").filter((event) => event !== "")
    expect(events.at(-1)).toBe("data: [DONE]")
    const usage = JSON.parse(events.at(-2)!.slice("data: ".length)) as { choices: unknown[]; usage: object }
    expect(usage.choices).toEqual([])
    expect(usage.usage).toMatchObject({ prompt_tokens: expect.any(Number), completion_tokens: expect.any(Number) })

    expect(JSON.parse(await shellText(takeDown))).toEqual({ vendor: "openai", steps: 1 })
    expect((await shell(whole)).model).toBe("deepseek-chat")

    const job = (await shellText(`${submit}\necho $job`)).trim()
    const film = await until(async () => {
      const found: FinishedJob = JSON.parse(await shellText(`job=${job}\n${poll}`))
      return found.status === "completed" && found
    }, 15_000)
    expect(film).toMatchObject({ id: job, model: "kling-video", seconds: 5 })
    await shellText(`job=${job}\n${fetchFilm}`)
    const bytes = await Bun.file(join(bench.folder, "gate.mp4")).bytes()
    expect(Buffer.from(bytes.subarray(4, 8)).toString()).toBe("ftyp")
    expect(Buffer.from(bytes).equals(await (await fetch(film.video_url)).bytes())).toBe(true)

    demo.signal("SIGINT")
    expect(await demo.ended).toBe(0)
    expect(demoFolders()).toEqual([])
  })

  test("has a model of every vendor of videos: each makes one, which is charged once by its length", async () => {
    const demo = await bench.start(["demo", "--port", "0"])
    const [, key, token] = await until(() => /TOLLGATE_KEY=(\S+) TOLLGATE_ADMIN_TOKEN=(\S+)/.exec(demo.output()))
    const bearer = { authorization: `Bearer ${key}` }
    expect(demoVideos.map(({ vendor }) => vendor)).toEqual([...videoVendors.keys()])

    const made = demoVideos.map(async ({ name }) => {
      const body = JSON.stringify({ model: name, prompt: "A gate at dawn" })
      const submitted = await fetch(`${demo.url}/v1/videos`, { method: "POST", headers: bearer, body })
      const { id } = (await submitted.json()) as FinishedJob
      return until(async () => {
        const job = (await (await fetch(`${demo.url}/v1/videos/${id}`, { headers: bearer })).json()) as FinishedJob
        return job.status === "completed" && { name, id, seconds: job.seconds }
      }, 20_000)
    })
    const videos = await Promise.all(made)
    const ledger = await fetch(`${demo.url}/api/ledger?kind=charge`, { headers: { authorization: `Bearer ${token}` } })
    const { data } = (await ledger.json()) as { data: { reference: string; amount: string }[] }
    const charged = Object.fromEntries(data.map(({ reference, amount }) => [reference, Number(amount)]))
    const expected = videos.map(({ id, name, seconds }) => [
      `video_${id}`,
      expect.closeTo(-seconds * Number(demoVideos.find((video) => video.name === name)!.second), 9),
    ])
    expect(data).toHaveLength(demoVideos.length)
    expect(charged).toEqual(Object.fromEntries(expected))
    demo.signal("SIGINT")
    expect(await demo.ended).toBe(0)
  })

  test("a port that is taken: exit code 2, no data left behind", async () => {
    const { code, err } = await bench.run(["demo", "--port", String(simulator.port)])
    expect(code).toBe(2)
    expect(err).toStartWith(`cannot listen on 127.0.0.1:${simulator.port}: `)
    expect(demoFolders()).toEqual([])
  })

  const demoFolders = (): string[] => readdirSync(bench.folder).filter((name) => name.startsWith("tollgate-demo-"))

  async function shellText(command: string): Promise<string> {
    const child = Bun.spawn(["bash", "-c", command], { cwd: bench.folder, stdout: "pipe", stderr: "ignore" })
    const text = await child.stdout.text()
    expect(await child.exited).toBe(0)
    return text
  }

  async function shell(command: string): Promise<{ model: string; choices: { message: { content: string } }[] }> {
    return JSON.parse(await shellText(command))
  }
})
