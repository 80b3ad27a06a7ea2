import { z } from "@hono/zod-openapi"
import type { Measured } from "../core/measured.ts"
import type { AppliedPrice } from "../core/price.ts"
import type { SecondsSource } from "../core/video-job.ts"
import { unscaled } from "../lib/decimal.ts"
import { unitFields } from "./models.ts"

/* What a request is charged by and at which prices, as ledger lines and requests show it. */

const microsecondDigits = 6

const count = (meaning: string) => z.int().optional().describe(meaning)

export const quantityFields = {
  input_tokens: count("Cached, written and audio ones included."),
  cached_input_tokens: count("Input tokens read from the vendor's cache."),
  cache_write_tokens: count("Input tokens written to the vendor's cache."),
  audio_input_tokens: count("Input tokens of audio."),
  output_tokens: count("Reasoning and audio ones included."),
  reasoning_tokens: count("Output tokens of reasoning."),
  audio_output_tokens: count("Output tokens of audio."),
  images: count("Pictures made."),
  seconds: z.string().optional().describe("Length of audio or video, as an exact decimal.").openapi({ example: "1.5" }),
  characters: count("Unicode code points of the text to speak."),
  search_units: count("A rerank vendor's own unit of work."),
  size: z.string().optional().describe("Of the pictures."),
  quality: z.string().optional().describe("Of the pictures."),
}

const secondsSources = ["reported", "probed", "sent"] as const satisfies readonly SecondsSource[]

export const secondsSourceSchema = z
  .enum(secondsSources)
  .describe(
    "How a video's length was known: the vendor reported it, it was read from the file, or it is what was asked for.",
  )

const quantitiesSchema = z.object(quantityFields)

/** What was not measured is absent. */
export function quantitiesView(measured: Measured): z.infer<typeof quantitiesSchema> {
  const { tokens, images, microseconds, characters, searchUnits, size, quality } = measured
  return {
    ...(tokens !== null && {
      input_tokens: tokens.input,
      cached_input_tokens: tokens.cachedInput,
      cache_write_tokens: tokens.cacheWrite,
      audio_input_tokens: tokens.audioInput,
      output_tokens: tokens.output,
      reasoning_tokens: tokens.reasoning,
      audio_output_tokens: tokens.audioOutput,
    }),
    ...(images !== null && { images }),
    ...(microseconds !== null && { seconds: secondsOf(BigInt(microseconds)) }),
    ...(characters !== null && { characters }),
    ...(searchUnits !== null && { search_units: searchUnits }),
    ...(size !== null && { size }),
    ...(quality !== null && { quality }),
  }
}

export function secondsOf(microseconds: bigint): string {
  return unscaled(microseconds, microsecondDigits)
}

export const appliedPriceSchema = z
  .object({
    version: z.int().describe("The version of the catalog that the price stood in."),
    multiplier: z.string().describe("The plan's factor, as an exact decimal."),
    units: z.object(unitFields).describe("The prices of what there was any of, after tiers."),
  })
  .openapi("AppliedPrice")

/** Names each field, so that what is added to the kept JSON stays unseen until someone describes it. */
export function priceView({ version, multiplier, units }: AppliedPrice): z.infer<typeof appliedPriceSchema> {
  return { version, multiplier, units }
}

export function dollars(meaning: string) {
  return z.string().describe(`${meaning} Dollars, as an exact decimal.`).openapi({ example: "-0.00011125" })
}
