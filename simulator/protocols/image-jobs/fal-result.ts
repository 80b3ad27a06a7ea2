import type { ImageJob } from "../../memory.ts"
import { pictureSide } from "../pictures.ts"

/** What a finished image app answers: a list of pictures, or one of its own. */
export function falResultBody({ ask, plan, results }: ImageJob): object {
  const images = results.map((url) => ({ url, width: pictureSide, height: pictureSide, content_type: "image/png" }))
  return {
    ...(plan.shape === "single" ? { image: images[0] ?? null } : { images }),
    timings: { inference: 0.5 },
    seed: ask.asked.seed ?? 42,
    has_nsfw_concepts: images.map(() => false),
    prompt: ask.prompt,
  }
}
