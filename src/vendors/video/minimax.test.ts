import { describe, expect, test } from "bun:test"
import type { VideoAsk } from "../../core/video-vendor.ts"
import { replay, replyOf } from "../fixtures/recording.ts"
import { calls, h3Recording, recording } from "./fixtures/minimax.ts"
import { oddReplies } from "./fixtures/odd-replies.ts"
import { minimax } from "./minimax.ts"

const context = {
  baseUrl: "https://api.minimax.io",
  upstreamModel: "MiniMax-Hailuo-2.3",
  settings: {},
  jobId: "vid_01HX",
}
const h3 = { ...context, upstreamModel: "MiniMax-H3" }
const plain: VideoAsk = {
  prompt: "A man picks up a book [Pan left]",
  size: null,
  duration: null,
  image: null,
  extra: {},
}
const picture = { url: "https://pictures.test/man.png" }
const data = { mediaType: "image/png", base64: "iVBORw0KGgo=" }
const ref = { task: "106916112212032", version: "v1" }
const withFile = { ...ref, file: "205258526306433" }
const h3Ref = { task: "task-123", version: "v2" }

function submit(upstreamModel: string, ask: Partial<VideoAsk> = {}) {
  return minimax.submit({ ...plain, ...ask }, { ...context, upstreamModel })
}

const imageOf = (from: "text" | "a picture") => (from === "text" ? null : picture)

describe("requests", () => {
  test("text-to-video", () => {
    const asked = submit("MiniMax-Hailuo-2.3", {
      size: { width: 1366, height: 768 },
      extra: { prompt_optimizer: true },
    })
    expect(asked).toEqual({ seconds: 6, call: calls.fromText })
  })

  test("image-to-video, by address and by data", () => {
    const byUrl = submit("MiniMax-Hailuo-2.3-Fast", { image: picture, duration: 10 })
    expect(byUrl).toEqual({ seconds: 10, call: calls.fromImage })
    const byData = submit("MiniMax-Hailuo-02", { image: data, size: { width: 512, height: 912 } })
    expect(byData).toEqual({ seconds: 6, call: calls.fromData })
  })

  test("H3 text-to-video: the resolution and the ratio that it wants are said where the caller names none", () => {
    expect(submit("MiniMax-H3", { extra: { aigc_watermark: false } })).toEqual({ seconds: 5, call: calls.h3FromText })
    const extra = { ratio: "9:16", resolution: "768P" }
    expect(submit("MiniMax-H3", { extra }).call.body).toMatchObject(extra)
  })

  test("H3 image-to-video: the picture decides on the ratio", () => {
    const asked = submit("MiniMax-H3", { image: picture, duration: 15, size: { width: 768, height: 1024 } })
    expect(asked).toEqual({ seconds: 15, call: calls.h3FromImage })
    expect(submit("MiniMax-H3", { image: data }).call.body).toMatchObject({
      content: [{ type: "text" }, { image_url: { url: "data:image/png;base64,iVBORw0KGgo=" }, role: "first_frame" }],
    })
  })

  test.each(["MiniMax-Hailuo-2.3-Fast", "I2V-01", "I2V-01-Director", "I2V-01-live"])("%s refuses text", (model) => {
    expect(() => submit(model)).toThrow("image_url: this model makes videos from a picture only")
    expect(submit(model, { image: picture }).call.body).toMatchObject({ first_frame_image: picture.url })
  })

  test.each(["MiniMax-Hailuo-2.3", "MiniMax-H3"])("%s: the caller cannot replace the gateway's own fields", (model) => {
    const extra = { callback_url: "https://elsewhere.test", model: "x", prompt: "x", duration: 60, content: [], n: 4 }
    const size = { width: 1366, height: 768 }
    const { body } = submit(model, { size, extra: { ...extra, resolution: "1080P" } }).call
    expect(body).not.toContainAnyKeys(["callback_url", "n"])
    expect(body).toMatchObject({ model, resolution: "768P" })
    expect(body?.duration).not.toBe(60)
    expect(JSON.stringify(body)).toContain(plain.prompt)
  })

  test.each([
    ["MiniMax-Hailuo-2.3", "text", 1920, 1080, { resolution: "1080P" }],
    ["MiniMax-Hailuo-02", "text", 1280, 720, { resolution: "768P" }],
    ["MiniMax-Hailuo-02", "a picture", 1080, 1920, { resolution: "1080P" }],
    ["T2V-01-Director", "text", 1280, 720, { resolution: "720P" }],
    ["S2V-01", "text", 1280, 720, { resolution: "720P" }],
    ["MiniMax-Next", "a picture", 720, 1280, { resolution: "720P" }],
    ["MiniMax-H3", "text", 1024, 768, { resolution: "768P", ratio: "4:3" }],
    ["MiniMax-H3", "text", 1440, 2560, { resolution: "2K", ratio: "9:16" }],
    ["MiniMax-H4", "text", 3360, 1440, { resolution: "2K", ratio: "21:9" }],
  ] as const)("%s from %s is told of %ix%i in its own terms", (model, from, width, height, expected) => {
    const { body } = submit(model, { image: imageOf(from), size: { width, height } }).call
    expect<object | undefined>(body).toMatchObject(expected)
  })

  test.each([
    ["MiniMax-Hailuo-2.3", "text", 768, 1366, "sizes of the aspect ratios 16:9"],
    ["MiniMax-Hailuo-02", "text", 910, 512, "whose short side is 768 (768P), 1080 (1080P)"],
    ["MiniMax-Hailuo-2.3", "a picture", 910, 512, "768 (768P), 1080 (1080P)"],
    ["T2V-01", "text", 1920, 1080, "720 (720P)"],
    ["MiniMax-H3", "text", 1920, 1080, "768 (768P), 1440 (2K)"],
    ["MiniMax-H3", "text", 1152, 768, "16:9, 9:16, 1:1, 4:3, 3:4, 21:9"],
  ] as const)("%s from %s refuses %ix%i and says what it takes", (model, from, width, height, takes) => {
    expect(() => submit(model, { image: imageOf(from), size: { width, height } })).toThrow(takes)
  })

  test("lengths: 1080P is made at six seconds only", () => {
    const size = { width: 1920, height: 1080 }
    expect(submit("MiniMax-Hailuo-02", { size }).seconds).toBe(6)
    expect(() => submit("MiniMax-Hailuo-02", { size, duration: 10 })).toThrow("it takes 6 seconds")
    expect(() => submit("MiniMax-Hailuo-02", { duration: 5 })).toThrow("it takes 6, 10 seconds")
    expect(() => submit("T2V-01", { duration: 10 })).toThrow("it takes 6 seconds")
    expect(() => submit("MiniMax-H3", { duration: 4 })).toThrow("it takes 5 to 15 seconds")
    expect(submit("MiniMax-Next").seconds).toBe(6)
    expect(submit("MiniMax-H4", { duration: 20 }).seconds).toBe(20)
  })
})

