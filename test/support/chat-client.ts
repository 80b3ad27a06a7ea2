/** Chat requests to a gateway of another process. */

export interface ChatAnswer {
  readonly status: number
  /** The upstream model that answered; null where none did. */
  readonly model: string | null
  /** The code of the error; null where there is none. */
  readonly code: string | null
}

export function postChat(url: string, key: string, body: object, init: RequestInit = {}): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ messages: [{ role: "user", content: "hi" }], ...body }),
    ...init,
  })
}

/** Asks for a completion and tells who answered what. */
export async function askChat(url: string, key: string, model: string): Promise<ChatAnswer> {
  const response = await postChat(url, key, { model })
  const body = (await response.json()) as { model?: string; error?: { code?: string } }
  return { status: response.status, model: body.model ?? null, code: body.error?.code ?? null }
}

export interface StreamRead {
  readonly text: string
  /** The models that the chunks name. */
  readonly models: readonly string[]
  /** The last event of the stream. */
  readonly last: string
}

/** Reads a stream to its end. */
export async function readStream(response: Response): Promise<StreamRead> {
  const events = (await response.text()).split("\n\n").filter((event) => event.startsWith("data: "))
  const chunks = events
    .map((event) => event.slice("data: ".length))
    .filter((data) => data !== "[DONE]")
    .map((data) => JSON.parse(data) as { model?: string; choices?: { delta?: { content?: string } }[] })
  return {
    text: chunks.map((chunk) => chunk.choices?.[0]?.delta?.content ?? "").join(""),
    models: [...new Set(chunks.flatMap((chunk) => chunk.model ?? []))],
    last: events.at(-1)?.slice("data: ".length) ?? "",
  }
}
