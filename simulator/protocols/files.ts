import type { FileOptions } from "../behaviour.ts"
import { type FilePlan, remember } from "../memory.ts"
import { type Reply, wholeReply } from "../wire/reply.ts"
import { credentialsOf } from "./credentials.ts"
import { shortId } from "./ids.ts"
import { homeOf } from "./links.ts"
import { bigPicture, picture } from "./pictures.ts"
import { type Protocol, pathOf, type VendorRequest } from "./protocol.ts"
import { errorReply } from "./vendor-errors.ts"

/** Where vendors put results: usually no credential is asked for, the address itself is the secret. */
export const files: Protocol = {
  method: "GET",
  ending: /\/files\/[\w.-]+$/,
  open: true,
  answer: fileReply,
  instead: (request) => planOf(request)?.options.fault,
}

/** Keeps a picture and tells its address. */
export function keepFile(request: VendorRequest, number: number, options: FileOptions = {}): string {
  const name = `${shortId()}.png`
  remember(request.memory.files, name, { options, number })
  return `${homeOf(request, options.host)}/files/${name}`
}

function planOf(request: VendorRequest): FilePlan | undefined {
  return request.memory.files.get(pathOf(request).split("/").at(-1) ?? "")
}

function fileReply(request: VendorRequest): Reply {
  const plan = planOf(request)
  if (plan === undefined) return errorReply(404, { message: "No such file, or it has expired.", code: "not_found" })
  const { number, options } = plan
  if (options.needsKey === true && credentialsOf(request.headers).length === 0) return errorReply(403)
  if (options.redirectTo !== undefined) return redirect(options.redirectTo)
  const hops = Number(/\?hop=(\d+)$/.exec(request.path)?.[1] ?? 0)
  if (hops < (options.redirects ?? 0)) {
    return redirect(`${homeOf(request)}${pathOf(request)}?hop=${hops + 1}`)
  }
  const headers = [["content-type", options.contentType ?? "image/png"]] as const
  if (options.megabytes === undefined) return wholeReply(200, picture(number), headers)
  const { length, pieces } = bigPicture(number, options.megabytes)
  return { status: 200, headers, framing: "content-length", length, pieces: pieces() }
}

function redirect(location: string): Reply {
  return wholeReply(302, "", [["location", location]])
}
