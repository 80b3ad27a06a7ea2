import { expect, test } from "bun:test"
import { readForm } from "./multipart.ts"

const type = 'multipart/form-data; charset=utf-8; boundary="b b"'
const read = (body: string, contentType = type): ReturnType<typeof readForm> =>
  readForm([["Content-Type", contentType]], Buffer.from(body, "latin1"))

test("fields and files are told apart, and a file's bytes are exact", async () => {
  const bytes = Buffer.from("\r\n--b\r\n--not a boundary\r\n\x00\xff", "latin1")
  const form = new FormData()
  form.set("model", "whisper-1")
  form.set("file", new File([bytes], 'a "b".wav', { type: "audio/wav" }))
  const encoded = new Response(form)
  const headers = [["content-type", encoded.headers.get("content-type")!]] as const
  const got = readForm(headers, await encoded.bytes())
  if ("problem" in got) throw new Error(got.problem)
  expect([...got.fields]).toEqual([["model", "whisper-1"]])
  expect(got.files).toMatchObject([{ name: "file", contentType: "audio/wav" }])
  expect(Buffer.from(got.files[0]!.bytes).equals(bytes)).toBe(true)
})

test("preamble, epilogue, any order of parameters and unquoted names are understood", () => {
  const body =
    'before\r\n--b b\r\nContent-Disposition: form-data; filename="x.png"; name=image\r\n\r\nPNG\r\n--b b\r\ncontent-disposition: form-data; name="n"\r\n\r\n2\r\n--b b--\r\nafter'
  const form = read(body)
  if ("problem" in form) throw new Error(form.problem)
  expect(form.files).toMatchObject([{ name: "image", fileName: "x.png" }])
  expect(form.fields.get("n")).toBe("2")
})

test.each([
  ["", type],
  ["--b b\r\n\r\nno name\r\n--b b--", type],
  ['--b b\r\nContent-Disposition: form-data; name="a"\r\n\r\nno end', type],
  ['--b b\nContent-Disposition: form-data; name="a"\n\nbare line ends\n--b b--', type],
  ["--b b--", "multipart/form-data"],
  ["{}", "application/json"],
])("what is no form is a problem: %j", (body, contentType) => {
  expect(read(body, contentType)).toHaveProperty("problem")
})
