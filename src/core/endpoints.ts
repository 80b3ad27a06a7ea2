/** The model API's operations, one name for each path family; vendor presets say which of them a vendor has. */
export const endpoints = [
  "chat",
  "responses",
  "messages",
  "embeddings",
  "image_generations",
  "image_edits",
  "image_variations",
  "speech",
  "transcriptions",
  "translations",
  "rerank",
  "video",
] as const

export type Endpoint = (typeof endpoints)[number]

/** How an error is written for the caller: the unified envelope, or the messages-style one under /compat. */
export type ErrorDialect = "unified" | "messages"
