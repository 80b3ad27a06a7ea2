import { lookup } from "node:dns/promises"
import { isIP } from "node:net"

/** An address that the gateway will not fetch from; the message says why. */
export class Forbidden extends Error {
  constructor(message: string) {
    super(message)
    this.name = "Forbidden"
  }
}

/** Ranges that are not public: private, loopback, link-local, shared, test, multicast, reserved. */
const closedV4: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
]

export function isPublicAddress(address: string): boolean {
  return isIP(address) === 4 ? isPublicV4(address) : isIP(address) === 6 && isPublicV6(address)
}

function isPublicV4(address: string): boolean {
  const number = v4Number(address)
  return !closedV4.some(([base, bits]) => (number ^ v4Number(base)) >>> (32 - bits) === 0)
}

function v4Number(address: string): number {
  return address.split(".").reduce((sum, part) => ((sum << 8) | Number(part)) >>> 0, 0)
}

/** Global unicast only (2000::/3), without the ranges that tunnel (2001::/23, 2002::/16) or document (2001:db8::/32, 3fff::/20). */
function isPublicV6(address: string): boolean {
  const groups = v6Groups(address)
  const mapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff
  if (mapped) return isPublicV4([groups[6]! >> 8, groups[6]! & 255, groups[7]! >> 8, groups[7]! & 255].join("."))
  const [first, second] = groups as [number, number]
  if (first >> 13 !== 1) return false
  if (first === 0x2002 || (first === 0x3fff && second < 0x1000)) return false
  return !(first === 0x2001 && (second === 0x0db8 || second < 0x0200))
}

function v6Groups(address: string): number[] {
  const plain = address
    .replace(/%.*$/, "")
    .replace(
      /(\d+)\.(\d+)\.(\d+)\.(\d+)$/,
      (_, a, b, c, d) =>
        `${((Number(a) << 8) | Number(b)).toString(16)}:${((Number(c) << 8) | Number(d)).toString(16)}`,
    )
  const [head = "", tail] = plain.split("::")
  const front = head === "" ? [] : head.split(":")
  const back = tail === undefined || tail === "" ? [] : tail.split(":")
  const middle = tail === undefined ? [] : Array.from({ length: 8 - front.length - back.length }, () => "0")
  return [...front, ...middle, ...back].map((group) => Number.parseInt(group, 16))
}

/** Every address of a name, in the order they are to be tried. */
export type Resolve = (host: string) => Promise<readonly string[]>

const systemResolve: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address)

/**
 * Refuses a URL that came out of a reply or a request unless it is https and resolves to public addresses only.
 * Gives the addresses that were looked at: whoever asks the name a second time may be told another one.
 */
export async function refusePrivate(
  url: URL,
  allowPrivate: boolean,
  resolve: Resolve = systemResolve,
): Promise<readonly string[]> {
  const fetchable = url.protocol === "https:" || (allowPrivate && url.protocol === "http:")
  if (!fetchable) throw new Forbidden(`only https addresses are fetched, not ${url.protocol}//`)
  if (url.username !== "" || url.password !== "") throw new Forbidden("an address with a user name is not fetched")
  const host = url.hostname.replace(/^\[|\]$/g, "")
  const addresses = isIP(host) === 0 ? await resolve(host) : [host]
  // All must be public: a name that also points inside is a name to distrust.
  if (addresses.length === 0 || !(allowPrivate || addresses.every(isPublicAddress)))
    throw new Forbidden(`${host} is not a public address`)
  return addresses
}
