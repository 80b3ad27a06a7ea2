import type { JsonObject } from "../../src/core/json.ts"
import { pngBase64, pngUrl, prompt } from "./video-scene.ts"

/** A request as a vendor receives it; `"JOB"` in a body stands for the gateway's own id of the job. */
export interface SentSample {
  /** Below the upstream's base URL. */
  readonly path: string
  readonly body: JsonObject
}

/** One vendor: what it is asked for here, in the caller's words and in its own. */
export interface VideoSample {
  readonly vendor: string
  readonly model: string
  /** Where pictures take another model. */
  readonly pictureModel?: string
  /** How the credential goes along: header, and the text before it. */
  readonly auth: readonly [header: string, scheme: string]
  readonly headers?: Readonly<Record<string, string>>
  /** In seconds: what the caller asks for. */
  readonly duration: number
  /** Where nothing is asked for. */
  readonly usual: number
  /** A length that it does not make, and the words that say what it makes. */
  readonly refused: readonly [duration: number, takes: string]
  readonly text: SentSample
  readonly picture: SentSample
  /** Whether the vendor says how long a video is. */
  readonly reports: boolean
  /** Whether its results open for anyone. */
  readonly open: boolean
  /** The status words it is known to use while a job is not over, and what callers see then. */
  readonly words: Readonly<Record<string, "queued" | "in_progress">>
}

export const extra = { negative_prompt: "rain" } as const
export const size = "1280x720"

const bearer = ["authorization", "Bearer "] as const

