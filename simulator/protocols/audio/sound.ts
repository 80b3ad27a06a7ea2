/** Sound of OpenAI's voices: 24,000 samples of 16 bits in a second, one channel. */
export const samplesPerSecond = 24_000
const bytesPerSample = 2
const toneHertz = 440
const loudness = 8000
const wavHeadBytes = 44

/** A frame of MPEG-1 layer III: 128 kbit/s, 44.1 kHz, one channel, and all else zero, which is silence. */
const mp3FrameBytes = 417
const mp3FrameSeconds = 1152 / 44_100
const mp3Frame = Buffer.concat([Buffer.from("fffb90c4", "hex"), Buffer.alloc(mp3FrameBytes - 4)])

export const contentTypes: Readonly<Record<string, string>> = {
  mp3: "audio/mpeg",
  opus: "audio/opus",
  aac: "audio/aac",
  flac: "audio/flac",
  wav: "audio/wav",
  pcm: "audio/pcm",
}

/** Real WAV, PCM and MP3; formats that would take an encoder get the bytes of an MP3 under their own content type. */
export function soundOf(format: string, seconds: number): Buffer {
  if (format === "wav") return wav(seconds)
  return format === "pcm" ? tone(seconds) : mp3(seconds)
}

function mp3(seconds: number): Buffer {
  return Buffer.concat(Array.from({ length: Math.max(1, Math.round(seconds / mp3FrameSeconds)) }, () => mp3Frame))
}

function tone(seconds: number): Buffer {
  const samples = Int16Array.from({ length: Math.max(1, Math.round(seconds * samplesPerSecond)) }, (_, index) =>
    Math.round(loudness * Math.sin((2 * Math.PI * toneHertz * index) / samplesPerSecond)),
  )
  return Buffer.from(samples.buffer)
}

export function wav(seconds: number): Buffer {
  const data = tone(seconds)
  const head = Buffer.alloc(wavHeadBytes)
  head.write("RIFF", 0, "latin1")
  head.writeUInt32LE(wavHeadBytes - 8 + data.length, 4)
  head.write("WAVEfmt ", 8, "latin1")
  head.writeUInt32LE(16, 16)
  // Format 1 is PCM, of one channel.
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(samplesPerSecond, 24)
  head.writeUInt32LE(samplesPerSecond * bytesPerSample, 28)
  head.writeUInt16LE(bytesPerSample, 32)
  head.writeUInt16LE(8 * bytesPerSample, 34)
  head.write("data", 36, "latin1")
  head.writeUInt32LE(data.length, 40)
  return Buffer.concat([head, data])
}

/** How long a sound is: exactly for a plain WAV, otherwise as if it were 128 kbit/s. */
export function secondsOf(bytes: Uint8Array): number {
  const sound = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const isWav = sound.length >= wavHeadBytes && sound.toString("latin1", 0, 4) === "RIFF"
  const perSecond = isWav ? sound.readUInt32LE(28) : 16_000
  return (sound.length - (isWav ? wavHeadBytes : 0)) / (perSecond || 1)
}
