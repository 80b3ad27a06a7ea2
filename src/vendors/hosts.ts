/** True where the upstream's credential may travel to an address out of a vendor's reply: replies are not trusted with it. */
export function mayCarryCredential(address: string, baseUrl: string, hosts: readonly string[]): boolean {
  if (!URL.canParse(address)) return false
  const target = new URL(address)
  if (target.username !== "" || target.password !== "") return false
  if (target.origin === new URL(baseUrl).origin) return true
  return target.protocol === "https:" && target.port === "" && hosts.some((host) => covers(host, target.hostname))
}

function covers(pattern: string, host: string): boolean {
  return pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) : host === pattern
}