export const videoSamples: readonly VideoSample[] = [
  {
    vendor: "kling",
    model: "kling-v3",
    auth: bearer,
    duration: 7,
    usual: 5,
    refused: [2, "3 to 15 seconds"],
    text: {
      path: "/v1/videos/text2video",
      body: {
        ...extra,
        model_name: "kling-v3",
        prompt,
        duration: "7",
        mode: "std",
        aspect_ratio: "16:9",
        external_task_id: "JOB",
      },
    },
    picture: {
      path: "/v1/videos/image2video",
      body: {
        ...extra,
        model_name: "kling-v3",
        prompt,
        image: pngBase64,
        duration: "7",
        mode: "std",
        external_task_id: "JOB",
      },
    },
    reports: true,
    open: true,
    words: { submitted: "queued", processing: "in_progress", Rendering: "in_progress" },
  },
  {
    vendor: "volcengine-ark",
    model: "doubao-seedance-2-0-260128",
    auth: bearer,
    duration: 6,
    usual: 5,
    refused: [3, "4 to 15 seconds"],
    text: {
      path: "/contents/generations/tasks",
      body: {
        ...extra,
        model: "doubao-seedance-2-0-260128",
        content: [{ type: "text", text: prompt }],
        resolution: "720p",
        ratio: "16:9",
        duration: 6,
      },
    },
    picture: {
      path: "/contents/generations/tasks",
      body: {
        ...extra,
        model: "doubao-seedance-2-0-260128",
        content: [
          { type: "text", text: prompt },
          { type: "image_url", image_url: { url: pngUrl }, role: "first_frame" },
        ],
        resolution: "720p",
        ratio: "16:9",
        duration: 6,
      },
    },
    reports: true,
    open: true,
    words: {
      queued: "queued",
      pending: "queued",
      running: "in_progress",
      processing: "in_progress",
      Rendering: "in_progress",
    },
  },
  {
    vendor: "dashscope",
    model: "wan2.6-t2v",
    pictureModel: "wan2.6-i2v",
    auth: bearer,
    headers: { "x-dashscope-async": "enable" },
    duration: 6,
    usual: 5,
    refused: [16, "2 to 15 seconds"],
    text: {
      path: "/api/v1/services/aigc/video-generation/video-synthesis",
      body: { model: "wan2.6-t2v", input: { ...extra, prompt }, parameters: { size: "1280*720", duration: 6 } },
    },
    picture: {
      path: "/api/v1/services/aigc/video-generation/video-synthesis",
      body: {
        model: "wan2.6-i2v",
        input: { ...extra, prompt, img_url: pngUrl },
        parameters: { resolution: "720P", duration: 6 },
      },
    },
    reports: true,
    open: true,
    words: { PENDING: "queued", SUSPENDED: "queued", RUNNING: "in_progress", Rendering: "in_progress" },
  },
  {
    vendor: "gemini",
    model: "veo-3.1-generate-preview",
    auth: ["x-goog-api-key", ""],
    duration: 6,
    usual: 8,
    refused: [5, "4, 6, 8 seconds"],
    text: {
      path: "/models/veo-3.1-generate-preview:predictLongRunning",
      body: {
        instances: [{ prompt }],
        parameters: { ...extra, aspectRatio: "16:9", resolution: "720p", durationSeconds: 6, sampleCount: 1 },
      },
    },
    picture: {
      path: "/models/veo-3.1-generate-preview:predictLongRunning",
      body: {
        instances: [{ prompt, image: { bytesBase64Encoded: pngBase64, mimeType: "image/png" } }],
        parameters: { ...extra, aspectRatio: "16:9", resolution: "720p", durationSeconds: 6, sampleCount: 1 },
      },
    },
    reports: false,
    open: false,
    words: {},
  },
  {
    vendor: "runway",
    model: "gen4.5",
    auth: bearer,
    headers: { "x-runway-version": "2024-11-06" },
    duration: 6,
    usual: 5,
    refused: [11, "2 to 10 seconds"],
    text: {
      path: "/v1/text_to_video",
      body: { ...extra, model: "gen4.5", promptText: prompt, duration: 6, ratio: "1280:720" },
    },
    picture: {
      path: "/v1/image_to_video",
      body: {
        ...extra,
        model: "gen4.5",
        promptText: prompt,
        duration: 6,
        ratio: "1280:720",
        promptImage: [{ uri: pngUrl, position: "first" }],
      },
    },
    reports: false,
    open: true,
    words: { PENDING: "queued", THROTTLED: "queued", RUNNING: "in_progress", Rendering: "in_progress" },
  },
  {
    vendor: "minimax",
    model: "MiniMax-H3",
    auth: bearer,
    duration: 6,
    usual: 5,
    refused: [16, "5 to 15 seconds"],
    text: {
      path: "/v2/video_generation",
      body: {
        ...extra,
        model: "MiniMax-H3",
        content: [{ type: "text", text: prompt }],
        resolution: "768P",
        ratio: "16:9",
        duration: 6,
      },
    },
    picture: {
      path: "/v2/video_generation",
      body: {
        ...extra,
        model: "MiniMax-H3",
        content: [
          { type: "text", text: prompt },
          { type: "image_url", image_url: { url: pngUrl }, role: "first_frame" },
        ],
        resolution: "768P",
        duration: 6,
      },
    },
    reports: true,
    open: true,
    words: { queued: "queued", running: "in_progress", Rendering: "in_progress" },
  },
  {
    vendor: "xai",
    model: "grok-imagine-video",
    auth: bearer,
    duration: 6,
    usual: 8,
    refused: [16, "1 to 15 seconds"],
    text: {
      path: "/videos/generations",
      body: { ...extra, model: "grok-imagine-video", prompt, duration: 6, aspect_ratio: "16:9", resolution: "720p" },
    },
    picture: {
      path: "/videos/generations",
      body: {
        ...extra,
        model: "grok-imagine-video",
        prompt,
        duration: 6,
        aspect_ratio: "16:9",
        resolution: "720p",
        image: { url: pngUrl },
      },
    },
    reports: true,
    open: true,
    words: { pending: "in_progress", Rendering: "in_progress" },
  },
  {
    vendor: "vidu",
    model: "viduq3-pro",
    auth: ["authorization", "Token "],
    duration: 6,
    usual: 5,
    refused: [17, "1 to 16 seconds"],
    text: {
      path: "/ent/v2/text2video",
      body: {
        ...extra,
        model: "viduq3-pro",
        prompt,
        duration: 6,
        resolution: "720p",
        aspect_ratio: "16:9",
        payload: "JOB",
      },
    },
    picture: {
      path: "/ent/v2/img2video",
      body: {
        ...extra,
        model: "viduq3-pro",
        prompt,
        duration: 6,
        resolution: "720p",
        images: [pngUrl],
        payload: "JOB",
      },
    },
    reports: true,
    open: true,
    words: { created: "queued", queueing: "queued", processing: "in_progress", Rendering: "in_progress" },
  },
  {
    vendor: "fal",
    model: "fal-ai/veo3.1/fast",
    auth: ["authorization", "Key "],
    duration: 6,
    usual: 8,
    refused: [5, "4, 6, 8 seconds"],
    text: {
      path: "/fal-ai/veo3.1/fast",
      body: { ...extra, prompt, duration: "6s", aspect_ratio: "16:9", resolution: "720p" },
    },
    picture: {
      path: "/fal-ai/veo3.1/fast/image-to-video",
      body: { ...extra, prompt, image_url: pngUrl, duration: "6s", aspect_ratio: "16:9", resolution: "720p" },
    },
    reports: false,
    open: true,
    words: { IN_QUEUE: "queued", IN_PROGRESS: "in_progress", Rendering: "in_progress" },
  },
  {
    vendor: "replicate",
    model: "bytedance/seedance-1-pro",
    auth: bearer,
    duration: 6,
    usual: 5,
    refused: [13, "2 to 12 seconds"],
    text: {
      path: "/models/bytedance/seedance-1-pro/predictions",
      body: { input: { ...extra, prompt, duration: 6, aspect_ratio: "16:9", resolution: "720p" } },
    },
    picture: {
      path: "/models/bytedance/seedance-1-pro/predictions",
      body: { input: { ...extra, prompt, image: pngUrl, duration: 6, aspect_ratio: "16:9", resolution: "720p" } },
    },
    reports: false,
    open: true,
    words: { starting: "queued", processing: "in_progress", Rendering: "in_progress" },
  },
  {
    vendor: "zhipu",
    model: "cogvideox-3",
    auth: bearer,
    duration: 10,
    usual: 5,
    refused: [6, "5, 10 seconds"],
    text: {
      path: "/videos/generations",
      body: { ...extra, model: "cogvideox-3", prompt, duration: 10, size: "1280x720", request_id: "JOB" },
    },
    picture: {
      path: "/videos/generations",
      body: {
        ...extra,
        model: "cogvideox-3",
        prompt,
        image_url: pngUrl,
        duration: 10,
        size: "1280x720",
        request_id: "JOB",
      },
    },
    reports: false,
    open: true,
    words: { PROCESSING: "in_progress", Rendering: "in_progress" },
  },
  {
    vendor: "openai-compatible",
    model: "sora-2",
    auth: bearer,
    duration: 8,
    usual: 4,
    refused: [5, "4, 8, 12 seconds"],
    text: {
      path: "/videos",
      body: { ...extra, model: "sora-2", prompt, seconds: "8", size: "1280x720" },
    },
    picture: {
      path: "/videos",
      body: {
        ...extra,
        model: "sora-2",
        prompt,
        seconds: "8",
        size: "1280x720",
        input_reference: { image_url: pngUrl },
      },
    },
    reports: true,
    open: false,
    words: { queued: "queued", in_progress: "in_progress", Rendering: "in_progress" },
  },
]

export function sampleOf(vendor: string): VideoSample {
  return videoSamples.find((sample) => sample.vendor === vendor)!
}
