/** Reads one stream through a gateway until standard input closes, then prints the longest pause between two chunks in ms. */
const [url, key] = [process.argv[2]!, process.argv[3]!]
const response = await fetch(`${url}/v1/chat/completions`, {
  method: "POST",
  headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
  body: JSON.stringify({ model: "steady", stream: true, messages: [] }),
})
let last = performance.now()
let longest = 0
const watch = (async () => {
  for await (const _ of response.body as AsyncIterable<Uint8Array>) {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
  }
})()
console.log("reading")
await Promise.race([watch, Bun.stdin.text()])
console.log(Math.round(longest))
process.exit(0)
