/** Kinds of pictures by how their bytes begin, each under the media type that it goes by, with other names for the same. */
interface PictureKind {
  readonly mediaType: string
  readonly alias: readonly string[]
  begins(bytes: Buffer): boolean
}

// biome-ignore format: a table
const kinds: readonly PictureKind[] = [
  { mediaType: "image/png", alias: ["image/x-png"], begins: (bytes) => has(bytes, 0, "\x89PNG\r\n\x1a\n") },
  { mediaType: "image/jpeg", alias: ["image/jpg", "image/pjpeg"], begins: (bytes) => has(bytes, 0, "\xff\xd8\xff") },
  { mediaType: "image/webp", alias: [], begins: (bytes) => has(bytes, 0, "RIFF") && has(bytes, 8, "WEBP") },
  { mediaType: "image/gif", alias: [], begins: (bytes) => has(bytes, 0, "GIF87a") || has(bytes, 0, "GIF89a") },
  // Two letters begin other things as well; the reserved bytes and the short length of the second header are a bitmap's.
  { mediaType: "image/bmp", alias: ["image/x-bmp", "image/x-ms-bmp"],
    begins: (bytes) => has(bytes, 0, "BM") && has(bytes, 6, "\0\0\0\0") && has(bytes, 15, "\0\0\0") },
  { mediaType: "image/tiff", alias: [], begins: (bytes) => has(bytes, 0, "II*\0") || has(bytes, 0, "MM\0*") },
  { mediaType: "image/avif", alias: [], begins: (bytes) => isBrand(bytes, "avif avis") },
  { mediaType: "image/heic", alias: ["image/heif"], begins: (bytes) => isBrand(bytes, "heic heix heim heis hevc hevx mif1 msf1") },
]

export const pictureTypes: readonly string[] = kinds.map(({ mediaType }) => mediaType)

/** The media type that the bytes themselves show; null where they are no picture that anyone takes. */
export function typeOfPicture(bytes: Uint8Array): string | null {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 32))
  return kinds.find((kind) => kind.begins(head))?.mediaType ?? null
}

/** The media type that a `content-type` stands for; null where it names no kind of picture. */
export function namedType(contentType: string): string | null {
  const name = contentType.split(";")[0]!.trim().toLowerCase()
  return kinds.find(({ mediaType, alias }) => mediaType === name || alias.includes(name))?.mediaType ?? null
}

/** How a data URL may begin; a longer beginning than any client writes is none. */
const dataHead = /^data:image\/[\w.+-]+(;[\w.+-]+=[\w.+-]*)*;base64,/i
const longestHead = 200

/** The base64 of a picture's data URL, unread; null for any other text. */
export function dataUrlBase64(text: string): string | null {
  const head = dataHead.exec(text.slice(0, longestHead))
  return head === null ? null : text.slice(head[0].length)
}

function has(bytes: Buffer, at: number, latin1: string): boolean {
  return bytes.toString("latin1", at, at + latin1.length) === latin1
}

function isBrand(bytes: Buffer, brands: string): boolean {
  return has(bytes, 4, "ftyp") && brands.split(" ").includes(bytes.toString("latin1", 8, 12))
}
