export type Environment = Readonly<Record<string, string | undefined>>

export type Substitution =
  /** `used` says whether anything came from the environment, and so must never be shown. */
  { readonly text: string; readonly used: boolean } | { readonly problem: string }

const reference = /\$\$\{|\$\{([^}]*)(\}?)/g
const literalAdvice = `write "$\${" for a literal "\${"`
const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Reads `${NAME}` from the environment, anywhere in the text; `$${` stands for a literal `${`. */
export function substitute(text: string, env: Environment): Substitution {
  const problems: string[] = []
  let used = false
  const result = text.replace(reference, (whole: string, name: string | undefined, closed: string | undefined) => {
    if (name === undefined) return "${"
    if (closed === "") problems.push(`has "\${" without "}" (${literalAdvice})`)
    else if (!variableName.test(name)) problems.push(`names no environment variable in "\${…}" (${literalAdvice})`)
    else if (env[name] === undefined) problems.push(`environment variable ${name} is not set`)
    else {
      used = true
      return env[name]
    }
    return whole
  })
  return problems.length > 0 ? { problem: [...new Set(problems)].join("; ") } : { text: result, used }
}

/** The text that `substitute` turns back into exactly this one. */
export function escapeReferences(text: string): string {
  return text.replaceAll("${", "$$${")
}

/** True for a text that is one `${NAME}` and nothing else. */
export function isWholeReference(text: string): boolean {
  return /^\$\{[A-Za-z_][A-Za-z0-9_]*\}$/.test(text)
}
