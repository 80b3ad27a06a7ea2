import OpenAI from "openai"
import type { Response as ResponsesAnswer } from "openai/resources/responses/responses"
import type { CheckedStream } from "./responses-check.ts"

/** Serves a stream's text once over loopback and reads it with the vendor's own package. */
export async function readWithOpenAi(text: string): Promise<ResponsesAnswer> {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => new Response(text, { headers: { "content-type": "text/event-stream" } }),
  })
  try {
    const client = new OpenAI({ apiKey: "sk-any", baseURL: `http://127.0.0.1:${server.port}/v1`, maxRetries: 0 })
    return await client.responses.stream({ model: "any", input: "any" }).finalResponse()
  } finally {
    await server.stop(true)
  }
}

/** The package adds what it parsed to whatever it reads. */
export function withoutParsed(read: ResponsesAnswer): CheckedStream["response"] {
  const added = new Set(["parsed", "output_parsed", "parsed_arguments"])
  return JSON.parse(JSON.stringify(read, (key, value: unknown) => (added.has(key) ? undefined : value)))
}
