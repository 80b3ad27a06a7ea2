import type { Simulator } from "../../simulator/simulator.ts"
import { keyOf } from "./accounts.ts"

/** One request and how it ended, as its client saw it. */
export interface Sent {
  readonly account: string
  readonly model: string
  /** Tokens of the prompt or characters of the input. No two requests for one model have the same, so it names the request. */
  readonly size: number
  /** In 1e-9 dollar, if it is charged. */
  readonly cost: bigint
  /** Null where not even the head of a response came. */
  readonly id: string | null
  /** `whole`: every byte of the right answer came. `refused`: an error came, as a status or in band. `cut`: neither. */
  readonly outcome: "whole" | "refused" | "cut"
  /** The code of the error. */
  readonly code: string | null
  /** Milliseconds on the clock of `performance`. */
  readonly beganAt: number
  readonly endedAt: number
}

/** Clients that ask one request after the other, each of a different size, and remember what they saw. */
export interface PayingCrowd {
  /** A config file's content: the models they use and the accounts that pay. */
  readonly config: object
  readonly accounts: readonly string[]
  readonly sent: readonly Sent[]
  /** All of them ask until told to stop, and are done when their last requests are. */
  run(url: string, isOver: () => boolean): Promise<void>
}

const kinds = ["stream", "answer", "speech"] as const
type Kind = (typeof kinds)[number]

interface Client {
  readonly kind: Kind
  readonly account: string
  readonly model: string
  /** In 1e-9 dollar for each token of the prompt or character of the input. */
  readonly unitCost: number
  lastSize: number
}

/** In dollars each account begins with, far more than anyone uses. */
export const openingDollars = 1_000
const accountNames = ["north", "east", "south", "west"]
const answerText = "every word of this answer is paid for exactly once"
const answerTokens = Math.ceil(answerText.length / 4)
const outputCost = 3_000
/** What the simulator counts for a message beside its text. */
const messageTokens = 4
const charactersPerToken = 4
const speechSeconds = 0.2
/** A gateway that is gone is not asked as fast as the machine can. */
const pauseAfterTroubleMs = 10

export function payingCrowd(simulator: Simulator, size = 16): PayingCrowd {
  const vendor = simulator.vendor("paid")
  const voice = simulator.vendor("paid-voice")
  for (const each of [vendor, voice]) each.keepBodies = false
  vendor.behave({ kind: "chat", text: answerText, gapMs: 3, headDelayMs: 3 })
  voice.behave({ kind: "speech", seconds: speechSeconds, gapMs: 2 })
  const clients = Array.from({ length: size }, (_, number) => clientOf(number))
  const sent: Sent[] = []
  return {
    config: configOf(clients, { paid: vendor.baseUrl, "paid-voice": voice.baseUrl }),
    accounts: accountNames,
    sent,
    async run(url, isOver) {
      const work = async (client: Client): Promise<void> => {
        while (!isOver()) {
          const seen = await ask(client, url)
          sent.push(seen)
          if (seen.outcome !== "whole") await Bun.sleep(pauseAfterTroubleMs)
        }
      }
      await Promise.all(clients.map(work))
    },
  }
}

function clientOf(number: number): Client {
  const kind = kinds[number % kinds.length] ?? "answer"
  const account = accountNames[number % accountNames.length] ?? ""
  return { kind, account, model: `${kind}-${number}`, unitCost: 1_001 + number, lastSize: 0 }
}

function configOf(clients: readonly Client[], addresses: Readonly<Record<string, string>>): object {
  return {
    upstreams: Object.entries(addresses).map(([name, base_url]) => ({
      name,
      vendor: "openai",
      base_url,
      api_key: "k",
    })),
    models: clients.map(({ kind, model, unitCost }) => ({
      name: model,
      price:
        kind === "speech"
          ? { character: (unitCost / 1e9).toFixed(9) }
          : { input: (unitCost / 1e3).toFixed(3), output: (outputCost / 1e3).toFixed(3) },
      routes: [{ upstream: kind === "speech" ? "paid-voice" : "paid" }],
    })),
    plans: [{ name: "default", concurrency: 0, models: ["*"] }],
    accounts: accountNames.map((name) => ({
      name,
      plan: "default",
      balance: openingDollars,
      keys: [{ name: "k", key: keyOf(name) }],
    })),
  }
}

async function ask(client: Client, url: string): Promise<Sent> {
  client.lastSize += 1
  const { kind, account, model, unitCost, lastSize } = client
  const text = "x".repeat(kind === "speech" ? lastSize : lastSize * charactersPerToken)
  const size = kind === "speech" ? lastSize : lastSize + messageTokens
  const cost = BigInt(size * unitCost + (kind === "speech" ? 0 : answerTokens * outputCost))
  const beganAt = performance.now()
  const seen = await see(kind, url, { account, model, text })
  return { account, model, size, cost, ...seen, beganAt, endedAt: performance.now() }
}

type Seen = Pick<Sent, "id" | "outcome" | "code">

async function see(
  kind: Kind,
  url: string,
  { account, model, text }: { readonly account: string; readonly model: string; readonly text: string },
): Promise<Seen> {
  const path = kind === "speech" ? "/v1/audio/speech" : "/v1/chat/completions"
  const body =
    kind === "speech"
      ? { model, input: text, voice: "v", response_format: "pcm" }
      : { model, stream: kind === "stream", messages: [{ role: "user", content: text }] }
  let id: string | null = null
  try {
    const response = await fetch(url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${keyOf(account)}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    })
    id = response.headers.get("x-request-id")
    const bytes = Buffer.from(await response.arrayBuffer())
    if (response.status !== 200) return { id, outcome: "refused", code: codeIn(bytes.toString()) }
    if (isWhole[kind](bytes)) return { id, outcome: "whole", code: null }
    const code = kind === "stream" ? codeIn(bytes.toString().split("data: ").at(-1) ?? "") : null
    return { id, outcome: code === null ? "cut" : "refused", code }
  } catch {
    return { id, outcome: "cut", code: null }
  }
}

const samplesPerSecond = 24_000
const bytesPerSample = 2

const isWhole: Readonly<Record<Kind, (bytes: Buffer) => boolean>> = {
  stream: (bytes) => bytes.toString().endsWith("data: [DONE]\n\n"),
  answer: (bytes) => {
    try {
      return JSON.parse(bytes.toString()).choices[0].message.content === answerText
    } catch {
      return false
    }
  },
  speech: (bytes) => bytes.length === speechSeconds * samplesPerSecond * bytesPerSample,
}

/** The code of an error envelope; null for anything else. */
function codeIn(text: string): string | null {
  const found = /"code":"(\w+)"/.exec(text)
  return found?.[1] ?? null
}
