import { expect, test } from "bun:test"
import { endpoints } from "../core/endpoints.ts"
import { findVendor, vendorNames, vendors } from "./presets.ts"

const promised =
  "openai azure-openai anthropic gemini deepseek mistral groq xai openrouter together fireworks moonshot zhipu dashscope " +
  "volcengine-ark minimax siliconflow perplexity cohere jina voyage ollama vllm lmstudio openai-compatible kling runway vidu fal replicate bfl"

const withoutChat = ["anthropic", "jina", "voyage", "kling", "runway", "vidu", "fal", "replicate", "bfl"]
const addressOfTheCustomer = ["azure-openai", "vllm", "openai-compatible"]
const onThisMachine = ["ollama", "lmstudio"]

test("every promised vendor is there, once, in the documented order", () => {
  expect(vendorNames).toEqual(promised.split(" "))
  expect(new Set(vendorNames).size).toBe(vendorNames.length)
})

test("a vendor is found by its exact name only", () => {
  expect(findVendor("kling")?.title).toBe("Kling")
  expect(findVendor("Kling")).toBeUndefined()
  expect(findVendor("constructor")).toBeUndefined()
})

test("base URLs are https without a trailing slash, apart from local servers and customers' own addresses", () => {
  for (const { name, baseUrl } of vendors) {
    if (addressOfTheCustomer.includes(name)) expect(baseUrl).toBeNull()
    else if (onThisMachine.includes(name)) expect(baseUrl).toMatch(/^http:\/\/localhost:\d+\/v1$/)
    else {
      expect(baseUrl).toMatch(/^https:\/\/[a-z0-9.-]+(\/[a-z0-9/]*[a-z0-9])?$/)
      expect(new URL(baseUrl as string).search).toBe("")
    }
  }
})

test("paths belong to known endpoints and begin with a slash", () => {
  for (const vendor of vendors) {
    expect(Object.keys(vendor.paths)).not.toBeEmpty()
    for (const [endpoint, path] of Object.entries(vendor.paths)) {
      expect(endpoints as readonly string[]).toContain(endpoint)
      expect(path).toMatch(/^\/(\S*[^/\s])?$/)
    }
    for (const endpoint of vendor.adapted ?? []) expect(vendor.paths[endpoint]).toBeString()
  }
})

test("every vendor that can chat has a chat path", () => {
  expect(vendors.filter((vendor) => vendor.paths.chat === undefined).map((vendor) => vendor.name)).toEqual(withoutChat)
})

test("the addresses that the documentation promises are the ones called", () => {
  const url = (name: string, endpoint: "chat" | "messages" | "video") => {
    const vendor = findVendor(name)
    return `${vendor?.baseUrl}${vendor?.paths[endpoint]}`
  }
  expect(url("openai", "chat")).toBe("https://api.openai.com/v1/chat/completions")
  expect(url("anthropic", "messages")).toBe("https://api.anthropic.com/v1/messages")
  expect(url("gemini", "chat")).toBe("https://generativelanguage.googleapis.com/v1beta/openai/chat/completions")
  expect(url("dashscope", "chat")).toBe("https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions")
  expect(url("minimax", "video")).toBe("https://api.minimax.io/v1/video_generation")
})

test("presets carry no credential among their headers", () => {
  for (const { headers } of vendors) {
    for (const name of Object.keys(headers ?? {})) expect(name).toMatch(/^(anthropic|x-runway)-version$/)
  }
})
