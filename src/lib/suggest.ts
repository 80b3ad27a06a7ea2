/** Mistakes counted by `distance`: a letter too many, too few, wrong, or two neighbours swapped. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      let best = Math.min(last[column]! + 1, current[column - 1]! + 1, last[column - 1]! + (same ? 0 : 1))
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      if (swapped) best = Math.min(best, beforeLast[column - 2]! + 1)
      current.push(best)
    }
    beforeLast = last
    last = current
  }
  return last[b.length]!
}

/** Beyond this length nobody mistyped a name, and comparing would cost time for nothing. */
const longestWord = 64

/** The known word that was most likely meant, or null where none is close. */
export function suggest(word: string, known: Iterable<string>): string | null {
  if (word.length > longestWord) return null
  const wanted = word.toLowerCase()
  let bestDistance = Math.floor(wanted.length / 3) + 1
  let best: string | null = null
  for (const candidate of known) {
    const found = distance(wanted, candidate.toLowerCase())
    if (found < bestDistance || (found === 0 && best === null)) {
      bestDistance = found
      best = candidate
    }
  }
  return best
}
