import type { Endpoint } from "../core/endpoints.ts"
import type { VendorPreset, VendorSetting } from "../core/vendor.ts"

type Paths = VendorPreset["paths"]

/** The paths of the chat-completions family, relative to a base that ends in its version. */
const familyPaths: Readonly<Record<Endpoint, string>> = {
  chat: "/chat/completions",
  responses: "/responses",
  messages: "/messages",
  embeddings: "/embeddings",
  image_generations: "/images/generations",
  image_edits: "/images/edits",
  image_variations: "/images/variations",
  speech: "/audio/speech",
  transcriptions: "/audio/transcriptions",
  translations: "/audio/translations",
  rerank: "/rerank",
  video: "/videos",
}

const openaiAudio = ["speech", "transcriptions", "translations"] as const
const openaiImages = ["image_generations", "image_edits", "image_variations"] as const

/** The family's own paths for the endpoints named, below `prefix`. */
function family(names: readonly Endpoint[], prefix = ""): Paths {
  return Object.fromEntries(names.map((name) => [name, prefix + familyPaths[name]]))
}

const streamOptionsSetting: Readonly<Record<string, VendorSetting>> = {
  no_stream_options: {
    type: "boolean",
    meaning:
      "True where the server refuses `stream_options`; usage is then counted by the gateway if the server sends none.",
  },
}

const wanSettings: Readonly<Record<string, VendorSetting>> = {
  wan_first_frame: {
    type: "string",
    meaning:
      "Where Wan models from 2.7 on take the picture of an image-to-video job: `media` (the default) or `img_url`, as the older ones do.",
  },
}

const zhipuSettings: Readonly<Record<string, VendorSetting>> = {
  bare_base64_images: {
    type: "boolean",
    meaning: "True to send the pictures of video requests as bare base64 instead of as data URLs.",
  },
}

/** How a chat upstream wants to be asked for callers who speak messages; each has a default that works nearly everywhere. */
const bridgeSettings: Readonly<Record<string, VendorSetting>> = {
  mid_system: {
    type: "string",
    choices: ["keep", "user", "merge"],
    meaning:
      "What becomes of a system message in mid conversation when the messages dialect is bridged: kept in its place (the default), made a user message, or merged into the first one.",
  },
  reasoning_replay: {
    type: "boolean",
    meaning: "True where the server wants its own reasoning of earlier turns back as `reasoning_content`.",
  },
  max_completion_tokens: {
    type: "boolean",
    meaning: "True where the server takes `max_completion_tokens` instead of `max_tokens`.",
  },
  pdf: { type: "boolean", meaning: "True where the server reads PDF documents in `file` parts." },
  tool_name_limit: {
    type: "string",
    meaning:
      'The longest tool name that the server takes, "64" unless set; longer ones are shortened on the way there and restored on the way back. "none" leaves all as they are.',
  },
}

/*
 * Base URLs are those that a vendor's own pages tell people to copy, so that an operator's `base_url` means the same thing here;
 * a dialect outside that prefix is left to the bridges. `// unverified` marks what could not be confirmed.
 * A video path is the submit path where there is one, else the prefix that the adapter builds on.
 */
