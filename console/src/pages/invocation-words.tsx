// Formats the status, credit and duration of an invocation for the list of invocations and for the page of one
// invocation.
import type { Invocation } from '../../../contract/invocations.ts';
import { STATUS_WORDS } from './invocation-filters.ts';

export const InvocationState = ({ status }: Pick<Invocation, 'status'>) => {
  const { word, dot, ink } = STATUS_WORDS[status];
  return (
    <span className={`inline-flex items-center gap-2 text-sm font-medium whitespace-nowrap ${ink}`}>
      <span aria-hidden="true" className={`size-2 rounded-full ${dot}`} />
      {word}
    </span>
  );
};

const MICRO_CREDITS_PER_CREDIT = 1_000_000;
const CREDIT_FORMAT = new Intl.NumberFormat('en', { maximumFractionDigits: 6 });

/** For example, `0.0054 credits`. */
export const creditWords = (microCredits: number): string =>
  `${CREDIT_FORMAT.format(microCredits / MICRO_CREDITS_PER_CREDIT)} ${microCredits === MICRO_CREDITS_PER_CREDIT ? 'credit' : 'credits'}`;

const SECOND_MS = 1_000;

/** For example, `240 ms`, `3.2 s` or `1 min 5 s`. */
export function elapsedWords(from: string, to: string): string {
  const ms = Math.max(0, Date.parse(to) - Date.parse(from));
  if (ms < SECOND_MS) return `${ms} ms`;
  const seconds = ms / SECOND_MS;
  return seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}
