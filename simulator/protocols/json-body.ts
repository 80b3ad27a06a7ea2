/** The JSON of a body, or undefined where it is none. */
export function readJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
}

/** A request that the real vendor would refuse with 400. */
export interface Unacceptable {
  readonly problem: string
  readonly param: string | null
}

export const notJson: Unacceptable = { problem: "We could not parse the JSON body of your request.", param: null }
export const noModel: Unacceptable = { problem: "you must provide a model parameter", param: null }

export function missing(param: string): Unacceptable {
  return { problem: `Missing required parameter: '${param}'.`, param }
}
