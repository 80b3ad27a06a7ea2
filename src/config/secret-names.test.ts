import { expect, test } from "bun:test"
import type { AccountConfig, UpstreamConfig } from "./document.ts"
import { placeSecrets } from "./secret-names.ts"

const upstream = (name: string, ...apiKeys: string[]): UpstreamConfig => ({
  name,
  vendor: "openai",
  baseUrl: null,
  apiKeys,
  headers: {},
  timeouts: {},
  concurrency: 0,
  settings: {},
})

const account = (name: string, ...keys: string[]): AccountConfig => ({
  name,
  plan: null,
  concurrency: null,
  balance: null,
  keys: keys.map((key) => ({ name: key, key: `secret of ${key}` })),
})

test("secrets are named after their owners", () => {
  const { document, names, placeholders } = placeSecrets({
    upstreams: [upstream("openai-main", "s1", "s2"), upstream("local")],
    accounts: [account("acme", "ci")],
    people: [{ email: "root@example.com", password: "s3", role: "admin", account: null }],
  })
  expect(names).toEqual(["OPENAI_MAIN_API_KEY", "OPENAI_MAIN_API_KEY_2", "ACME_CI_KEY", "ROOT_EXAMPLE_COM_PASSWORD"])
  expect(document.upstreams?.[0]?.apiKeys).toEqual([`\${OPENAI_MAIN_API_KEY}`, `\${OPENAI_MAIN_API_KEY_2}`])
  expect(document.accounts?.[0]?.keys).toEqual([{ name: "ci", key: `\${ACME_CI_KEY}` }])
  expect(document.people?.[0]?.password).toBe(`\${ROOT_EXAMPLE_COM_PASSWORD}`)
  expect(placeholders.has(`\${ACME_CI_KEY}`)).toBe(true)
  expect(JSON.stringify(document)).not.toMatch(/s[123]|secret/)
})

test("names that would be equal are told apart by a number, the same way each time", () => {
  const document = { upstreams: [upstream("a-b", "x"), upstream("a b", "y"), upstream("a.b", "z", "w")] }
  const names = ["A_B_API_KEY", "A_B_API_KEY_2", "A_B_API_KEY_3", "A_B_API_KEY_4"]
  expect(placeSecrets(document).names).toEqual(names)
  expect(placeSecrets(document).names).toEqual(names)
})

test("every owner gets a name that a shell accepts", () => {
  const { names } = placeSecrets({ upstreams: [upstream("通义", "x"), upstream("4o", "y"), upstream("été ☀", "z")] })
  expect(names).toEqual(["UNNAMED_API_KEY", "_4O_API_KEY", "T_API_KEY"])
  for (const name of names) expect(name).toMatch(/^[A-Z_][A-Z0-9_]*$/)
})
