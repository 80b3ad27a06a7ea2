import type { ConfigDocument } from "./document.ts"

export interface PlacedSecrets {
  /** The document with `${NAME}` in the place of every secret. */
  readonly document: ConfigDocument
  /** For the writer: the texts that are placeholders. */
  readonly placeholders: ReadonlySet<string>
  /** The environment variables to set before the file can be read, in the order of the file. */
  readonly names: readonly string[]
}

/** Upper case, digits and `_`; a name that has none of them, such as one in Chinese, becomes `UNNAMED`. */
function environmentWord(text: string): string {
  const word = text
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, "_")
    .replace(/^_+|_+$/g, "")
  if (word === "") return "UNNAMED"
  return /^\d/.test(word) ? `_${word}` : word
}

/**
 * Replaces every credential, account key and password by a placeholder named after its owner: `OPENAI_MAIN_API_KEY`, `ACME_CI_KEY`,
 * `ROOT_EXAMPLE_COM_PASSWORD`. The same document always gets the same names; where two would be equal the later gets a number.
 */
export function placeSecrets(document: ConfigDocument): PlacedSecrets {
  const names = new Set<string>()
  const place = (wanted: string): string => {
    let name = wanted
    for (let number = 2; names.has(name); number++) name = `${wanted}_${number}`
    names.add(name)
    return `\${${name}}`
  }
  const { upstreams, accounts, people } = document
  const placed: ConfigDocument = {
    ...document,
    ...(upstreams && {
      upstreams: upstreams.map((upstream) => ({
        ...upstream,
        apiKeys: upstream.apiKeys.map(() => place(`${environmentWord(upstream.name)}_API_KEY`)),
      })),
    }),
    ...(accounts && {
      accounts: accounts.map((account) => ({
        ...account,
        keys: account.keys.map(({ name }) => ({
          name,
          key: place(`${environmentWord(`${account.name} ${name}`)}_KEY`),
        })),
      })),
    }),
    ...(people && {
      people: people.map((person) => ({ ...person, password: place(`${environmentWord(person.email)}_PASSWORD`) })),
    }),
  }
  return { document: placed, placeholders: new Set([...names].map((name) => `\${${name}}`)), names: [...names] }
}
