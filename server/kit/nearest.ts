// Which of some words is nearest to one that is not among them: by the letters to add, leave out or exchange.

/** The first of those that are equally near; undefined where there are none. */
export function nearest(word: string, words: readonly string[]): string | undefined {
  const measured = words.map(one => ({ one, distance: distanceOf(word.toLowerCase(), one.toLowerCase()) }));
  return measured.toSorted((a, b) => a.distance - b.distance)[0]?.one;
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
