// Shortens a list of entries, such as console messages, to the newest that fit into a response.
const LINES_MAX = 200;
const LINE_CHARACTERS_MAX = 1_000;
const TEXT_CHARACTERS_MAX = 100_000;

/**
 * Joins the newest lines, which are the last ones. Returns at most `LINES_MAX` lines, and only as many as fit into
 * `TEXT_CHARACTERS_MAX`. Each line is cut to `LINE_CHARACTERS_MAX`.
 */
export function newestLines(allLines: readonly string[]): string {
  const shownLines: string[] = [];
  let characters = 0;
  for (const line of allLines.slice(-LINES_MAX).toReversed()) {
    const shownLine = line.slice(0, LINE_CHARACTERS_MAX).toWellFormed();
    characters += shownLine.length + 1;
    if (characters > TEXT_CHARACTERS_MAX) break;
    shownLines.unshift(shownLine);
  }
  const omittedCount = allLines.length - shownLines.length;
  return [...(omittedCount > 0 ? [`(${omittedCount} earlier entries are not shown)`] : []), ...shownLines].join('\n');
}
