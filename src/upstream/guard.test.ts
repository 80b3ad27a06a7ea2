import { describe, expect, test } from "bun:test"
import { Forbidden, isPublicAddress, refusePrivate } from "./guard.ts"

const closed: Readonly<Record<string, readonly string[]>> = {
  "this network": ["0.0.0.0", "0.255.255.255"],
  private: ["10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0", "192.168.255.255"],
  "shared by carriers, where clouds put their metadata": ["100.64.0.0", "100.100.100.200", "100.127.255.255"],
  loopback: ["127.0.0.0", "127.0.0.1", "127.255.255.255"],
  "link-local, where clouds put their metadata": ["169.254.0.0", "169.254.169.254", "169.254.255.255"],
  "protocol assignments": ["192.0.0.0", "192.0.0.255"],
  documentation: ["192.0.2.1", "198.51.100.255", "203.0.113.0"],
  "6to4 relays": ["192.88.99.1"],
  benchmarks: ["198.18.0.0", "198.19.255.255"],
  "multicast, reserved, broadcast": ["224.0.0.1", "239.255.255.255", "240.0.0.0", "255.255.255.255"],
  "IPv6 unspecified and loopback": ["::", "::1", "0:0:0:0:0:0:0:1"],
  "IPv4 inside IPv6": [
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "0:0:0:0:0:ffff:a9fe:a9fe",
    "::ffff:10.1.2.3",
    "::127.0.0.1",
    "::ffff:0:127.0.0.1",
  ],
  "NAT64, local and well known": ["64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1"],
  "IPv6 discard-only": ["100::1"],
  "IPv6 unique local": ["fc00::1", "fd00::1", "fd00:ec2::254", "fdff:ffff::"],
  "IPv6 link-local, with and without a zone": ["fe80::1", "fe80::1%eth0", "febf::1"],
  "IPv6 site-local": ["fec0::1"],
  "IPv6 multicast": ["ff02::1", "ff0e::1"],
  "IPv6 segment routing": ["5f00::1"],
  "6to4": ["2002::1", "2002:7f00:1::", "2002:a9fe:a9fe::1"],
  "Teredo, benchmarks and ORCHID": [
    "2001::1",
    "2001:0:7f00:1::",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:1ff::",
  ],
  "IPv6 documentation": ["2001:db8::1", "2001:db8:ffff::", "3fff::1", "3fff:fff:ffff::"],
  "what is no address": [
    "",
    "localhost",
    "1.2.3",
    "1.2.3.4.5",
    "256.1.1.1",
    "0x7f.0.0.1",
    "2130706433",
    "::g",
    "[::1]",
  ],
}

const open: readonly string[] = [
  "1.1.1.1",
  "8.8.8.8",
  "9.255.255.255",
  "11.0.0.0",
  "100.63.255.255",
  "100.128.0.0",
  "126.255.255.255",
  "128.0.0.0",
  "169.253.255.255",
  "169.255.0.0",
  "172.15.255.255",
  "172.32.0.0",
  "192.0.1.0",
  "192.0.3.0",
  "192.167.255.255",
  "192.169.0.0",
  "198.17.255.255",
  "198.20.0.0",
  "203.0.112.255",
  "203.0.114.0",
  "223.255.255.255",
  "::ffff:8.8.8.8",
  "::ffff:808:808",
  "2001:200::1",
  "2001:4860:4860::8888",
  "2001:db7::1",
  "2001:db9::1",
  "2606:4700:4700::1111",
  "2a00:1450:4001:82b::200e",
  "3ffe::1",
  "3fff:1000::1",
]

describe("an address is not public", () => {
  for (const [kind, addresses] of Object.entries(closed)) {
    test(kind, () => {
      expect(addresses.filter(isPublicAddress)).toEqual([])
    })
  }
})

test("other addresses are public, also right beside the closed ranges", () => {
  expect(open.filter((address) => !isPublicAddress(address))).toEqual([])
})

const names: Readonly<Record<string, readonly string[]>> = {
  "public.example": ["93.184.216.34"],
  "both.example": ["2606:4700::1", "93.184.216.34"],
  "inside.example": ["10.0.0.7"],
  "loop.example": ["127.0.0.1"],
  "mapped.example": ["::ffff:127.0.0.1"],
  "mixed.example": ["93.184.216.34", "169.254.169.254"],
  "mixed6.example": ["2606:4700::1", "fd00::1"],
  "nothing.example": [],
}
const resolve = async (host: string): Promise<readonly string[]> => {
  const found = names[host]
  if (found === undefined) throw new Error(`asked for ${host}`)
  return found
}

