/** Where a value stands in the file: map keys and list positions, from the top. */
export type Path = readonly (string | number)[]

const plainKey = /^[A-Za-z_][\w-]*$/

/** `models[2].routes[0].upstream`; a key that would be misread is quoted: `headers["a.b"]`. */
export function formatPath(path: Path): string {
  let text = ""
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`
    else if (!plainKey.test(step)) text += `[${JSON.stringify(step)}]`
    else text += text === "" ? step : `.${step}`
  }
  return text
}

const lastStep = /(?:\.?[A-Za-z_][\w-]*|\[\d+\]|\["(?:[^"\\]|\\.)*"\])$/

/** The same path without its last step, or null at the top. */
export function parentPath(text: string): string | null {
  return text === "" ? null : text.replace(lastStep, "")
}
