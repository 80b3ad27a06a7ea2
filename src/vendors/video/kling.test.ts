import { describe, expect, test } from "bun:test"
import type { VideoAsk, VideoContext } from "../../core/video-vendor.ts"
import { replay, replyOf } from "../fixtures/recording.ts"
import { calls, recording } from "./fixtures/kling.ts"
import { oddReplies } from "./fixtures/odd-replies.ts"
import { kling } from "./kling.ts"

const plain: VideoAsk = { prompt: "A calm woman slowly smiles", size: null, duration: null, image: null, extra: {} }
const picture = { url: "https://ex.com/a.png" }
const fromText: VideoContext = {
  baseUrl: "https://api-singapore.klingai.com",
  upstreamModel: "kling-v3",
  settings: {},
  jobId: "vid_01HX",
}
const fromPicture: VideoContext = { ...fromText, withImage: true }
const task = "867283741759111202"

function submit(upstreamModel: string, ask: Partial<VideoAsk> = {}) {
  return kling.submit({ ...plain, ...ask }, { ...fromText, upstreamModel })
}

function body(upstreamModel: string, ask: Partial<VideoAsk> = {}) {
  return submit(upstreamModel, ask).call.body
}

describe("requests", () => {
  test("from text: the length as text, the size as mode and ratio, the gateway's own id", () => {
    expect(submit("kling-v3", { size: { width: 1280, height: 720 } })).toStrictEqual({ call: calls.text, seconds: 5 })
  })

  test("from a picture: another path, and of the size only the mode, since the picture decides on the ratio", () => {
    const byAddress = submit("kling-v2-6", { image: picture, size: { width: 1920, height: 1080 }, duration: 10 })
    expect(byAddress).toStrictEqual({ call: calls["picture by address"], seconds: 10 })
    const odd = body("kling-v2-6", { image: picture, size: { width: 1700, height: 1080 } })
    expect(odd).toHaveProperty("mode", "pro")
    expect(odd).not.toHaveProperty("aspect_ratio")
  })

  test("a picture by data goes without the prefix that others want", () => {
    const image = { mediaType: "image/png", base64: "iVBORw0KGgo=" }
    expect(submit("kling-v2-6", { image })).toStrictEqual({ call: calls["picture by data"], seconds: 5 })
  })

  test.each([
    [1280, 720, { mode: "std", aspect_ratio: "16:9" }],
    [1920, 1080, { mode: "pro", aspect_ratio: "16:9" }],
    [720, 1280, { mode: "std", aspect_ratio: "9:16" }],
    [1080, 1920, { mode: "pro", aspect_ratio: "9:16" }],
    [720, 720, { mode: "std", aspect_ratio: "1:1" }],
    [1080, 1080, { mode: "pro", aspect_ratio: "1:1" }],
    [3840, 2160, { mode: "4k", aspect_ratio: "16:9" }],
  ])("%ix%i in the vendor's words", (width, height, expected) => {
    expect(body("kling-v3", { size: { width, height } })).toMatchObject(expected)
  })

  test.each([
    ["kling-v3", 1024, 768, "16:9, 9:16, 1:1"],
    ["kling-v3", 854, 480, "720 (std), 1080 (pro), 2160 (4k)"],
    ["kling-v2-6", 3840, 2160, "720 (std), 1080 (pro)"],
  ])("%s refuses %ix%i and says what it takes", (model, width, height, takes) => {
    expect(() => submit(model, { size: { width, height } })).toThrow(takes)
  })

  test.each([
    ["kling-v1", 5, 10],
    ["kling-v1-6", 10, 10],
    ["kling-v2-5-turbo", 5, 5],
    ["kling-v3", 3, 15],
    ["kling-of-tomorrow", 1, 60],
  ])("%s makes %i and %i seconds", (model, one, other) => {
    expect(submit(model, { duration: one }).seconds).toBe(one)
    expect(body(model, { duration: other })).toHaveProperty("duration", String(other))
  })

  test.each([
    ["kling-v1", 3, "5, 10 seconds"],
    ["kling-v2-1-master", 15, "5, 10 seconds"],
    ["kling-v3", 2, "3 to 15 seconds"],
    ["kling-v3", 16, "3 to 15 seconds"],
  ])("%s refuses %i seconds and says what it takes", (model, duration, takes) => {
    expect(() => submit(model, { duration })).toThrow(takes)
  })

  test("the caller's fields go along, but not those for other people's addresses, ids, money and counts", () => {
    const extra = {
      negative_prompt: "blur",
      sound: "on",
      mode: "pro",
      callback_url: "https://elsewhere.test",
      external_task_id: "mine",
      model_name: "kling-v1",
      duration: "10",
      prompt: "a wolf",
      n: 4,
    }
    expect(body("kling-v3", { extra })).toStrictEqual({
      negative_prompt: "blur",
      sound: "on",
      mode: "pro",
      external_task_id: "vid_01HX",
      model_name: "kling-v3",
      duration: "5",
      prompt: "A calm woman slowly smiles",
    })
  })
})

