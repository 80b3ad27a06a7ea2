import { describe, expect, test } from "bun:test"
import { utf8 } from "./bytes.ts"
import { readHeaderLine } from "./multipart-header.ts"

describe("content-disposition", () => {
  test.each([
    ['Content-Disposition: form-data; name="model"', "model", false],
    ["Content-Disposition: form-data; name=model", "model", false],
    ["CONTENT-DISPOSITION:Form-Data;NAME=model", "model", false],
    ['content-disposition: \t form-data ; filename="x" ;\tname="model" ; ', "model", true],
    ["Content-Disposition: form-data; filename*=UTF-8''%e2%82%ac; name=model;", "model", true],
    ['Content-Disposition: form-data; filename=""; name=model', "model", true],
    ['Content-Disposition: form-data; name="a\\"b\\\\c"', 'a"b\\c', false],
    ['Content-Disposition: form-data; name="a%22%0d%0Ab%41%"', 'a"\r\nb%41%', false],
    ["Content-Disposition: form-data; name=a%22", "a%22", false],
    ['Content-Disposition: form-data; name="größe"', "größe", false],
    ['Content-Disposition: form-data; name="model"; filename="C:\\dir\\a;b.png"', "model", true],
    ['Content-Disposition: form-data; name=""', "", false],
    ["Content-Disposition: form-data", null, false],
  ] as const)("%s", (header, name, hasFilename) => {
    expect(readHeaderLine(utf8(header))).toEqual({ name, hasFilename })
  })

  test("any other header says nothing of the part", () => {
    expect(readHeaderLine(utf8('X-Content-Disposition: form-data; name="model"'))).toBeNull()
    expect(readHeaderLine(utf8("Content-Type: text/plain; name=model"))).toBeNull()
  })

  const value = "Content-Disposition: ".length
  test.each([
    ["form-data; name*=UTF-8''model", "name*= is not allowed in form-data", value],
    ["form-data; name*0=mo; name*1=del", "name*0= is not allowed in form-data", value],
    ["form-data; name=a; name=model", "the parameter name is given twice", value + 19],
    ["form-data; name=a; Name=model", "the parameter name is given twice", value + 19],
    ["attachment; name=model", '"attachment" is not form-data', value],
    ['form-data; name = "model"', 'expected name=word or name="text"', value + 11],
    ['form-data; name="model', 'expected name=word or name="text"', value + 11],
    ["form-data; name=mo del", 'expected ";"', value + 19],
    ['form-data; name="mo"del', 'expected ";"', value + 20],
    ["form-data; name=model\u00a0", 'expected ";"', value + 21],
    ["form-data, name=model", 'expected ";"', value + 9],
    ["; name=model", "the value starts with no word", value],
    ['form-data; name="mo\\del"', "in the name a backslash may only stand before a quote or a backslash", value],
    ['form-data; name="a"; filename="\\"; name=model; x="', 'a quoted text holds "; name="', value],
    ['form-data; filename="; name=model"', 'a quoted text holds "; name="', value],
  ] as const)("%s is refused", (disposition, what, offset) => {
    const problem = { problem: `content-disposition: ${what}`, at: offset }
    expect(readHeaderLine(utf8(`Content-Disposition: ${disposition}`))).toEqual(problem)
  })
})
