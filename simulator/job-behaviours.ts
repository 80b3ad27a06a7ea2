import { z } from "zod"
import { fault, headers, hostName, megabytes, ms, visible } from "./faults.ts"

/** A result that the simulator serves itself, at the address it has told. */
export const file = z
  .strictObject({
    /** The host in the address in place of the one the request came to, port kept: another name of this machine. */
    host: hostName.exactOptional(),
    /** 403 to whoever shows no credential. */
    needsKey: z.boolean().exactOptional(),
    /** How many redirects stand before the file. */
    redirects: z.int().min(1).max(50).exactOptional(),
    /** Redirects there instead, and never serves the file. */
    redirectTo: visible.exactOptional(),
    contentType: visible.exactOptional(),
    /** A file of that size, made as the client reads it, which starts like a picture. */
    megabytes: megabytes.exactOptional(),
    /** In place of the file. */
    fault: fault.exactOptional(),
  })
  .readonly()

/** An image vendor's job. The step of the submit decides the job's whole life; a step that polls get is of no account. */
export const imageJob = z.strictObject({
  kind: z.literal("image_job"),
  /** Polls that find it unfinished; 2 otherwise, or none if `waitMs` is told. */
  waitPolls: z.int().min(0).exactOptional(),
  /** Unfinished for so long after the submit, however often it is polled. */
  waitMs: ms.exactOptional(),
  /** What becomes of it, in the vendor's own words; `partial` has a picture missing, `stuck` never ends. */
  outcome: z.enum(["succeeded", "partial", "failed", "moderated", "expired", "stuck"]).exactOptional(),
  /** In place of the vendor's status words while it is unfinished. */
  waitingWord: z.string().exactOptional(),
  /** In place of the vendor's status word when it is over. */
  finalWord: z.string().exactOptional(),
  /** What a failure says. */
  message: z.string().exactOptional(),
  /** As many as asked for otherwise. */
  images: z.int().min(0).max(100).exactOptional(),
  /** Replicate's and fal's models differ in how they answer: one bare result, or a list of them. */
  shape: z.enum(["list", "single"]).exactOptional(),
  /** Where a result stands: at an address, or in the answer as a data URL. */
  results: z.enum(["url", "data"]).exactOptional(),
  file: file.exactOptional(),
  /** What the first polls get instead of the job's state; they do not move it on. */
  polls: z.array(fault).readonly().exactOptional(),
  /** The host in the addresses to poll in place of the one the submit came to, port kept; Black Forest Labs has one for each region. */
  pollHost: hostName.exactOptional(),
  headDelayMs: ms.exactOptional(),
})

const seconds = z.number().positive().max(36_000)

/** A video vendor's job. The step of the submit decides the job's whole life by the clock; a step that polls get is of no account. */
export const videoJob = z.strictObject({
  kind: z.literal("video_job"),
  /** From the submit until work begins; 200 otherwise. */
  queuedMs: ms.exactOptional(),
  /** From then until it is over; 600 otherwise. */
  runningMs: ms.exactOptional(),
  /** What becomes of it, in the vendor's own words; `odd_status` is a word that no page of the vendor has, `no_url` a success without its address. */
  outcome: z.enum(["success", "failure", "moderated", "expired", "cancelled", "odd_status", "no_url"]).exactOptional(),
  /** The real length of the result; as asked otherwise. */
  seconds: seconds.exactOptional(),
  /** Whether the vendor tells that length where it has a field for it; as that vendor usually does otherwise. */
  reports: z.boolean().exactOptional(),
  /** `lost` takes the job and breaks the connection, `hang` takes it and never answers; an answer of your own takes none. */
  submit: z
    .union([
      z.enum(["accept", "lost", "hang"]),
      z
        .strictObject({ status: z.int().min(200).max(599), json: z.json(), headers: headers.exactOptional() })
        .readonly(),
    ])
    .exactOptional(),
  /** Status words for the first polls, one each; one of the vendor's own words brings its state with it. */
  words: z.array(z.string()).readonly().exactOptional(),
  /** What a failure says. */
  message: z.string().exactOptional(),
  /** Replicate's and fal's models differ in how they answer: one bare result, or a list of them. */
  shape: z.enum(["list", "single"]).exactOptional(),
  /** Whoever asks with another key than the submit's finds nothing, as from another account. */
  ownerOnly: z.boolean().exactOptional(),
  /** What the first polls get instead of the job's state. */
  polls: z.array(fault).readonly().exactOptional(),
  /** The host in the addresses to poll in place of the one the submit came to, port kept. */
  pollHost: hostName.exactOptional(),
  /** Where the MP4's index stands, before the pictures or after them; `front` otherwise. */
  moov: z.enum(["front", "end"]).exactOptional(),
  /** Size of the result, made as the client reads it; a few kilobytes otherwise. */
  resultBytes: z.int().min(0).max(4_000_000_000).exactOptional(),
  /** The result's address answers 403 when so much time has passed since it was made out. */
  resultLivesMs: ms.exactOptional(),
  file: file.unwrap().omit({ megabytes: true }).readonly().exactOptional(),
  headDelayMs: ms.exactOptional(),
})
