// Removes typed credentials from the results of steps. Runs in a worker thread, because the results contain text from
// pages and can be long.
import { secretRedactor } from '../../kit/without-secrets.ts';
import type { Job } from '../../kit/worker-pool.ts';
import type { StepResult, StepsOutcome } from './command.ts';

export interface CleanInput {
  /** Does not include the bytes of files. */
  readonly stepsOutcome: StepsOutcome;
  readonly secrets: readonly string[];
}

const CLEAN_TIMEOUT_MS = 20_000;
/** The lowest limit at which strings from a page are cut. A string of at least this length may have been cut. */
const CUT_CHARACTERS_MIN = 300;

export const CLEAN_STEPS: Job<CleanInput, StepsOutcome> = {
  name: 'remove typed credentials from the results of steps',
  module: import.meta.url,
  limitMs: CLEAN_TIMEOUT_MS,
  isLong: true,
};

export function work({ stepsOutcome, secrets }: CleanInput): StepsOutcome {
  const removeSecrets = secretRedactor(secrets);
  const clean = (text: string): string => removeSecrets(text, text.length >= CUT_CHARACTERS_MIN);
  const cleanResult = ({ text, values, ...rest }: StepResult): StepResult => ({
    ...rest,
    ...(text === undefined ? {} : { text: clean(text) }),
    ...(values === undefined
      ? {}
      : { values: Object.fromEntries(Object.entries(values).map(([name, value]) => [name, cleanValue(value)])) }),
  });
  const cleanValue = (value: string | null | readonly string[]): string | null | readonly string[] =>
    typeof value === 'string' ? clean(value) : (value?.map(clean) ?? null);
  const { url, title, results, ...rest } = stepsOutcome;
  return { ...rest, url: clean(url), title: clean(title), results: results.map(cleanResult) };
}
