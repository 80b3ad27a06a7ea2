/** Programs that tests need and npm does not bring; installed when they are missing and we may, refused loudly otherwise. */
export interface DebianProgram {
  readonly package: string
  isThere(): boolean
}

/** Services stay down: a server of the whole machine is not what tests are about. */
const quiet = { DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" }

export async function ensureInstalled(program: DebianProgram): Promise<void> {
  if (program.isThere()) return
  if (process.getuid?.() !== 0)
    throw new Error(`the tests need Debian's package "${program.package}": install it, or run them as root`)
  await aptGet("update")
  await aptGet("install", "-y", "--no-install-recommends", program.package)
  if (!program.isThere())
    throw new Error(`apt-get installed "${program.package}", but what the tests need of it is not there`)
}

async function aptGet(...args: readonly string[]): Promise<void> {
  const child = Bun.spawn(["/usr/bin/apt-get", "-o", "DPkg::Lock::Timeout=300", ...args], {
    env: { ...process.env, ...quiet },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (code !== 0) throw new Error(`apt-get ${args.join(" ")} failed:\n${out}${err}`)
}