async function verdictOn(url: string, allowPrivate = false): Promise<readonly string[] | string> {
  return refusePrivate(new URL(url), allowPrivate, resolve).catch((error: unknown) => {
    if (error instanceof Forbidden) return error.message
    throw error
  })
}

describe("a URL out of a reply", () => {
  test("is fetched where all of its addresses are public, and gives those", async () => {
    expect(await verdictOn("https://public.example/x.png")).toEqual(["93.184.216.34"])
    expect(await verdictOn("https://public.example:8443/x.png")).toEqual(["93.184.216.34"])
    expect(await verdictOn("https://both.example/")).toEqual(["2606:4700::1", "93.184.216.34"])
    expect(await verdictOn("https://8.8.8.8/")).toEqual(["8.8.8.8"])
    expect(await verdictOn("https://[2606:4700::1]/")).toEqual(["2606:4700::1"])
  })

  const inside = ["inside", "loop", "mapped", "mixed", "mixed6", "nothing"].map((name) => `${name}.example`)
  test.each(inside)("is refused where a name leads inside, or nowhere: %s", async (host) => {
    expect(await verdictOn(`https://${host}/`)).toBe(`${host} is not a public address`)
  })

  const spellings: readonly (readonly [spelling: string, read: string])[] = [
    ["127.0.0.1", "127.0.0.1"],
    ["127.0.0.1.", "127.0.0.1"],
    ["127.1", "127.0.0.1"],
    ["2130706433", "127.0.0.1"],
    ["0x7f000001", "127.0.0.1"],
    ["0x7f.1", "127.0.0.1"],
    ["0177.0.0.1", "127.0.0.1"],
    ["%31%32%37.0.0.1", "127.0.0.1"],
    ["①②⑦.0.0.1", "127.0.0.1"],
    ["127。0。0。1", "127.0.0.1"],
    ["0", "0.0.0.0"],
    ["2852039166", "169.254.169.254"],
    ["100.100.100.200", "100.100.100.200"],
    ["[::1]", "::1"],
    ["[::]", "::"],
    ["[::ffff:127.0.0.1]", "::ffff:7f00:1"],
    ["[0:0:0:0:0:FFFF:7f00:0001]", "::ffff:7f00:1"],
    ["[fd00:ec2::254]", "fd00:ec2::254"],
    ["[fe80::1]", "fe80::1"],
    ["[2002:7f00:1::]", "2002:7f00:1::"],
    ["[64:ff9b::7f00:1]", "64:ff9b::7f00:1"],
  ]
  test.each([...spellings])("is refused however the address is spelled: %s", async (spelling, read) => {
    expect(await verdictOn(`https://${spelling}/latest/meta-data`)).toBe(`${read} is not a public address`)
  })

  test.each(["http", "file", "ftp", "gopher", "ws", "data", "blob", "javascript"])(
    "is refused as %s:",
    async (scheme) => {
      expect(await verdictOn(`${scheme}://public.example/`)).toBe(`only https addresses are fetched, not ${scheme}://`)
    },
  )

  test("is refused with a user name or a password, wherever it leads", async () => {
    const told = "an address with a user name is not fetched"
    for (const user of ["user", "user:word", ":word"]) {
      expect(await verdictOn(`https://${user}@public.example/`)).toBe(told)
      expect(await verdictOn(`https://${user}@public.example/`, true)).toBe(told)
    }
    expect(await verdictOn("https://public.example@127.0.0.1/")).toBe(told)
  })

  test("may lead inside and be plain http where that is allowed, but nothing else", async () => {
    expect(await verdictOn("http://loop.example/", true)).toEqual(["127.0.0.1"])
    expect(await verdictOn("http://127.1:8080/", true)).toEqual(["127.0.0.1"])
    expect(await verdictOn("https://mixed.example/", true)).toEqual(["93.184.216.34", "169.254.169.254"])
    expect(await verdictOn("file:///etc/passwd", true)).toBe("only https addresses are fetched, not file://")
  })

  test("is resolved by the system: localhost leads inside, and a name that is none is an error of another kind", async () => {
    await expect(refusePrivate(new URL("https://localhost/"), false)).rejects.toThrow(
      "localhost is not a public address",
    )
    const unknown = await refusePrivate(new URL("https://nobody.invalid/"), false).catch((error: unknown) => error)
    expect(unknown).toBeInstanceOf(Error)
    expect(unknown).not.toBeInstanceOf(Forbidden)
  })
})
