import { expect, test } from "bun:test"
import { mayCarryCredential } from "./hosts.ts"
import { bfl } from "./image/bfl.ts"

const base = "https://api.bfl.ai/v1"

test.each([
  "https://api.bfl.ai/v1/get_result?id=1",
  "https://api.us1.bfl.ai/v1/get_result?id=1",
  "https://api.eu.bfl.ai/v1/get_result?id=1",
])("the credential goes to %s", (address) => {
  expect(mayCarryCredential(address, base, bfl.hosts)).toBe(true)
})

test.each([
  "https://evilbfl.ai/v1/get_result",
  "https://api.bfl.ai.evil.test/v1/get_result",
  "https://bfl.ai@evil.test/",
  "https://user:secret@api.us1.bfl.ai/v1/get_result",
  "http://api.us1.bfl.ai/v1/get_result",
  "https://api.us1.bfl.ai:8443/v1/get_result",
  "http://169.254.169.254/latest",
  "/v1/get_result",
])("the credential does not go to %s", (address) => {
  expect(mayCarryCredential(address, base, bfl.hosts)).toBe(false)
})

test("the upstream's own address may be anything its operator says, down to the port", () => {
  expect(mayCarryCredential("http://127.0.0.1:9000/x", "http://127.0.0.1:9000/v1", [])).toBe(true)
  expect(mayCarryCredential("http://127.0.0.1:9001/x", "http://127.0.0.1:9000/v1", [])).toBe(false)
})
