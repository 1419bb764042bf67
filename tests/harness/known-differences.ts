// Reads the list of differences in docs/connecting.md for the table of clients. Apart from these differences, a session
// must behave like a plain Chromium. Records which lines were used, so that unnecessary lines can be found.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const DOCUMENT_PATH = join(import.meta.dirname, '../../docs/connecting.md');
const HEADING = '## What differs from a Chromium of your own';
/**
 * Matches a row of the list: events and one of their fields, an optional value, and the sessions in which they differ.
 * If the row has a value, Berth itself causes each event with that value.
 */
const ROW =
  /^\| (`\w+\.\w+`(?:, `\w+\.\w+`)*) \| `([\w.-]+)(?:: ([^`]+))?` \| (every session|with a recording|with a log or a recording) \|/;

interface Difference {
  readonly methods: readonly string[];
  readonly field: string;
  readonly value: string | undefined;
  readonly everywhere: boolean;
}

const differences: readonly Difference[] = rowsOf(readFileSync(DOCUMENT_PATH, 'utf8')).map(row => {
  const [, events, field, value, where] = ROW.exec(row) ?? [];
  if (events === undefined || field === undefined)
    throw new Error(`${DOCUMENT_PATH} contains a row that does not match the format of the list: ${row}`);
  return { methods: events.replaceAll('`', '').split(', '), field, value, everywhere: where === 'every session' };
});

export class KnownDifferences {
  readonly #differences: readonly Difference[];
  readonly #values = new Map<Difference, Set<string>>();

  constructor(which: 'every difference' | 'those of every session') {
    this.#differences = differences.filter(({ everywhere }) => everywhere || which === 'every difference');
  }

  /** Whether Berth causes this event, according to the list. */
  has(method: string, params: unknown): boolean {
    const difference = this.#differences.find(
      one =>
        one.methods.includes(method) && one.value !== undefined && one.value === String(valueAt(params, one.field)),
    );
    if (difference) this.#note(difference, 'there');
    return difference !== undefined;
  }

  /** Whether the value is ignored in comparisons. */
  hasField(method: string, field: string, value: unknown): boolean {
    const difference = this.#differences.find(
      one => one.methods.includes(method) && one.field === field && one.value === undefined,
    );
    if (difference) this.#note(difference, `${method} ${JSON.stringify(value)}`);
    return difference !== undefined;
  }

  /**
   * Returns the lines that are unnecessary: every value to which such a line applied here was also found in `other`.
   */
  unnecessaryLines(other: KnownDifferences): readonly string[] {
    const unseenDifferences = this.#differences.filter(one =>
      [...this.#valuesOf(one)].every(value => other.#valuesOf(one).has(value)),
    );
    return unseenDifferences.map(({ methods, field }) => `${methods} ${field}`);
  }

  #note(difference: Difference, value: string): void {
    this.#values.set(difference, this.#valuesOf(difference).add(value));
  }

  #valuesOf(difference: Difference): Set<string> {
    return this.#values.get(difference) ?? new Set();
  }
}

function rowsOf(text: string): readonly string[] {
  const [, rest = ''] = text.split(HEADING);
  const [section = ''] = rest.split('\n## ');
  const [, rows = ''] = section.split('| --- |\n');
  return rows.split('\n').filter(line => line.startsWith('|'));
}

function valueAt(value: unknown, path: string): unknown {
  return path.split('.').reduce((inner: unknown, key) => {
    return typeof inner === 'object' && inner !== null ? new Map(Object.entries(inner)).get(key) : undefined;
  }, value);
}
