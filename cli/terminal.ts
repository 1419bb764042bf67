// The environment and output streams of a command. Results are written with `print` and messages for people with `say`,
// so that programs can parse the results.

export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Standard output: only the result. */
  readonly print: (text: string) => void;
  /** Standard error. */
  readonly say: (text: string) => void;
  /** Reads standard input to its end. */
  readonly input: () => Promise<string>;
}

export const printJson = (terminal: Terminal, value: unknown): void => terminal.print(`${JSON.stringify(value)}\n`);

/** Formats rows as aligned columns. The first row determines the number of columns. */
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