describe("replies to a submit", () => {
  test("the job is polled at the path that took it", () => {
    for (const [context, path] of [
      [fromText, "text2video"],
      [fromPicture, "image2video"],
    ] as const) {
      const submitted = kling.readSubmit(replay(recording, "submitted"), context)
      expect(submitted).toEqual({ kind: "accepted", ref: { task, path }, vendorId: task })
      if (submitted.kind !== "accepted") throw new Error(submitted.kind)
      expect(kling.poll(submitted.ref, fromText)).toStrictEqual({
        method: "GET",
        url: `https://api-singapore.klingai.com/v1/videos/${path}/${task}`,
      })
    }
  })

  // biome-ignore format: a table
  test.each([
    ["crowded", { kind: "refused", status: 429, message: "parallel task over resource pack limit (code 1303)" }],
    ["no money", { kind: "refused", status: 402, message: "Account balance not enough (code 1102)" }],
    ["error in a 200", { kind: "refused", status: 400, message: "duration is invalid (code 1201)" }],
  ] as const)("%s", (name, expected) => {
    expect(kling.readSubmit(replay(recording, name), fromText)).toEqual(expected)
  })

  // biome-ignore format: a table
  test.each([
    [401, [1000, 1001, 1002, 1003, 1004]], [402, [1100, 1101, 1102]], [403, [1103, 1304]], [400, [1200, 1201, 1300, 1301]],
    [404, [1202, 1203]], [429, [1302, 1303]], [500, [5000]], [503, [5001]],
  ])("%i is what the codes %j amount to, in a 200 and elsewhere", (status, codes) => {
    for (const code of codes) {
      for (const http of [200, 400, 429, 500]) {
        const reply = replyOf({ code, message: "no" }, http)
        expect(kling.readSubmit(reply, fromText)).toEqual({ kind: "refused", status, message: `no (code ${code})` })
      }
    }
  })

  test("a time-out inside the vendor leaves open whether there is a job", () => {
    expect(kling.readSubmit(replyOf({ code: 5002, message: "timeout" }, 504), fromText).kind).toBe("unreadable")
  })

  test("codes that nobody has told us about are refusals by their HTTP status", () => {
    const read = (code: number, status: number) => kling.readSubmit(replyOf({ code, message: "no" }, status), fromText)
    expect(read(1999, 409)).toMatchObject({ kind: "refused", status: 409 })
    expect(read(1999, 200)).toMatchObject({ kind: "refused", status: 400 })
    expect(read(5999, 500)).toMatchObject({ kind: "refused", status: 500 })
    expect(read(5999, 200).kind).toBe("unreadable")
  })
})

