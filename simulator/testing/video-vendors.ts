import { isObject } from "../../src/core/json.ts"
import type { BehaviourOf } from "../behaviour.ts"

export type Plan = BehaviourOf<"video_job">

export const key = "key-of-the-account"

/** The stages of a job, each made to be found whenever one looks. */
export const lasting = {
  queued: { kind: "video_job", queuedMs: 600_000 },
  running: { kind: "video_job", queuedMs: 0, runningMs: 600_000 },
  over: { kind: "video_job", queuedMs: 0, runningMs: 0 },
} as const satisfies Record<string, Plan>

/** A job that is over at once. */
export function ended(plan: Partial<Plan> = {}): Plan {
  return { ...lasting.over, ...plan }
}

type Found = Readonly<Record<string, unknown>>

/** One vendor's protocol as its own pages show it, for tests that say the same of all. */
export interface VideoVendor {
  readonly name: string
  /** Header and text before the key. */
  readonly auth: readonly [header: string, scheme: string]
  readonly headers?: Readonly<Record<string, string>>
  readonly submit: readonly [path: string, body: Found]
  readonly idAt: string
  readonly poll: (id: string) => string
  /** Where the status word stands; null where the vendor has none. */
  readonly wordAt: string | null
  /** Waiting, at work, done, failed. */
  readonly words: readonly [string, string, string, string]
  /** Where the film's address stands; null where it takes another call. */
  readonly urlAt: string | null
  /** What a bad key is told: status, and part of the body. */
  readonly refusal: readonly [status: number, body: object]
  /** What an id that never was is told: status, and part of the body. */
  readonly unknown: readonly [status: number, body: object]
}

const prompt = "a fox in the snow"

