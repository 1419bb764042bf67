// Finds the word in a list that is most similar to another word, by the number of letters to add, remove or replace.

/**
 * The minimum number of letters per mistake. A word with more mistakes than this allows for its length is not regarded
 * as a misspelling.
 */
const LETTERS_PER_MISTAKE_MIN = 4;

/**
 * Returns the most similar word, or the first of them if several are equally similar. Undefined if there are no words.
 */
export const nearestWord = (word: string, words: readonly string[]): string | undefined =>
  nearestMatch(word, words)?.match;

/** The word that was probably meant: case, `_` and `-` do not matter, and one letter in four may be wrong. */
export function correctionFor(word: string, words: readonly string[]): string | undefined {
  const closest = nearestMatch(word.replaceAll(/[_-]/g, ''), words);
  return closest && closest.distance <= Math.floor(closest.match.length / LETTERS_PER_MISTAKE_MIN)
    ? closest.match
    : undefined;
}

function nearestMatch(word: string, words: readonly string[]) {
  const candidates = words.map(match => ({ match, distance: distanceOf(word.toLowerCase(), match.toLowerCase()) }));
  return candidates.toSorted((a, b) => a.distance - b.distance)[0];
}

/** The Levenshtein distance, computed row by row. */
function distanceOf(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, letter] of [...from].entries()) {
    const nextRow = [index + 1];
    for (let at = 1; at <= to.length; at++) {
      const [left = 0, above = 0, diagonal = 0] = [nextRow[at - 1], row[at], row[at - 1]];
      nextRow.push(Math.min(left + 1, above + 1, diagonal + (to[at - 1] === letter ? 0 : 1)));
    }
    row = nextRow;
  }
  return row.at(-1) ?? 0;
}