describe("replies to a poll", () => {
  // biome-ignore format: a table
  test.each([
    ["queued", { kind: "queued" }],
    ["processing", { kind: "running" }],
    ["a word of tomorrow", { kind: "running", oddWord: "rendering" }],
    ["succeeded", { kind: "succeeded", url: "https://p1.a.kwimgs.com/x.mp4", seconds: 5 }],
    ["succeeded with nothing", { kind: "failed", reason: "the vendor finished the job without a video" }],
    ["failed", { kind: "failed", reason: "Failure to pass the risk control system" }],
    ["failed without a reason", { kind: "failed", reason: "the job failed" }],
    ["error in a polled 200", { kind: "unreadable", why: "HTTP 200: Internal error" }],
    ["token expired", { kind: "unreadable", why: "HTTP 401: Authorization expired" }],
    ["no such job", { kind: "missing", why: "HTTP 404: task not found" }],
  ] as const)("%s", (name, expected) => {
    expect<object>(kling.readPoll(replay(recording, name), {}, fromText)).toEqual(expected)
  })

  test("a job that is not there may be told in a 200", () => {
    expect(kling.readPoll(replyOf({ code: 1203, message: "none" }), {}, fromText).kind).toBe("missing")
  })
})

describe("a job whose submit had no answer", () => {
  test("is looked for by the gateway's own id, at the path it went to", () => {
    expect(kling.locate?.(fromText).url).toBe("https://api-singapore.klingai.com/v1/videos/text2video/vid_01HX")
    expect(kling.locate?.(fromPicture)).toStrictEqual({
      method: "GET",
      url: "https://api-singapore.klingai.com/v1/videos/image2video/vid_01HX",
    })
  })

  // biome-ignore format: a table
  test.each([
    ["submitted", { kind: "found", ref: { task, path: "image2video" }, vendorId: task }],
    ["succeeded", { kind: "found", ref: { task, path: "image2video" }, vendorId: task }],
    ["no such job", { kind: "absent" }],
    ["another one's job", { kind: "unreadable" }],
    ["token expired", { kind: "unreadable", why: "HTTP 401: Authorization expired" }],
    ["error in a polled 200", { kind: "unreadable", why: "HTTP 200: Internal error" }],
  ] as const)("%s", (name, expected) => {
    expect<object | undefined>(kling.readLocate?.(replay(recording, name), fromPicture)).toMatchObject(expected)
  })
})

describe("credentials", () => {
  // Midnight of 2026-11-15, UTC.
  const now = 1_794_700_800_999

  test("an access key with its secret becomes a token of half an hour, signed with the secret", () => {
    const [head, payload, signature] = kling.sign!("AK1:SK1", now).split(".")
    const read = (part: string | undefined): unknown => JSON.parse(Buffer.from(part ?? "", "base64url").toString())
    expect(read(head)).toEqual({ alg: "HS256", typ: "JWT" })
    expect(read(payload)).toEqual({ iss: "AK1", exp: 1_794_702_600, nbf: 1_794_700_795 })
    expect(signature).toBe(new Bun.CryptoHasher("sha256", "SK1").update(`${head}.${payload}`).digest("base64url"))
  })

  test("a token verifies with the secret elsewhere, and has no padding", async () => {
    const token = kling.sign!("AK1:SK1", now)
    const [head, payload, signature] = token.split(".")
    const algorithm = { name: "HMAC", hash: "SHA-256" }
    const key = await crypto.subtle.importKey("raw", Buffer.from("SK1"), algorithm, false, ["verify"])
    const signed = Buffer.from(`${head}.${payload}`)
    expect(await crypto.subtle.verify("HMAC", key, Buffer.from(signature ?? "", "base64url"), signed)).toBeTrue()
    expect(token).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/)
  })

  test("an API key is the token itself", () => {
    for (const key of ["api-key-kling-1", "a:", ":b", "a:b:c"]) expect(kling.sign!(key, now)).toBe(key)
  })
})

test("odd replies are neither thrown over nor taken for a job, its end or its absence", () => {
  for (const reply of oddReplies) {
    expect(["refused", "unreadable"]).toContain(kling.readSubmit(reply, fromText).kind)
    expect(["missing", "unreadable"]).toContain(kling.readPoll(reply, {}, fromText).kind)
    expect(kling.readLocate!(reply, fromText).kind).toBe("unreadable")
    if (reply.status < 400 || reply.status >= 500) expect(kling.readSubmit(reply, fromText).kind).toBe("unreadable")
  }
})

test("a damaged reference is an error of ours, not a call to somewhere else", () => {
  for (const ref of [{}, null, "x", []]) expect(() => kling.poll(ref, fromText)).toThrow("internal error")
})
