/** Tiny real files of sound and film, header by header. Each is as long as it says. */

function text(value: string): Buffer {
  return Buffer.from(value, "latin1")
}

function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16LE(value)
  return bytes
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

function b32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function b64(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(value))
  return bytes
}

export interface WavOptions {
  readonly rate?: number
  readonly channels?: number
  readonly bits?: number
  readonly format?: number
  /** What the header says of the bytes of sound. */
  readonly declared?: number
  readonly bytesPerSecond?: number
  /** Chunks between format and sound. */
  readonly between?: Buffer
  readonly mark?: string
}

export function wavFile(seconds: number, options: WavOptions = {}): Buffer {
  const { rate = 8000, channels = 1, bits = 16, format = 1, between = Buffer.alloc(0), mark = "RIFF" } = options
  const frameBytes = channels * Math.ceil(bits / 8)
  const sound = Buffer.alloc(Math.round(seconds * rate) * frameBytes)
  const extension = format === 0xfffe ? Buffer.concat([u16(22), u16(bits), u32(0), Buffer.alloc(16)]) : Buffer.alloc(0)
  const head = [format, channels].map(u16)
  const fmt = Buffer.concat([
    ...head,
    u32(rate),
    u32(options.bytesPerSecond ?? rate * frameBytes),
    u16(frameBytes),
    u16(bits),
    extension,
  ])
  const chunks = [wavChunk("fmt ", fmt), between, text("data"), u32(options.declared ?? sound.length), sound]
  const body = Buffer.concat([text("WAVE"), ...chunks])
  return Buffer.concat([text(mark), u32(body.length), body])
}

export function wavChunk(name: string, content: Buffer): Buffer {
  return Buffer.concat([text(name), u32(content.length), content, Buffer.alloc(content.length % 2)])
}

export function flacFile(samples: number, rate: number): Buffer {
  const rateChannelsBits = rate * 2 ** 12 + 15 * 2 ** 4 + Math.floor(samples / 2 ** 32)
  const info = Buffer.concat([Buffer.alloc(10), b32(rateChannelsBits), b32(samples % 2 ** 32), Buffer.alloc(16)])
  return Buffer.concat([text("fLaC"), Buffer.from([0x80, 0, 0, info.length]), info, Buffer.alloc(100)])
}

/** Frames of layer III by their header: version 3 is MPEG 1, 2 is MPEG 2, 0 is MPEG 2.5. */
export interface Mp3Options {
  readonly version?: 0 | 2 | 3
  readonly bitrateIndex?: number
  readonly bytesPerFrame?: number
  readonly isMono?: boolean
  /** What the encoder noted in the first frame. */
  readonly notes?: { readonly mark: "Xing" | "Info" | "VBRI"; readonly frames: number }
}

/** 128 kbit/s at 44.1 kHz, unless told otherwise; the frames' size has to fit the bit rate. */
export function mp3File(frames: number, options: Mp3Options = {}): Buffer {
  const { version = 3, bitrateIndex = 9, bytesPerFrame = 417, isMono = true, notes } = options
  const header = 0xffe00000 + version * 2 ** 19 + 2 ** 17 + 2 ** 16 + bitrateIndex * 2 ** 12 + (isMono ? 0xc0 : 0)
  const frame = Buffer.concat([b32(header), Buffer.alloc(bytesPerFrame - 4)])
  const first = Buffer.from(frame)
  if (notes?.mark === "VBRI") Buffer.concat([text("VBRI"), Buffer.alloc(10), b32(notes.frames)]).copy(first, 36)
  else if (notes !== undefined) {
    const side = version === 3 ? (isMono ? 17 : 32) : isMono ? 9 : 17
    Buffer.concat([text(notes.mark), b32(1), b32(notes.frames)]).copy(first, 4 + side)
  }
  return Buffer.concat([first, ...Array.from({ length: frames - 1 }, () => frame)])
}

export function id3Tag(bytes: number): Buffer {
  const size = [21, 14, 7, 0].map((shift) => (bytes >> shift) & 0x7f)
  return Buffer.concat([text("ID3"), Buffer.from([4, 0, 0, ...size]), Buffer.alloc(bytes, 0xff)])
}

