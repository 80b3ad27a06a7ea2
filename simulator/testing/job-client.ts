/** A JSON answer as tests of jobs look at it. */
export interface Seen {
  readonly status: number
  readonly headers: Headers
  readonly body: Record<string, unknown>
}

/** Calls an address and reads the JSON it answers. */
export async function call(url: string, init: RequestInit = {}): Promise<Seen> {
  const response = await fetch(url, init)
  return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) }
}

export function postJson(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Seen> {
  return call(url, { method: "POST", body: JSON.stringify(body), headers })
}

/** What each of so many polls in a row sees. */
export async function polls<T>(count: number, poll: () => Promise<T>): Promise<T[]> {
  const seen: T[] = []
  for (let done = 0; done < count; done++) seen.push(await poll())
  return seen
}
