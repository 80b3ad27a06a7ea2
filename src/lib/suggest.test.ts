import { expect, test } from "bun:test"
import { suggest } from "./suggest.ts"

const vendors = ["openai", "openrouter", "azure-openai", "ollama", "xai"]

test.each([
  ["openia", "openai"],
  ["OpenAI", "openai"],
  ["azure_openai", "azure-openai"],
  ["olama", "ollama"],
  ["open-router", "openrouter"],
])("%s was meant to be %s", (word, meant) => {
  expect(suggest(word, vendors)).toBe(meant)
})

test.each(["", "x", "banana", "o".repeat(500)])("nothing is suggested for a word unlike all others (%#)", (word) => {
  expect(suggest(word, vendors)).toBeNull()
})

test("of two close words the closer one is suggested", () => {
  expect(suggest("base_ur", ["base", "base_url"])).toBe("base_url")
})