export function oggPage(granule: bigint, packet: Buffer, serial = 7): Buffer {
  const position = Buffer.alloc(8)
  position.writeBigInt64LE(granule)
  const segments = [...Array.from({ length: Math.floor(packet.length / 255) }, () => 255), packet.length % 255]
  const lead = [text("OggS"), Buffer.from([0, 0]), position, u32(serial), u32(0), u32(0)]
  return Buffer.concat([...lead, Buffer.from([segments.length, ...segments]), packet])
}

export function opusFile(samples: number, preSkip: number): Buffer {
  const head = Buffer.concat([text("OpusHead"), Buffer.from([1, 1]), u16(preSkip), u32(16_000), Buffer.alloc(3)])
  const pages = [oggPage(0n, head), oggPage(0n, text("OpusTags")), oggPage(960n, Buffer.alloc(900))]
  return Buffer.concat([...pages, oggPage(BigInt(samples + preSkip), Buffer.alloc(600))])
}

export function vorbisFile(samples: number, rate: number): Buffer {
  const head = Buffer.concat([text("\x01vorbis"), u32(0), Buffer.from([1]), u32(rate), Buffer.alloc(14)])
  return Buffer.concat([oggPage(0n, head), oggPage(BigInt(samples), Buffer.alloc(3000))])
}

export function mp4Box(type: string, content: Buffer, long = false): Buffer {
  if (!long) return Buffer.concat([b32(8 + content.length), text(type), content])
  return Buffer.concat([b32(1), text(type), b64(16 + content.length), content])
}

export function mvhd(scale: number, duration: number, version: 0 | 1 = 0): Buffer {
  const number = version === 1 ? b64 : b32
  const times = [number(0), number(0), b32(scale), number(duration)]
  return mp4Box("mvhd", Buffer.concat([Buffer.from([version, 0, 0, 0]), ...times, Buffer.alloc(80)]))
}

export function mp4File(header: Buffer, options: { moovLast?: boolean; longMdat?: boolean } = {}): Buffer {
  const moov = mp4Box("moov", Buffer.concat([mp4Box("udta", Buffer.alloc(5)), header]))
  const mdat = mp4Box("mdat", Buffer.alloc(2000), options.longMdat)
  const ftyp = mp4Box("ftyp", text("M4A \0\0\0\0"))
  return Buffer.concat(options.moovLast ? [ftyp, mdat, moov] : [ftyp, moov, mdat])
}

/** An element of EBML; an open one says that its size is unknown. */
export function element(id: number, content: Buffer, sizeBytes = 1, isOpen = false): Buffer {
  const name = Buffer.from(id.toString(16), "hex")
  const size = Buffer.alloc(sizeBytes, isOpen ? 0xff : 0)
  if (!isOpen) size.writeUIntBE(content.length, Math.max(0, sizeBytes - 6), Math.min(6, sizeBytes))
  const marker = 0x80 >> (sizeBytes - 1)
  size[0] = (size[0]! & (marker - 1)) | marker
  return Buffer.concat([name, size, content])
}

export interface WebmOptions {
  readonly scale?: number
  readonly isDouble?: boolean
  readonly isOpen?: boolean
}

/** `ticks` null: a recording that was streamed says no duration. */
export function webmFile(ticks: number | null, { scale, isDouble = false, isOpen = false }: WebmOptions = {}): Buffer {
  const value = Buffer.alloc(isDouble ? 8 : 4)
  if (isDouble) value.writeDoubleBE(ticks ?? 0)
  else value.writeFloatBE(ticks ?? 0)
  const info = Buffer.concat([
    ...(scale === undefined ? [] : [element(0x2ad7b1, b32(scale))]),
    element(0x4d80, text("muxer")),
    ...(ticks === null ? [] : [element(0x4489, value)]),
  ])
  const segment = Buffer.concat([
    element(0xec, Buffer.alloc(40), 8),
    element(0x1549a966, info, 2),
    element(0x1f43b675, Buffer.alloc(300), 4),
  ])
  return Buffer.concat([element(0x1a45dfa3, Buffer.alloc(31)), element(0x18538067, segment, 8, isOpen)])
}
