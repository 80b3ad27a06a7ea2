import type { Protocol } from "../protocol.ts"
import { ark } from "./ark.ts"
import { videoFiles } from "./cdn.ts"
import { dashscopeVideo } from "./dashscope.ts"
import { falVideo } from "./fal.ts"
import { gemini } from "./gemini.ts"
import { kling } from "./kling.ts"
import { minimax } from "./minimax.ts"
import { minimaxSecond } from "./minimax-second.ts"
import { openaiVideos } from "./openai.ts"
import { replicateVideo } from "./replicate.ts"
import { runway } from "./runway.ts"
import { vidu } from "./vidu.ts"
import { xai } from "./xai.ts"
import { zhipu } from "./zhipu.ts"

/** Every video vendor; one that takes any path for its own comes after those that know theirs. */
export const videoProtocols: readonly Protocol[] = [
  ...videoFiles,
  ...replicateVideo,
  ...dashscopeVideo,
  ...kling,
  ...ark,
  ...gemini,
  ...runway,
  ...minimax,
  ...minimaxSecond,
  ...vidu,
  ...zhipu,
  ...xai,
  ...openaiVideos,
  ...falVideo,
]
