// Compiles JSON Schemas in a worker thread, and tries their patterns on sample strings, to find patterns that take
// exponential time.
import { isObject, type Json } from '../../kit/json.ts';
import { matchesSchema } from './validate-job.ts';

export interface CompileInput {
  readonly schemas: Readonly<Record<string, object>>;
}

/** The first error that was found, with the name of the schema in `path`. An empty object if there is none. */
export type CompileOutput = { readonly path: string; readonly message: string } | Record<string, never>;

/**
 * The number of times that a sample is repeated. With this many repetitions, a pattern that takes exponential time
 * needs seconds, and any other pattern needs microseconds.
 */
const REPETITIONS = 44;
const SAMPLES = ['a', 'A', '0', ' ', '-', '.', '/', '_', 'ab', 'a0', '0.', 'a ', 'a.', 'a-'];
const PATTERN_SAMPLES_MAX = 16;

export function work({ schemas }: CompileInput): CompileOutput {
  for (const [path, schema] of Object.entries(schemas)) {
    try {
      matchesSchema(schema, {});
    } catch (error) {
      return { path, message: error instanceof Error ? error.message.slice(0, 300) : 'cannot be compiled' };
    }
    // Schemas come from JSON, so the cast is safe.
    for (const pattern of patternsIn(schema as Json)) tryPattern(pattern);
  }
  return {};
}

/**
 * Tries a pattern on the sample strings. If the pattern takes exponential time on one of them, it exceeds the time
 * limit, and the worker pool terminates the thread.
 */
function tryPattern(pattern: string): void {
  const expression = new RegExp(pattern, 'u');
  const patternCharacters = [...new Set(pattern.replace(/[\\()[\]{}*+?^$|]/g, ''))].slice(0, PATTERN_SAMPLES_MAX);
  for (const sample of [...SAMPLES, ...patternCharacters]) {
    const repeatedSample = sample.repeat(REPETITIONS);
    for (const text of [
      `${repeatedSample}\u0001`,
      `x${repeatedSample}\u0001`,
      `${patternCharacters.join('')}${repeatedSample}\u0001`,
    ])
      expression.test(text);
  }
}

function patternsIn(value: Json): string[] {
  if (Array.isArray(value)) return value.flatMap(patternsIn);
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    if (name === 'pattern' && typeof member === 'string') return [member];
    const namePatterns = name === 'patternProperties' && isObject(member) ? Object.keys(member) : [];
    return [...namePatterns, ...patternsIn(member)];
  });
}