describe("replies to a submit", () => {
  test("accepted, in either protocol, and asked after there", () => {
    for (const name of ["submitted", "submitted, the id a number"]) {
      const accepted = minimax.readSubmit(replay(recording, name), context)
      expect(accepted).toEqual({ kind: "accepted", ref, vendorId: ref.task })
    }
    expect(minimax.poll(ref, context)).toStrictEqual(calls.poll)
    const accepted = minimax.readSubmit(replay(h3Recording, "submitted"), h3)
    expect(accepted).toEqual({ kind: "accepted", ref: h3Ref, vendorId: "task-123" })
    expect(minimax.poll(h3Ref, h3)).toStrictEqual(calls.h3Poll)
    expect(() => minimax.poll({}, context)).toThrow("internal error")
  })

  test.each([
    [1000, 502],
    [1002, 429],
    [1004, 401],
    [1008, 402],
    [1024, 502],
    [1026, 400],
    [1027, 400],
    [1033, 502],
    [1039, 429],
    [1042, 400],
    [2013, 400],
    [2049, 401],
    [9999, 502],
  ])("code %i in a 200 amounts to %i", (code, status) => {
    const reply = replyOf({ task_id: "", base_resp: { status_code: code, status_msg: "why" } })
    const message = `${code === 1026 || code === 1027 ? "refused by the vendor's moderation: " : ""}why (code ${code})`
    expect(minimax.readSubmit(reply, context)).toEqual({ kind: "refused", status, message })
  })

  test("a time-out at the vendor leaves open whether there is a job", () => {
    const reply = replyOf({ task_id: "", base_resp: { status_code: 1001, status_msg: "timeout" } })
    expect(minimax.readSubmit(reply, context).kind).toBe("unreadable")
  })

  test.each([
    ["rate limited", 429, "rate limit (code 1002)"],
    ["bare base_resp", 400, "invalid params (code 2013)"],
    ["code in a 401", 401, "login fail (code 1004)"],
    ["trouble of its own", 503, "mysql failed (code 1033)"],
  ])("%s: refused", (name, status, message) => {
    expect(minimax.readSubmit(replay(recording, name), context)).toEqual({ kind: "refused", status, message })
  })

  test.each([
    ["invalid request", 400, "ratio is required"],
    ["invalid request in a 200", 400, "ratio is required"],
    ["trouble of its own", 500, "internal"],
  ])("H3, %s: refused", (name, status, message) => {
    expect(minimax.readSubmit(replay(h3Recording, name), h3)).toEqual({ kind: "refused", status, message })
  })

  test("no id in a 200, or another server's error: nobody knows", () => {
    expect(minimax.readSubmit(replay(recording, "submitted without an id"), context).kind).toBe("unreadable")
    expect(minimax.readSubmit(replay(h3Recording, "error in a 200 without a status"), h3).kind).toBe("unreadable")
    for (const status of [500, 502, 503, 504]) {
      const reply = { status, headers: {}, json: null, text: "<html>bad gateway</html>" }
      expect(minimax.readSubmit(reply, context).kind).toBe("unreadable")
    }
  })
})

