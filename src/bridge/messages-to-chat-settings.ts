import type { JsonValue } from "../core/json.ts"
import { defaultToolNameLimit } from "./messages-to-chat-parts.ts"

/** How chat upstreams differ in what they take from a messages request. */
export interface ChatTastes {
  /**
   * `mid_system`: what becomes of a system message in mid conversation. "keep" leaves it in its place; "user" makes it a user
   * message, and joins neighbouring ones since such upstreams want roles to alternate; "merge" adds it to the first system message.
   */
  readonly midSystem: "keep" | "user" | "merge"
  /** `reasoning_replay`: the upstream wants its own reasoning of earlier turns back as `reasoning_content`. */
  readonly reasoningReplay: boolean
  /** `max_completion_tokens`: the upstream refuses `max_tokens` and takes the limit under this name. */
  readonly maxCompletionTokens: boolean
  /** `pdf`: the upstream reads PDF files in `file` parts; others are told that there was one. */
  readonly pdf: boolean
  /** `tool_name_limit`: the longest tool name that the upstream takes, 64 unless set; "none" sends names as they are. */
  readonly toolNameLimit: number | null
}

/** Reads the upstream's settings; one that is missing, or that nobody understands, is its default, which works nearly everywhere. */
export function chatTastes(settings: Readonly<Record<string, JsonValue>> = {}): ChatTastes {
  const { mid_system: midSystem } = settings
  return {
    midSystem: midSystem === "user" || midSystem === "merge" ? midSystem : "keep",
    reasoningReplay: settings.reasoning_replay === true,
    maxCompletionTokens: settings.max_completion_tokens === true,
    pdf: settings.pdf === true,
    toolNameLimit: nameLimit(settings.tool_name_limit),
  }
}

function nameLimit(setting: JsonValue | undefined): number | null {
  if (setting === null || setting === "none") return null
  const limit = typeof setting === "string" ? Number(setting) : setting
  return typeof limit === "number" && Number.isSafeInteger(limit) && limit > 0 ? limit : defaultToolNameLimit
}
