import { describe, expect, test } from "bun:test"
import { dataUrlBase64, namedType, pictureTypes, typeOfPicture } from "./picture-bytes.ts"

function bytes(latin1: string): Uint8Array {
  return Buffer.from(latin1, "latin1")
}

describe("bytes show what they are", () => {
  test.each([
    ["image/png", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR"],
    ["image/jpeg", "\xff\xd8\xff\xe0\0\x10JFIF"],
    ["image/webp", "RIFF\x24\0\0\0WEBPVP8 "],
    ["image/gif", "GIF89a\x01\0\x01\0"],
    ["image/gif", "GIF87a\x01\0\x01\0"],
    ["image/bmp", "BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"],
    ["image/tiff", "II*\0\x08\0\0\0"],
    ["image/tiff", "MM\0*\0\0\0\x08"],
    ["image/avif", "\0\0\0\x20ftypavif\0\0\0\0"],
    ["image/heic", "\0\0\0\x18ftypheic\0\0\0\0"],
    ["image/heic", "\0\0\0\x18ftypmif1\0\0\0\0"],
  ])("%s", (type, head) => {
    expect(typeOfPicture(bytes(head))).toBe(type)
    expect(typeOfPicture(bytes(head + "x".repeat(100)))).toBe(type)
    expect(pictureTypes).toContain(type)
  })

  test.each([
    ["nothing", ""],
    ["a page", "<!doctype html>"],
    ["a drawing of text", '<svg xmlns="http://www.w3.org/2000/svg">'],
    ["a document", "%PDF-1.7"],
    ["a sound", "RIFF\x24\0\0\0WAVEfmt "],
    ["a video", "\0\0\0\x18ftypisom\0\0\0\0"],
    ["words that begin like a bitmap", "BMW makes cars and motorcycles"],
    ["half a picture's beginning", "\x89PNG\r\n"],
  ])("%s is no picture", (_, head) => {
    expect(typeOfPicture(bytes(head))).toBeNull()
  })

  test("a view into a larger array is read where it begins", () => {
    const whole = bytes("GIF89a\x89PNG\r\n\x1a\n")
    expect(typeOfPicture(whole.subarray(6))).toBe("image/png")
  })
})

test.each([
  ["image/png", "image/png"],
  ["Image/JPG ; charset=binary", "image/jpeg"],
  ["image/heif", "image/heic"],
  ["image/x-ms-bmp", "image/bmp"],
  ["image/svg+xml", null],
  ["image/", null],
  ["text/html", null],
  ["application/octet-stream", null],
  ["", null],
])("the content-type %p stands for %p", (contentType, type) => {
  expect(namedType(contentType)).toBe(type)
})

test("a data URL's base64 begins after its head", () => {
  expect(dataUrlBase64("data:image/png;base64,AAAA")).toBe("AAAA")
  expect(dataUrlBase64("DATA:image/svg+xml;charset=utf-8;BASE64,")).toBe("")
  expect(dataUrlBase64("data:image/png;base64,A,B")).toBe("A,B")
  for (const text of ["", "data:image/png,AAAA", "data:text/plain;base64,AAAA", " data:image/png;base64,AAAA"]) {
    expect(dataUrlBase64(text)).toBeNull()
  }
})
