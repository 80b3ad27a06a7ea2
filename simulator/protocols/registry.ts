import type { Behaviour } from "../behaviour.ts"
import type { Reply } from "../wire/reply.ts"
import { speech } from "./audio/speech.ts"
import { transcriptions, translations } from "./audio/transcription.ts"
import { chat } from "./chat.ts"
import { embeddings } from "./embeddings.ts"
import { files } from "./files.ts"
import { bflPoll, bflSubmit } from "./image-jobs/bfl.ts"
import { dashscopeCancel, dashscopePoll, dashscopeSubmit, dashscopeSync } from "./image-jobs/dashscope.ts"
import { falCancel, falResult, falStatus, falSubmit } from "./image-jobs/fal.ts"
import { replicateCancel, replicateCreate, replicateGet } from "./image-jobs/replicate.ts"
import { imageEdits, imageGenerations, imageVariations } from "./images/images.ts"
import { countTokens, messages } from "./messages/messages.ts"
import { models } from "./models.ts"
import { type Protocol, pathOf, type VendorRequest } from "./protocol.ts"
import { rerank } from "./rerank.ts"
import { responses } from "./responses/responses.ts"
import { errorReply } from "./vendor-errors.ts"
import { videoProtocols } from "./video/vendors.ts"

/** Every protocol the simulator speaks; a new one is a file and a line here. The first that fits is taken. */
const protocols: readonly Protocol[] = [
  chat,
  models,
  responses,
  countTokens,
  messages,
  embeddings,
  rerank,
  imageGenerations,
  imageEdits,
  imageVariations,
  speech,
  transcriptions,
  translations,
  ...videoProtocols,
  files,
  dashscopeSubmit,
  dashscopeSync,
  dashscopePoll,
  dashscopeCancel,
  replicateCreate,
  replicateGet,
  replicateCancel,
  falStatus,
  falResult,
  falCancel,
  falSubmit,
  bflPoll,
  bflSubmit,
]

/** The protocol that the path belongs to, with its method if any has it; undefined for a path that nothing fits. */
export function protocolOf(request: VendorRequest): Protocol | undefined {
  const path = pathOf(request)
  const fitting = protocols.filter(
    ({ ending, isFor }) =>
      (typeof ending === "string" ? path.endsWith(ending) : ending.test(path)) && (isFor?.(request) ?? true),
  )
  return fitting.find(({ method }) => method === request.method) ?? fitting[0]
}

/** What a healthy vendor answers to this request. */
export function healthyReply(request: VendorRequest, step: Behaviour): Reply {
  const protocol = protocolOf(request)
  const shown = pathOf(request)
  if (protocol === undefined) return errorReply(404, { message: `Invalid URL (${request.method} ${shown})` })
  if (protocol.method !== request.method) {
    return errorReply(405, { message: `Not allowed to ${request.method} on ${shown}.`, code: "method_not_supported" })
  }
  return protocol.answer(request, step)
}

/** The vendor's usual words for an error status, in the dialect of the path. */
export function refusalReply(request: VendorRequest, status: number): Reply {
  return protocolOf(request)?.refuse?.(status) ?? errorReply(status)
}
