// Where a command gets its settings from and where it writes: results to `print`, everything for people to `say` as
// soon as the result is meant for a program.

export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The output: what was asked for, and nothing else. */
  readonly print: (text: string) => void;
  /** The error output. */
  readonly say: (text: string) => void;
}

export const printJson = (terminal: Terminal, value: unknown): void => terminal.print(`${JSON.stringify(value)}\n`);

/** Rows as columns of equal width; the first row is the heading. */
export function table(rows: ReadonlyArray<readonly string[]>): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => (row[column] ?? '').length)));
  return rows
    .map(
      row =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}
