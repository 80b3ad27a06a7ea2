import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import {
  flacFile,
  id3Tag,
  mp3File,
  mp4Box,
  mp4File,
  mvhd,
  oggPage,
  opusFile,
  vorbisFile,
  wavChunk,
  wavFile,
  webmFile,
} from "../../../test/support/media-files.ts"
import { mediaDuration } from "./duration.ts"

const mp3FrameSeconds = 1152 / 44_100

const real: Record<string, [file: Buffer, seconds: number]> = {
  WAV: [wavFile(1.5), 1.5],
  "WAV in stereo of 24 bits": [wavFile(0.25, { channels: 2, bits: 24, rate: 44_100 }), 0.25],
  "WAV, extensible": [wavFile(2, { format: 0xfffe, channels: 2, bytesPerSecond: 1 }), 2],
  "WAV with chunks of odd size before the sound": [wavFile(1, { between: wavChunk("LIST", Buffer.alloc(27)) }), 1],
  "WAV that was written to a pipe: size 0": [wavFile(3, { declared: 0 }), 3],
  "WAV that was written to a pipe: size open": [wavFile(3, { declared: 0xffffffff }), 3],
  "WAV whose size is more than there is": [wavFile(2, { declared: 900_000 }), 2],
  "WAV whose bytes in a second are wrong": [wavFile(2, { bytesPerSecond: 4_000_000_000 }), 2],
  "WAV of a compressed sound": [wavFile(1, { format: 0x55, bytesPerSecond: 4000 }), 4],
  RF64: [wavFile(1, { mark: "RF64", declared: 0xffffffff }), 1],
  FLAC: [flacFile(96_000, 48_000), 2],
  "FLAC of more than 2^32 samples": [flacFile(2 ** 35 + 44_100, 44_100), 2 ** 35 / 44_100 + 1],
  "MP3 of one bit rate": [mp3File(200), (200 * 417 * 8) / 128_000],
  "MP3 of one frame": [mp3File(1), (417 * 8) / 128_000],
  "MP3 behind a tag full of what looks like frames": [
    Buffer.concat([id3Tag(5000), id3Tag(300), mp3File(100)]),
    (100 * 417 * 8) / 128_000,
  ],
  "MP3 with an old tag at the end": [
    Buffer.concat([mp3File(100), Buffer.from("TAG"), Buffer.alloc(125)]),
    (100 * 417 * 8) / 128_000,
  ],
  "MP3 with Xing notes": [mp3File(100, { notes: { mark: "Xing", frames: 400 } }), 400 * mp3FrameSeconds],
  "MP3 with Info notes, stereo": [
    mp3File(100, { isMono: false, notes: { mark: "Info", frames: 99 } }),
    99 * mp3FrameSeconds,
  ],
  "MP3 with VBRI notes": [mp3File(100, { notes: { mark: "VBRI", frames: 250 } }), 250 * mp3FrameSeconds],
  "MP3 with notes that cannot be true": [
    mp3File(100, { notes: { mark: "Xing", frames: 1 } }),
    (100 * 417 * 8) / 128_000,
  ],
  // 64 kbit/s: 576 samples at 22.05 and at 11.025 kHz.
  "MP3 of MPEG 2": [mp3File(50, { version: 2, bitrateIndex: 8, bytesPerFrame: 208 }), (50 * 208 * 8) / 64_000],
  "MP3 of MPEG 2.5 with notes": [
    mp3File(50, { version: 0, bitrateIndex: 8, bytesPerFrame: 417, notes: { mark: "Xing", frames: 50 } }),
    (50 * 576) / 11_025,
  ],
  "Ogg Opus": [opusFile(48_000 * 5, 312), 5],
  "Ogg Vorbis": [vorbisFile(44_100 * 3, 44_100), 3],
  "Ogg whose last page ends no packet, and pages of another stream": [
    Buffer.concat([opusFile(96_000, 0), oggPage(-1n, Buffer.alloc(50)), oggPage(9_000_000n, Buffer.alloc(9), 8)]),
    2,
  ],
  M4A: [mp4File(mvhd(1000, 4500)), 4.5],
  "M4A with long numbers": [mp4File(mvhd(48_000, 48_000 * 100_000, 1)), 100_000],
  "MP4 with its header at the end": [mp4File(mvhd(600, 900), { moovLast: true }), 1.5],
  "MP4 behind a box of 64-bit size": [mp4File(mvhd(600, 900), { moovLast: true, longMdat: true }), 1.5],
  WebM: [webmFile(2500), 2.5],
  "Matroska with another scale": [webmFile(2500, { scale: 10_000_000, isDouble: true }), 25],
  "WebM of open size": [webmFile(1250, { scale: 1_000_000, isOpen: true }), 1.25],
}

