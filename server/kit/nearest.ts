// Which of some words is nearest to one that is not among them: by the letters to add, leave out or exchange.

/** How many letters a misspelt word has for each that is wrong, at least. */
const LETTERS_PER_MISTAKE = 4;

/** The first of those that are equally near; undefined where there are none. */
export const nearest = (word: string, words: readonly string[]): string | undefined => measured(word, words)?.one;

/** The word that this is a misspelling of: case, `_` and `-` do not count, and one letter in four may be wrong. */
export function misspelt(word: string, words: readonly string[]): string | undefined {
  const found = measured(word.replaceAll(/[_-]/g, ''), words);
  return found && found.distance <= Math.floor(found.one.length / LETTERS_PER_MISTAKE) ? found.one : undefined;
}

function measured(word: string, words: readonly string[]) {
  const all = words.map(one => ({ one, distance: distanceOf(word.toLowerCase(), one.toLowerCase()) }));
  return all.toSorted((a, b) => a.distance - b.distance)[0];
}

/** Levenshtein's distance, row by row. */
function distanceOf(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1];
    for (let at = 1; at <= to.length; at++) {
      const [left = 0, above = 0, diagonal = 0] = [next[at - 1], row[at], row[at - 1]];
      next.push(Math.min(left + 1, above + 1, diagonal + (to[at - 1] === letter ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
