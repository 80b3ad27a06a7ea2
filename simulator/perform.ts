import type { Behaviour, BehaviourOf, Compressible } from "./behaviour.ts"
import { bigReply } from "./big.ts"
import { compressed } from "./compress.ts"
import type { Exchange } from "./exchange.ts"
import { echoStreamOptionsError } from "./protocols/chat.ts"
import type { VendorRequest } from "./protocols/protocol.ts"
import { healthyReply, refusalReply } from "./protocols/registry.ts"
import { split } from "./wire/pieces.ts"
import { type Piece, type Reply, sendReply, wholeReply } from "./wire/reply.ts"
import type { HeaderPair } from "./wire/request-parser.ts"

const garbage = Buffer.from("\x16\x03\x01\x02\x00SSH-2.0-OpenSSH_9.7\r\n\x00\xff\xfe this is no HTTP\r\n\r\n", "latin1")

const jsonType: readonly HeaderPair[] = [["content-type", "application/json"]]

/** Carries out one step on one call. */
export async function perform(step: Behaviour, request: VendorRequest, exchange: Exchange): Promise<void> {
  switch (step.kind) {
    case "hang":
      return await exchange.hang()
    case "reset":
      return exchange.reset()
    case "close":
      return exchange.fin()
    case "garbage":
      await exchange.write(garbage)
      return exchange.fin()
    case "raw":
      return await performRaw(step, exchange)
    case "gzip":
      return await sendReply(exchange, await compressed(replyOf(step.inner, request), step.encoding ?? "gzip"))
    case "echo_stream_options_error":
      return await sendReply(exchange, echoStreamOptionsError(request) ?? healthyReply(request, step))
    default:
      return await sendReply(exchange, replyOf(step, request))
  }
}

async function performRaw(step: BehaviourOf<"raw">, exchange: Exchange): Promise<void> {
  for (const { bytes, afterMs } of split(Buffer.from(step.bytes, step.encoding ?? "utf8"), step)) {
    if (afterMs !== undefined) await exchange.sleep(afterMs)
    await exchange.write(bytes)
  }
  switch (step.thenClose ?? "fin") {
    case "fin":
      return exchange.fin()
    case "rst":
      return exchange.reset()
    case "keep":
      return exchange.finish()
  }
}

function replyOf(step: Compressible, request: VendorRequest): Reply {
  switch (step.kind) {
    case "status":
      return statusReply(step, request)
    case "stream":
      return streamReply(step)
    case "html":
      return htmlReply(step.status ?? 502)
    case "big":
      return bigReply(request, step)
    default:
      return healthyReply(request, step)
  }
}

function statusReply(step: BehaviourOf<"status">, request: VendorRequest): Reply {
  const given = step.json === undefined ? step.body : JSON.stringify(step.json)
  const usual = given === undefined ? refusalReply(request, step.status) : wholeReply(step.status, given, jsonType)
  const reply = { ...usual, headers: merged(usual.headers, step.headers) }
  return step.delayMs === undefined ? reply : { ...reply, headDelayMs: step.delayMs }
}

function htmlReply(status: number): Reply {
  const page = `<html>\r\n<head><title>${status}</title></head>\r\n<body><center><h1>${status}</h1></center><hr><center>nginx</center></body>\r\n</html>\r\n`
  return wholeReply(status, page, [["content-type", "text/html"]])
}

function streamReply(step: BehaviourOf<"stream">): Reply {
  const encoding = step.encoding ?? "utf8"
  const frames = (step.frames ?? [step.body ?? ""]).map((frame) => Buffer.from(frame, encoding))
  return {
    status: step.status ?? 200,
    headers: merged([["content-type", "text/event-stream"]], step.headers),
    framing: step.framing ?? "chunked",
    length: frames.reduce((sum, frame) => sum + frame.length, 0),
    pieces: step.splitAt || step.splitEvery ? split(Buffer.concat(frames), step) : framePieces(frames, step.gapMs),
    end: step.end ?? "clean",
    ...(step.headDelayMs === undefined ? {} : { headDelayMs: step.headDelayMs }),
    ...(step.pingEveryMs === undefined ? {} : { pingEveryMs: step.pingEveryMs }),
  }
}

function framePieces(frames: readonly Uint8Array[], gapMs: number | undefined): Piece[] {
  return frames.map((bytes, index) => (index === 0 || gapMs === undefined ? { bytes } : { bytes, afterMs: gapMs }))
}

/** The defaults with the given headers on top; a name counts once, whatever its case. */
function merged(defaults: readonly HeaderPair[], given: Readonly<Record<string, string>> = {}): HeaderPair[] {
  const names = new Set(Object.keys(given).map((name) => name.toLowerCase()))
  return [...defaults.filter(([name]) => !names.has(name)), ...Object.entries(given)]
}