describe("replies to a poll", () => {
  const nothing = { kind: "failed", reason: "the vendor finished the job without a video" } as const
  // biome-ignore format: a table
  test.each([
    ["preparing", { kind: "queued" }],
    ["queueing", { kind: "queued" }],
    ["processing", { kind: "running" }],
    ["a word of tomorrow", { kind: "running", oddWord: "polishing" }],
    ["success", { kind: "continue", ref: withFile }],
    ["success, the file a number", { kind: "continue", ref: withFile }],
    ["success without a file", nothing],
    ["failed by moderation", { kind: "failed", reason: "refused by the vendor's moderation: output new_sensitive (code 1027)" }],
    ["failed", { kind: "failed", reason: "unknown error (code 1000)" }],
    ["failed without a reason", { kind: "failed", reason: 'the job ended as "fail"' }],
  ] as const)("%s", (name, expected) => {
    expect<object>(minimax.readPoll(replay(recording, name), ref, context)).toStrictEqual(expected)
  })

  test.each([
    ["poll rate limited", "unreadable"],
    ["poll with a wrong key", "unreadable"],
    ["no such task", "missing"],
  ])("%s is no verdict", (name, kind) => {
    expect<string>(minimax.readPoll(replay(recording, name), ref, context).kind).toBe(kind)
  })

  test("the address of the file takes a third call, which tells no length", () => {
    expect(minimax.poll(withFile, context)).toStrictEqual(calls.file)
    const read = (name: string) => minimax.readPoll(replay(recording, name), withFile, context)
    expect(read("file")).toEqual({
      kind: "succeeded",
      url: "https://files.test/output_aigc.mp4?Expires=1",
      seconds: null,
    })
    expect(read("file by its backup")).toMatchObject({ url: "https://backup.test/output_aigc.mp4" })
    expect(read("file, rate limited").kind).toBe("unreadable")
    expect(read("file without an address").kind).toBe("unreadable")
  })

  test("a file whose number is too large for a double is asked for by all of its digits", () => {
    const text = '{"status":"Success","file_id": 9205258526306433123,"base_resp":{"status_code":0}}'
    const reply = { status: 200, headers: {}, json: JSON.parse(text), text }
    expect(minimax.readPoll(reply, ref, context)).toMatchObject({ ref: { file: "9205258526306433123" } })
  })

  // biome-ignore format: a table
  test.each([
    ["queued", { kind: "queued" }],
    ["running", { kind: "running" }],
    ["a word of tomorrow", { kind: "running", oddWord: "polishing" }],
    ["succeeded", { kind: "succeeded", url: "https://cdn.test/v.mp4", seconds: 5 }],
    ["succeeded without usage", { kind: "succeeded", url: "https://cdn.test/v.mp4", seconds: 6 }],
    ["succeeded with nothing", nothing],
    ["failed", { kind: "failed", reason: "output new_sensitive" }],
    ["cancelled", { kind: "failed", reason: 'the job ended as "cancelled"' }],
    ["expired", { kind: "failed", reason: 'the job ended as "expired"' }],
    ["unknown", { kind: "missing", why: "HTTP 404: no such task" }],
    ["poll rate limited", { kind: "unreadable", why: "HTTP 429: slow down" }],
  ] as const)("H3, %s", (name, expected) => {
    expect<object>(minimax.readPoll(replay(h3Recording, name), h3Ref, h3)).toStrictEqual(expected)
  })
})

test("replies of no known shape are neither thrown over nor taken for jobs or videos", () => {
  const own = [
    { task_id: {}, base_resp: [] },
    { task_id: 0 },
    { status: "Success", file_id: -1 },
    { status: "Success", file_id: 1.5 },
    { task: { status: "succeeded", content: { url: "ftp://x/y" } } },
    { file: { download_url: 7 } },
    { error: { http_code: 200, message: "x" } },
  ]
  for (const reply of [...oddReplies, ...own.map((json) => replyOf(json))]) {
    for (const where of [context, h3]) {
      expect(minimax.readSubmit(reply, where).kind).not.toBe("accepted")
      for (const known of [ref, withFile, h3Ref, null, "x", {}]) {
        const { kind } = minimax.readPoll(reply, known, where)
        expect(["succeeded", "continue"]).not.toContain(kind)
        if (reply.status >= 300) expect(kind).toBe(reply.status === 404 ? "missing" : "unreadable")
      }
    }
  }
})