export const videoVendors: readonly VideoVendor[] = [
  {
    name: "kling",
    auth: ["authorization", "Bearer "],
    submit: [
      "/v1/videos/text2video",
      { model_name: "kling-v3", prompt, duration: "5", mode: "std", aspect_ratio: "16:9" },
    ],
    idAt: "data.task_id",
    poll: (id) => `/v1/videos/text2video/${id}`,
    wordAt: "data.task_status",
    words: ["submitted", "processing", "succeed", "failed"],
    urlAt: "data.task_result.videos.0.url",
    refusal: [401, { code: 1002 }],
    unknown: [404, { code: 1203 }],
  },
  {
    name: "volcengine-ark",
    auth: ["authorization", "Bearer "],
    submit: [
      "/api/v3/contents/generations/tasks",
      {
        model: "doubao-seedance-2-0-260128",
        content: [{ type: "text", text: prompt }],
        resolution: "720p",
        duration: 5,
      },
    ],
    idAt: "id",
    poll: (id) => `/api/v3/contents/generations/tasks/${id}`,
    wordAt: "status",
    words: ["queued", "running", "succeeded", "failed"],
    urlAt: "content.video_url",
    refusal: [401, { error: { code: "AuthenticationError" } }],
    unknown: [404, { error: { code: "ResourceNotFound" } }],
  },
  {
    name: "dashscope",
    auth: ["authorization", "Bearer "],
    headers: { "x-dashscope-async": "enable" },
    submit: [
      "/api/v1/services/aigc/video-generation/video-synthesis",
      { model: "wan2.6-t2v", input: { prompt }, parameters: { size: "1280*720", duration: 5 } },
    ],
    idAt: "output.task_id",
    poll: (id) => `/api/v1/tasks/${id}`,
    wordAt: "output.task_status",
    words: ["PENDING", "RUNNING", "SUCCEEDED", "FAILED"],
    urlAt: "output.video_url",
    refusal: [401, { code: "InvalidApiKey" }],
    unknown: [200, { output: { task_status: "UNKNOWN" } }],
  },
  {
    name: "gemini",
    auth: ["x-goog-api-key", ""],
    submit: [
      "/v1beta/models/veo-3.1-generate-preview:predictLongRunning",
      { instances: [{ prompt }], parameters: { aspectRatio: "16:9", resolution: "720p", durationSeconds: 8 } },
    ],
    idAt: "name",
    poll: (name) => `/v1beta/${name}`,
    wordAt: null,
    words: ["", "", "", ""],
    urlAt: null,
    refusal: [401, { error: { code: 401, status: "UNAUTHENTICATED" } }],
    unknown: [404, { error: { code: 404, status: "NOT_FOUND" } }],
  },
  {
    name: "runway",
    auth: ["authorization", "Bearer "],
    headers: { "x-runway-version": "2024-11-06" },
    submit: ["/v1/text_to_video", { model: "gen4.5", promptText: prompt, ratio: "1280:720", duration: 5 }],
    idAt: "id",
    poll: (id) => `/v1/tasks/${id}`,
    wordAt: "status",
    words: ["PENDING", "RUNNING", "SUCCEEDED", "FAILED"],
    urlAt: "output.0",
    refusal: [401, { error: "Unauthorized" }],
    unknown: [404, { error: "Task not found" }],
  },
  {
    name: "minimax",
    auth: ["authorization", "Bearer "],
    submit: ["/v1/video_generation", { model: "MiniMax-Hailuo-2.3", prompt, duration: 6, resolution: "768P" }],
    idAt: "task_id",
    poll: (id) => `/v1/query/video_generation?task_id=${id}`,
    wordAt: "status",
    words: ["Preparing", "Processing", "Success", "Fail"],
    urlAt: null,
    refusal: [200, { base_resp: { status_code: 2049 } }],
    unknown: [200, { base_resp: { status_code: 2013 } }],
  },
  {
    name: "minimax-2",
    auth: ["authorization", "Bearer "],
    submit: [
      "/v2/video_generation",
      { model: "MiniMax-H3", content: [{ type: "text", text: prompt }], resolution: "2K", ratio: "16:9", duration: 5 },
    ],
    idAt: "task_id",
    poll: (id) => `/v2/query/video_generation/${id}`,
    wordAt: "task.status",
    words: ["queued", "running", "succeeded", "failed"],
    urlAt: "task.content.url",
    refusal: [401, { type: "error", error: { type: "authentication_error" } }],
    unknown: [404, { type: "error", error: { type: "not_found_error" } }],
  },
  {
    name: "xai",
    auth: ["authorization", "Bearer "],
    submit: ["/v1/videos/generations", { model: "grok-imagine-video", prompt, duration: 6, resolution: "720p" }],
    idAt: "request_id",
    poll: (id) => `/v1/videos/${id}`,
    wordAt: "status",
    words: ["", "pending", "done", "failed"],
    urlAt: "video.url",
    refusal: [401, { code: "Unauthenticated" }],
    unknown: [404, { code: "Some requested entity was not found" }],
  },
  {
    name: "vidu",
    auth: ["authorization", "Token "],
    submit: [
      "/ent/v2/text2video",
      { model: "viduq3-pro", prompt, duration: 5, aspect_ratio: "16:9", resolution: "720p" },
    ],
    idAt: "task_id",
    poll: (id) => `/ent/v2/tasks/${id}/creations`,
    wordAt: "state",
    words: ["queueing", "processing", "success", "failed"],
    urlAt: "creations.0.url",
    refusal: [401, { code: 401, reason: "Unauthorized" }],
    unknown: [404, { code: 404, reason: "TaskNotFound" }],
  },
  {
    name: "fal",
    auth: ["authorization", "Key "],
    submit: ["/fal-ai/veo3.1/fast", { prompt, aspect_ratio: "16:9", duration: "8s", resolution: "720p" }],
    idAt: "request_id",
    poll: (id) => `/fal-ai/veo3.1/requests/${id}/status`,
    wordAt: "status",
    words: ["IN_QUEUE", "IN_PROGRESS", "COMPLETED", "COMPLETED"],
    urlAt: null,
    refusal: [401, { error_type: "unauthorized" }],
    unknown: [404, { detail: "Request not found" }],
  },
  {
    name: "replicate",
    auth: ["authorization", "Bearer "],
    submit: ["/v1/models/bytedance/seedance-1-pro/predictions", { input: { prompt, duration: 5, resolution: "720p" } }],
    idAt: "id",
    poll: (id) => `/v1/predictions/${id}`,
    wordAt: "status",
    words: ["starting", "processing", "succeeded", "failed"],
    urlAt: "output",
    refusal: [401, { title: "Unauthenticated", status: 401 }],
    unknown: [404, { title: "Not found", status: 404 }],
  },
  {
    name: "zhipu",
    auth: ["authorization", "Bearer "],
    submit: [
      "/api/paas/v4/videos/generations",
      { model: "cogvideox-3", prompt, size: "1920x1080", fps: 30, duration: 5 },
    ],
    idAt: "id",
    poll: (id) => `/api/paas/v4/async-result/${id}`,
    wordAt: "task_status",
    words: ["PROCESSING", "PROCESSING", "SUCCESS", "FAIL"],
    urlAt: "video_result.0.url",
    refusal: [401, { error: { code: "1002" } }],
    unknown: [404, { error: { code: "1214" } }],
  },
  {
    name: "openai-compatible",
    auth: ["authorization", "Bearer "],
    submit: ["/v1/videos", { model: "sora-2", prompt, seconds: "4", size: "1280x720" }],
    idAt: "id",
    poll: (id) => `/v1/videos/${id}`,
    wordAt: "status",
    words: ["queued", "in_progress", "completed", "failed"],
    urlAt: null,
    refusal: [401, { error: { code: "invalid_api_key" } }],
    unknown: [404, { error: { code: "not_found" } }],
  },
]

/** What stands at a place like `data.videos.0.url`; undefined where there is nothing. */
export function at(body: unknown, place: string): unknown {
  return place.split(".").reduce<unknown>((found, name) => {
    if (Array.isArray(found)) return found[Number(name)]
    return isObject(found) ? found[name] : undefined
  }, body)
}
