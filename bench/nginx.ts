import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { messagesEvents } from "./messages-traffic.ts"
import { freePort, type Running, type Workshop } from "./processes.ts"
import { answerJson, streamEvents } from "./traffic.ts"

/** The pause between two chunks of one stream: short, but long enough for each to travel alone. */
export const CHUNK_GAP_MS = 5
const NO_LIMIT = 1_000_000_000
const KEPT_CONNECTIONS = 256
const PACKAGE = "nginx-light"
/** Where it exists, a package that brings a service is installed without starting it: container images have it. */
const SERVICE_GUARD = "/usr/sbin/policy-rc.d"

export interface Nginx {
  readonly binary: string
  readonly version: string
  /** The module that can pause inside an answer; Debian's nginx-light brings it. */
  readonly echoModule: string
}

export function findNginx(): Nginx {
  const binary = locate() ?? install()
  const told = Bun.spawnSync([binary, "-V"], { stderr: "pipe" }).stderr.toString()
  const version = told.match(/nginx version: nginx\/(\S+)/)?.[1] ?? "of unknown version"
  const modules = told.match(/--modules-path=(\S+)/)?.[1] ?? "/usr/lib/nginx/modules"
  const echoModule = join(modules, "ngx_http_echo_module.so")
  if (!existsSync(echoModule)) {
    throw new Error(`nginx's echo module is missing (${echoModule}): apt-get install libnginx-mod-http-echo`)
  }
  return { binary, version, echoModule }
}

function locate(): string | null {
  return Bun.which("nginx", { PATH: `${process.env.PATH ?? ""}:/usr/sbin:/usr/local/sbin` })
}

function install(): string {
  const advice = `nginx is missing, the bench compares with it: apt-get install ${PACKAGE}`
  if (process.getuid?.() !== 0 || !Bun.which("apt-get") || !existsSync(SERVICE_GUARD)) throw new Error(advice)
  console.log(`nginx is missing: installing ${PACKAGE}`)
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" }
  for (const step of [["update"], ["install", "-y", "--no-install-recommends", PACKAGE]]) {
    const done = Bun.spawnSync(["apt-get", "-qq", ...step], { env, stdout: "ignore", stderr: "pipe" })
    if (done.exitCode !== 0) throw new Error(`apt-get ${step[0]} failed: ${done.stderr.toString().trim()}`)
  }
  const binary = locate()
  if (binary === null) throw new Error(advice)
  return binary
}

/** Answers `/answer/...` at once with the JSON, `/stream/...` and `/messages/...` with events, each as a network chunk of its own. */
export function startUpstream(nginx: Nginx, workshop: Workshop): Promise<Running> {
  const server = `
    location /answer/ { default_type application/json; return 200 '${answerJson}'; }
    ${streamLocation("/stream/", streamEvents)}
    ${streamLocation("/messages/", messagesEvents)}`
  return startServer(nginx, workshop, "upstream", "", server)
}

function streamLocation(path: string, events: readonly string[]): string {
  const steps = events.map((event) => `echo -n '${event.replaceAll("\n", "\\n")}'; echo_flush;`)
  return `location ${path} { default_type text/event-stream;
      ${steps.join(`\n      echo_sleep ${CHUNK_GAP_MS / 1000};\n      `)}
    }`
}

/** The floor: nothing but a proxy, one worker, kept connections on both sides, chunks passed on as they come. */
export function startProxy(nginx: Nginx, workshop: Workshop, upstream: Running): Promise<Running> {
  const { host } = new URL(upstream.url)
  const backend = `upstream backend { server ${host}; keepalive ${KEPT_CONNECTIONS}; keepalive_requests ${NO_LIMIT}; }`
  const server = `
    location / {
      proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    }`
  return startServer(nginx, workshop, "nginx", backend, server)
}

async function startServer(nginx: Nginx, workshop: Workshop, name: string, beside: string, server: string) {
  const folder = join(workshop.folder, `${name}-files`)
  mkdirSync(folder)
  const port = freePort()
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `${kind}_temp_path ${folder};`)
  // Started by root, the worker would become a user who cannot enter the temporary folder.
  const user = process.getuid?.() === 0 ? "user root;" : ""
  const config = `
load_module ${nginx.echoModule};
daemon off; worker_processes 1; ${user} pid ${folder}/pid; error_log stderr error;
events { worker_connections 4096; }
http {
  access_log off; tcp_nodelay on; keepalive_timeout 600s; keepalive_requests ${NO_LIMIT};
  ${temporary.join(" ")}
  ${beside}
  server { listen 127.0.0.1:${port};${server}
  }
}
`
  const file = join(folder, "nginx.conf")
  await Bun.write(file, config)
  const argv = [nginx.binary, "-p", folder, "-e", "stderr", "-c", file]
  return workshop.start({ name, argv, url: `http://127.0.0.1:${port}` })
}