describe("files tell how long they are", () => {
  for (const [about, [file, seconds]] of Object.entries(real)) {
    test(about, () => expect(mediaDuration(file)).toBeCloseTo(seconds, 6))
  }

  test("wherever they lie in memory", () => {
    const file = wavFile(1.5)
    expect(mediaDuration(Buffer.concat([Buffer.alloc(13), file]).subarray(13))).toBe(1.5)
  })
})

describe("files that do not tell", () => {
  const silent: Record<string, Uint8Array> = {
    nothing: new Uint8Array(),
    text: Buffer.from("these are words, and no sound at all"),
    zeros: new Uint8Array(100_000),
    "RIFF of another kind": Buffer.from("RIFF\x10\0\0\0AVI LIST"),
    "WAV of no channels": wavFile(1, { channels: 0, declared: 500 }),
    "FLAC that was written to a pipe": flacFile(0, 44_100),
    "FLAC of no rate": flacFile(1000, 0),
    "Ogg of neither": Buffer.concat([oggPage(0n, Buffer.from("\x80theora")), oggPage(99n, Buffer.alloc(9))]),
    "Vorbis of no rate": vorbisFile(1000, 0),
    "MP4 in fragments": mp4File(mvhd(1000, 0)),
    "MP4 of unknown length": mp4File(mvhd(1000, 0xffffffff)),
    "MP4 of no scale": mp4File(mvhd(0, 1000)),
    "MP4 without a header": mp4Box("ftyp", Buffer.alloc(8)),
    "MP4 of absurd length": mp4File(mvhd(1, 0xfffffff0)),
    "WebM that was streamed": webmFile(null),
    "WebM of no scale": webmFile(2500, { scale: 0 }),
    "WebM of negative length": webmFile(-5),
    "WebM of no length at all": webmFile(Number.NaN),
    "WebM of endless length": webmFile(Number.POSITIVE_INFINITY, { isDouble: true }),
    AAC: Buffer.concat(Array.from({ length: 9 }, () => Buffer.from("fff15080043ffc", "hex"))),
  }
  for (const [about, file] of Object.entries(silent)) test(about, () => expect(mediaDuration(file)).toBeNull())
})

describe("hostile bytes", () => {
  const files = Object.values(real).map(([file]) => file)
  const isSane = (seconds: number | null): boolean => seconds === null || (seconds >= 0 && seconds <= 10_000_000)

  test("no beginning of a file does harm", () => {
    for (const file of files) {
      for (let end = 0; end < Math.min(file.length, 600); end++)
        expect(isSane(mediaDuration(file.subarray(0, end)))).toBeTrue()
    }
  })

  test("no change of a few bytes does harm", () => {
    const change = fc.record({ at: fc.nat({ max: 400 }), bytes: fc.uint8Array({ maxLength: 9 }) })
    fc.assert(
      fc.property(fc.constantFrom(...files), fc.array(change, { maxLength: 4 }), (file, changes) => {
        const changed = Buffer.from(file)
        for (const { at, bytes } of changes) Buffer.from(bytes).copy(changed, Math.min(at, changed.length))
        expect(isSane(mediaDuration(changed))).toBeTrue()
      }),
      { numRuns: 1500 },
    )
  })

  test("nor do bytes by chance behind any file's mark", () => {
    const marks = [...files.map((file) => file.subarray(0, 12)), Buffer.alloc(0)]
    fc.assert(
      fc.property(fc.constantFrom(...marks), fc.uint8Array({ maxLength: 300, size: "max" }), (mark, bytes) => {
        expect(isSane(mediaDuration(Buffer.concat([mark, bytes])))).toBeTrue()
      }),
      { numRuns: 1500 },
    )
  })

  test("the work is bounded, however many boxes, elements, chunks, pages or frames there seem to be", () => {
    const size = 8_000_000
    const boxes = Buffer.concat([mp4Box("ftyp", Buffer.alloc(0)), Buffer.alloc(size, mp4Box("free", Buffer.alloc(0)))])
    const chunks = Buffer.concat([
      Buffer.from("RIFF\0\0\0\0WAVE"),
      Buffer.alloc(size, wavChunk("LIST", Buffer.alloc(0))),
    ])
    const elements = Buffer.concat([webmFile(null).subarray(0, 48), Buffer.alloc(size, Buffer.from([0xec, 0x80]))])
    const pages = Buffer.concat([opusFile(1, 0).subarray(0, 60), Buffer.alloc(size, "OggS")])
    const frames = Buffer.alloc(size, Buffer.from("fffb90c4", "hex"))
    for (const file of [boxes, chunks, elements, pages]) expect(mediaDuration(file)).toBeNull()
    expect(isSane(mediaDuration(frames))).toBeTrue()
  })
})
