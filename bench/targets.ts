import { join } from "node:path"
import { stringify } from "yaml"
import { MESSAGES_MODEL } from "./messages-traffic.ts"
import { type Nginx, startProxy } from "./nginx.ts"
import type { Running, Workshop } from "./processes.ts"
import { ANSWER_MODEL, BENCH_KEY, STREAM_MODEL } from "./traffic.ts"

const ROOT = join(import.meta.dir, "..")
/** Bun's own limit of 256 outgoing requests is read at process start; bin/tollgate lifts it the same way. */
const MANY_REQUESTS = { BUN_CONFIG_MAX_HTTP_REQUESTS: "65336" }

export interface Scene {
  readonly nginx: Nginx
  readonly upstream: Running
  readonly workshop: Workshop
}

export interface Target {
  readonly name: string
  /** Paths of the two kinds of request; a plain proxy passes them to the upstream as they are. */
  readonly answerPath: string
  readonly streamPath: string
  start(scene: Scene): Promise<Running>
}

const UPSTREAM_PATHS = { answerPath: "/answer/v1/chat/completions", streamPath: "/stream/v1/chat/completions" }

export const FLOOR = "nginx"
export const PRODUCT = "tollgate"
/** Where Tollgate takes both kinds of request. */
export const PRODUCT_PATH = "/v1/chat/completions"

export const targets: readonly Target[] = [
  {
    name: FLOOR,
    ...UPSTREAM_PATHS,
    start: ({ nginx, workshop, upstream }) => startProxy(nginx, workshop, upstream),
  },
  {
    name: "bare",
    ...UPSTREAM_PATHS,
    start: ({ workshop, upstream }) =>
      workshop.start({
        name: "bare",
        argv: [process.execPath, join(import.meta.dir, "bare-proxy.ts"), upstream.url],
        env: MANY_REQUESTS,
      }),
  },
  {
    name: PRODUCT,
    answerPath: PRODUCT_PATH,
    streamPath: PRODUCT_PATH,
    // Relaying alone is what proxies can be compared by; what keeping books adds is measured by itself (charges.ts).
    start: (scene) => startTollgate(scene, { name: PRODUCT, price: "free", env: { TOLLGATE_BILLING: "off" } }),
  },
]

export interface TollgateOptions {
  readonly name: string
  /** A model's price as the config file has it. */
  readonly price: unknown
  readonly env?: Readonly<Record<string, string>>
}

/** From the checkout, as an operator starts it: a config file, a fresh data folder, SQLite, limits in process. */
export async function startTollgate(
  { workshop, upstream }: Pick<Scene, "workshop" | "upstream">,
  { name, price, env = {} }: TollgateOptions,
): Promise<Running> {
  const config = join(workshop.folder, `${name}.yaml`)
  await Bun.write(config, stringify(tollgateConfig(upstream, price)))
  const data = join(workshop.folder, `${name}-data`)
  const flags = ["--config", config, "--host", "127.0.0.1", "--port", "0", "--data", data]
  return workshop.start({ name, argv: [join(ROOT, "bin/tollgate"), "serve", ...flags], env })
}

function tollgateConfig(upstream: Running, price: unknown) {
  const connection = (name: string, vendor = "openai") => ({
    name,
    vendor,
    base_url: `${upstream.url}/${name}/v1`,
    api_key: "sk-bench-upstream-key",
  })
  const model = (name: string, through: string) => ({
    name,
    price,
    routes: [{ upstream: through, model: "bench-upstream-model" }],
  })
  return {
    upstreams: [connection("answer"), connection("stream"), connection("messages", "anthropic")],
    models: [model(ANSWER_MODEL, "answer"), model(STREAM_MODEL, "stream"), model(MESSAGES_MODEL, "messages")],
    plans: [{ name: "default", concurrency: 0, models: ["*"], price_multiplier: 1 }],
    accounts: [{ name: "bench", plan: "default", balance: 1_000_000, keys: [{ name: "bench", key: BENCH_KEY }] }],
  }
}