// biome-ignore format: a table, one vendor after the other, is easier to compare than a column of braces
const table: readonly VendorPreset[] = [
  { name: "openai", title: "OpenAI", baseUrl: "https://api.openai.com/v1", auth: "bearer",
    paths: family(["chat", "responses", "embeddings", ...openaiImages, ...openaiAudio]) },
  // The v1 API: one address per resource, no api-version in the query; the model name is the deployment.
  { name: "azure-openai", title: "Azure OpenAI", baseUrl: null, auth: "api-key",
    paths: family(["chat", "responses", "embeddings", "image_generations", "image_edits", ...openaiAudio]) }, // audio under v1: unverified
  { name: "anthropic", title: "Anthropic", baseUrl: "https://api.anthropic.com/v1", auth: "x-api-key", headers: { "anthropic-version": "2023-06-01" },
    paths: family(["messages"]) },
  // Chat is on the compatible layer, which takes the key as a bearer; Veo is on the native API, which does not.
  { name: "gemini", title: "Google Gemini", baseUrl: "https://generativelanguage.googleapis.com/v1beta", auth: "bearer", authFor: { video: "x-goog-api-key" },
    paths: { ...family(["chat", "embeddings", "image_generations"], "/openai"), video: "/models" } }, // images: unverified
  { name: "deepseek", title: "DeepSeek", baseUrl: "https://api.deepseek.com", auth: "bearer",
    paths: { ...family(["chat"]), messages: "/anthropic/v1/messages" } },
  // Answers 422 to stream_options and sends usage in its last chunk without being asked.
  { name: "mistral", title: "Mistral AI", baseUrl: "https://api.mistral.ai/v1", auth: "bearer", quirks: { noStreamOptions: true },
    paths: family(["chat", "embeddings", "transcriptions"]) },
  { name: "groq", title: "Groq", baseUrl: "https://api.groq.com/openai/v1", auth: "bearer",
    paths: family(["chat", "responses", ...openaiAudio]) }, // speech: unverified
  { name: "xai", title: "xAI", baseUrl: "https://api.x.ai/v1", auth: "bearer",
    paths: { ...family(["chat", "responses", "image_generations"]), video: "/videos/generations" } },
  { name: "openrouter", title: "OpenRouter", baseUrl: "https://openrouter.ai/api/v1", auth: "bearer",
    paths: family(["chat", "responses", "messages", "embeddings", "rerank", "speech", "transcriptions"]) },
  { name: "together", title: "Together AI", baseUrl: "https://api.together.ai/v1", auth: "bearer",
    paths: family(["chat", "embeddings", "image_generations", ...openaiAudio, "rerank"]) },
  { name: "fireworks", title: "Fireworks AI", baseUrl: "https://api.fireworks.ai/inference/v1", auth: "bearer",
    paths: family(["chat", "responses", "messages", "embeddings", "rerank"]) },
  { name: "moonshot", title: "Moonshot AI (Kimi)", baseUrl: "https://api.moonshot.ai/v1", auth: "bearer",
    paths: family(["chat", "responses"]) },
  { name: "zhipu", title: "Zhipu AI (Z.ai)", baseUrl: "https://open.bigmodel.cn/api/paas/v4", auth: "bearer", settings: zhipuSettings,
    paths: { ...family(["chat", "embeddings", "image_generations", "speech", "transcriptions", "rerank"]), video: "/videos/generations" } }, // audio, rerank: unverified
  // The bare origin is all that its chat, image and video paths share; its images are jobs, not the family's call.
  { name: "dashscope", title: "Alibaba DashScope (Model Studio)", baseUrl: "https://dashscope.aliyuncs.com", auth: "bearer", adapted: ["image_generations"], settings: wanSettings,
    paths: { ...family(["chat", "embeddings"], "/compatible-mode/v1"), responses: "/api/v2/apps/protocols/compatible-mode/v1/responses", messages: "/apps/anthropic/v1/messages",
      image_generations: "/api/v1/services/aigc", rerank: "/compatible-api/v1/reranks", video: "/api/v1/services/aigc/video-generation/video-synthesis" } }, // rerank: unverified
  { name: "volcengine-ark", title: "Volcengine Ark (BytePlus by its base URL)", baseUrl: "https://ark.cn-beijing.volces.com/api/v3", auth: "bearer",
    paths: { ...family(["chat", "responses", "embeddings", "image_generations"]), video: "/contents/generations/tasks" } },
  { name: "minimax", title: "MiniMax", baseUrl: "https://api.minimax.io", auth: "bearer",
    paths: { ...family(["chat", "responses"], "/v1"), messages: "/anthropic/v1/messages", video: "/v1/video_generation" } },
  { name: "siliconflow", title: "SiliconFlow", baseUrl: "https://api.siliconflow.com/v1", auth: "bearer",
    paths: family(["chat", "messages", "embeddings", "image_generations", "speech", "transcriptions", "rerank"]) },
  // Sends usage in every chunk without being asked; whether it takes stream_options is unverified, so it is not asked.
  { name: "perplexity", title: "Perplexity", baseUrl: "https://api.perplexity.ai", auth: "bearer", quirks: { noStreamOptions: true },
    paths: { ...family(["chat"]), ...family(["responses", "embeddings"], "/v1") } }, // embeddings: unverified
  { name: "cohere", title: "Cohere", baseUrl: "https://api.cohere.ai", auth: "bearer",
    paths: { ...family(["chat", "embeddings"], "/compatibility/v1"), rerank: "/v2/rerank" } }, // stream_options: unverified
  { name: "jina", title: "Jina AI", baseUrl: "https://api.jina.ai/v1", auth: "bearer",
    paths: family(["embeddings", "rerank"]) },
  { name: "voyage", title: "Voyage AI", baseUrl: "https://api.voyageai.com/v1", auth: "bearer",
    paths: family(["embeddings", "rerank"]) },
  { name: "ollama", title: "Ollama", baseUrl: "http://localhost:11434/v1", auth: "bearer", keyOptional: true,
    paths: family(["chat", "responses", "messages", "embeddings"]) },
  { name: "vllm", title: "vLLM", baseUrl: null, auth: "bearer", keyOptional: true,
    paths: family(["chat", "responses", "messages", "embeddings", "transcriptions", "translations", "rerank"]) },
  { name: "lmstudio", title: "LM Studio", baseUrl: "http://localhost:1234/v1", auth: "bearer", keyOptional: true,
    paths: family(["chat", "responses", "messages", "embeddings"]) },
  // All of the family but messages, which few such servers have and the bridge can serve from chat.
  { name: "openai-compatible", title: "Any OpenAI-compatible server", baseUrl: null, auth: "bearer", keyOptional: true, settings: streamOptionsSetting,
    paths: family(["chat", "responses", "embeddings", ...openaiImages, ...openaiAudio, "rerank", "video"]) },
  { name: "kling", title: "Kling", baseUrl: "https://api-singapore.klingai.com", auth: "bearer",
    paths: { video: "/v1/videos" } },
  { name: "runway", title: "Runway", baseUrl: "https://api.dev.runwayml.com", auth: "bearer", headers: { "x-runway-version": "2024-11-06" },
    paths: { video: "/v1" } },
  { name: "vidu", title: "Vidu", baseUrl: "https://api.vidu.com", auth: "authorization-token",
    paths: { video: "/ent/v2" } },
  { name: "fal", title: "fal.ai", baseUrl: "https://queue.fal.run", auth: "authorization-key", adapted: ["image_generations"],
    paths: { image_generations: "/", video: "/" } },
  { name: "replicate", title: "Replicate", baseUrl: "https://api.replicate.com/v1", auth: "bearer", adapted: ["image_generations"],
    paths: { image_generations: "/models", video: "/models" } },
  { name: "bfl", title: "Black Forest Labs", baseUrl: "https://api.bfl.ai/v1", auth: "x-key", adapted: ["image_generations"],
    paths: { image_generations: "/" } },
]

export const vendors: readonly VendorPreset[] = table.map((vendor) =>
  vendor.paths.chat === undefined ? vendor : { ...vendor, settings: { ...bridgeSettings, ...vendor.settings } },
)

const byName: ReadonlyMap<string, VendorPreset> = new Map(vendors.map((vendor) => [vendor.name, vendor]))

export const vendorNames: readonly string[] = vendors.map((vendor) => vendor.name)

export function findVendor(name: string): VendorPreset | undefined {
  return byName.get(name)
}
