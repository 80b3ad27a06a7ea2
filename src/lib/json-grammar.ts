// RFC 8259 as a table: from a state and a byte to the next state, or to an action that the scanner has to take.

// States: what may come next.
export const REFUSE = 0
export const VALUE = 1
export const NOTHING_MORE = 2
export const AFTER_MEMBER = 3
export const AFTER_ITEM = 4
export const COLON = 5
export const IN_STRING = 6
const KEY = 7
export const KEY_OR_CLOSE = 8
export const VALUE_OR_CLOSE = 9
const IN_ESCAPE = 10
const FOUR_HEX = 11
const THREE_HEX = 12
const TWO_HEX = 13
const ONE_HEX = 14
const AFTER_MINUS = 15
const ZERO = 16
const INTEGER = 17
const AFTER_POINT = 18
const FRACTION = 19
const AFTER_E = 20
const AFTER_E_SIGN = 21
const EXPONENT = 22
const T_RUE = 23
const TR_UE = 24
const TRU_E = 25
const F_ALSE = 26
const FA_LSE = 27
const FAL_SE = 28
const FALS_E = 29
const N_ULL = 30
const NU_LL = 31
const NUL_L = 32

// Actions, numbered above the states.
export const FIRST_ACTION = 33
/** The first byte of a string, number or word; `firstState` knows the state it leads to. */
export const START_SCALAR = 33
export const START_KEY = 34
export const END_STRING = 35
export const END_WORD = 36
/** The byte after a number; it is to be read once more, as what follows a value. */
export const END_NUMBER = 37
export const OPEN_OBJECT = 38
export const OPEN_ARRAY = 39
export const CLOSE = 40

const space = " \t\n\r"
const oneToNine = "123456789"
const digit = `0${oneToNine}`
const hex = `${digit}abcdefABCDEF`
const endOfNumber = `${space},]}`
const value: Rules = { [space]: VALUE, [`"-${digit}tfn`]: START_SCALAR, "{": OPEN_OBJECT, "[": OPEN_ARRAY }

/** Characters that lead to the same step -> that step; whatever is not named is refused. */
type Rules = Readonly<Record<string, number>>

const grammar: ReadonlyMap<number, Rules> = new Map<number, Rules>([
  [VALUE, value],
  [VALUE_OR_CLOSE, { ...value, [space]: VALUE_OR_CLOSE, "]": CLOSE }],
  [KEY, { [space]: KEY, '"': START_KEY }],
  [KEY_OR_CLOSE, { [space]: KEY_OR_CLOSE, '"': START_KEY, "}": CLOSE }],
  [COLON, { [space]: COLON, ":": VALUE }],
  [AFTER_MEMBER, { [space]: AFTER_MEMBER, ",": KEY, "}": CLOSE }],
  [AFTER_ITEM, { [space]: AFTER_ITEM, ",": VALUE, "]": CLOSE }],
  [NOTHING_MORE, { [space]: NOTHING_MORE }],

  // The scanner skips ordinary string bytes by itself.
  [IN_STRING, { '"': END_STRING, "\\": IN_ESCAPE }],
  [IN_ESCAPE, { '"\\/bfnrt': IN_STRING, u: FOUR_HEX }],
  [FOUR_HEX, { [hex]: THREE_HEX }],
  [THREE_HEX, { [hex]: TWO_HEX }],
  [TWO_HEX, { [hex]: ONE_HEX }],
  [ONE_HEX, { [hex]: IN_STRING }],

  [AFTER_MINUS, { "0": ZERO, [oneToNine]: INTEGER }],
  [ZERO, { [endOfNumber]: END_NUMBER, ".": AFTER_POINT, eE: AFTER_E }],
  [INTEGER, { [endOfNumber]: END_NUMBER, [digit]: INTEGER, ".": AFTER_POINT, eE: AFTER_E }],
  [AFTER_POINT, { [digit]: FRACTION }],
  [FRACTION, { [endOfNumber]: END_NUMBER, [digit]: FRACTION, eE: AFTER_E }],
  [AFTER_E, { [digit]: EXPONENT, "+-": AFTER_E_SIGN }],
  [AFTER_E_SIGN, { [digit]: EXPONENT }],
  [EXPONENT, { [endOfNumber]: END_NUMBER, [digit]: EXPONENT }],

  [T_RUE, { r: TR_UE }],
  [TR_UE, { u: TRU_E }],
  [TRU_E, { e: END_WORD }],
  [F_ALSE, { a: FA_LSE }],
  [FA_LSE, { l: FAL_SE }],
  [FAL_SE, { s: FALS_E }],
  [FALS_E, { e: END_WORD }],
  [N_ULL, { u: NU_LL }],
  [NU_LL, { l: NUL_L }],
  [NUL_L, { l: END_WORD }],
])

/** The step for state `s` and byte `b` is at `s * 256 + b`. */
export const steps = new Uint8Array(FIRST_ACTION * 256)
for (const [state, rules] of grammar) steps.set(byteTable(rules), state * 256)

/** The state after the first byte of a string, number or word. */
export const firstState = byteTable({
  '"': IN_STRING,
  "-": AFTER_MINUS,
  "0": ZERO,
  [oneToNine]: INTEGER,
  t: T_RUE,
  f: F_ALSE,
  n: N_ULL,
})

const firstPrintable = 0x20
const endsStringRun = byteTable({ '"\\': 1 }).fill(1, 0, firstPrintable)

/** The first place from `from` on that is no ordinary string byte; four at a time, since most bytes of a body pass here. */
export function skipStringRun(chunk: Uint8Array, from: number): number {
  const ends = endsStringRun
  const length = chunk.length
  const lastFour = length - 3
  let at = from
  while (
    at < lastFour &&
    (ends[chunk[at]!]! | ends[chunk[at + 1]!]! | ends[chunk[at + 2]!]! | ends[chunk[at + 3]!]!) === 0
  ) {
    at += 4
  }
  while (at < length && ends[chunk[at]!] === 0) at++
  return at
}

/** True in a state where a number may end. */
export function isWholeNumber(state: number): boolean {
  return steps[state * 256 + 0x2c] === END_NUMBER
}

/** How a byte is named in an error. */
export function nameByte(byte: number): string {
  if (byte >= firstPrintable && byte < 0x7f) return JSON.stringify(String.fromCharCode(byte))
  const code = `0x${byte.toString(16).padStart(2, "0")}`
  return byte < firstPrintable ? `control character ${code}` : `byte ${code}`
}

function byteTable(rules: Rules): Uint8Array {
  const table = new Uint8Array(256)
  for (const [characters, step] of Object.entries(rules)) {
    for (const character of characters) table[character.charCodeAt(0)] = step
  }
  return table
}
