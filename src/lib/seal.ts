import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto"
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"

export const shortestMasterKey = 32
const formatVersion = 1
const cipher = "aes-256-gcm"
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16
const headerBytes = 1 + nonceBytes + tagBytes

export const masterKeyFile = "master.key"
const madeKeyBytes = 32

/** What only the holder of the master key can do with secrets. */
export interface Vault {
  /** Encrypts; `context` names the place the result is kept at, and only there can it be opened again. */
  seal(text: string, context: string): Uint8Array
  unseal(sealed: Uint8Array, context: string): string
  /** A keyed fingerprint: tells equal secrets without keeping them. */
  digest(text: string): string
  /** Proves later that a text came from here. */
  sign(text: string): string
}

export class SealError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = "SealError"
  }
}

export function openVault(masterKey: string): Vault {
  if (masterKey.length < shortestMasterKey) {
    throw new SealError(`the master key has ${masterKey.length} characters; it needs at least ${shortestMasterKey}`)
  }
  // A subkey for each use, so that a weakness of one never reaches another.
  const sealing = subkey(masterKey, "tollgate seal v1")
  const digesting = subkey(masterKey, "tollgate digest v1")
  const signing = subkey(masterKey, "tollgate sign v1")
  return {
    seal: (text, context) => seal(sealing, text, context),
    unseal: (sealed, context) => unseal(sealing, sealed, context),
    digest: (text) => new Bun.CryptoHasher("sha256", digesting).update(text).digest("base64url"),
    sign: (text) => new Bun.CryptoHasher("sha256", signing).update(text).digest("base64url"),
  }
}

function subkey(masterKey: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", masterKey, "", purpose, keyBytes))
}

/** Layout: version byte, nonce, tag, ciphertext. */
function seal(key: Buffer, text: string, context: string): Uint8Array {
  const nonce = randomBytes(nonceBytes)
  const box = createCipheriv(cipher, key, nonce).setAAD(Buffer.from(context))
  const body = Buffer.concat([box.update(text, "utf8"), box.final()])
  return new Uint8Array(Buffer.concat([Buffer.of(formatVersion), nonce, box.getAuthTag(), body]))
}

function unseal(key: Buffer, sealed: Uint8Array, context: string): string {
  if (sealed.length < headerBytes || sealed[0] !== formatVersion) {
    throw new SealError(`the sealed value of ${context} is damaged, or was written by a newer version`)
  }
  const nonce = sealed.subarray(1, 1 + nonceBytes)
  const tag = sealed.subarray(1 + nonceBytes, headerBytes)
  const box = createDecipheriv(cipher, key, nonce, { authTagLength: tagBytes })
  box.setAAD(Buffer.from(context)).setAuthTag(tag)
  try {
    return Buffer.concat([box.update(sealed.subarray(headerBytes)), box.final()]).toString("utf8")
  } catch (cause) {
    throw new SealError(
      `cannot unseal ${context}: the master key is not the one it was sealed with (or the stored value was changed); ` +
        `start with the original TOLLGATE_MASTER_KEY or ${masterKeyFile} file, or enter the secret again`,
      { cause },
    )
  }
}

/** The key from the environment; without one, the key in the data folder, made at the first start. */
export function loadMasterKey(dataDir: string, fromEnv: string | undefined): string {
  if (fromEnv !== undefined) return longEnough(fromEnv, "TOLLGATE_MASTER_KEY")
  const file = join(dataDir, masterKeyFile)
  if (!existsSync(file)) makeKey(dataDir, file)
  return longEnough(readFileSync(file, "utf8").trim(), file)
}

function longEnough(key: string, source: string): string {
  if (key.length >= shortestMasterKey) return key
  throw new Error(`${source} has ${key.length} characters; it needs at least ${shortestMasterKey}`)
}

/** Written aside and linked into place: whoever starts at the same time sees no file or a whole one, and all see the same. */
function makeKey(dataDir: string, file: string): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const aside = `${file}.${process.pid}.${randomBytes(4).toString("hex")}`
  try {
    writeFileSync(aside, `${randomBytes(madeKeyBytes).toString("base64url")}\n`, {
      mode: 0o600,
      flag: "wx",
      flush: true,
    })
    linkSync(aside, file)
    flushFolder(dataDir)
  } catch (error) {
    if (!existsSync(file)) throw error
  } finally {
    rmSync(aside, { force: true })
  }
}

/** Without it a power cut could take the key away after the first secret was sealed with it. */
function flushFolder(folder: string): void {
  const handle = openSync(folder, "r")
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
