// Parses the `Prefer` header (RFC 7240). Invalid preferences are ignored, as the RFC requires.
import { WAIT_SECONDS_MAX } from '../../../contract/limits.ts';

export interface Preferences {
  /** `handling=strict`: unknown fields are refused instead of causing a warning. */
  readonly isStrict: boolean;
  /** `wait=SECONDS`: the request waits in the queue instead of being refused. Limited to `WAIT_SECONDS_MAX`. */
  readonly waitSeconds?: number;
  /** `respond-async`: the request is answered before the work has ended. */
  readonly isAsync: boolean;
  /** `wait=0`: the request does not wait. */
  readonly hasZeroWait: boolean;
}

/**
 * A preference with an optional, possibly quoted value; parameters after a semicolon are ignored. `(?!\s)` prevents
 * backtracking over blanks, which would take quadratic time.
 */
const PREFERENCE = /^([a-z-]+)(?:\s*=\s*(?!\s)(?:"([^"]*)"|([^\s;"]*)))?\s*(?:;.*)?$/i;

export function readPreferences(header: string | readonly string[] | undefined): Preferences {
  const valueByName = new Map<string, string>();
  for (const part of [header ?? []].flat().join(',').split(',')) {
    const [, name = '', quoted, plain] = PREFERENCE.exec(part.trim()) ?? [];
    // If a preference is repeated, the first one counts, as the RFC specifies.
    if (!valueByName.has(name.toLowerCase())) valueByName.set(name.toLowerCase(), quoted ?? plain ?? '');
  }
  const wait = valueByName.get('wait') ?? '';
  const seconds = /^\d{1,9}$/.test(wait) ? Math.min(Number(wait), WAIT_SECONDS_MAX) : 0;
  return {
    isStrict: valueByName.get('handling')?.toLowerCase() === 'strict',
    isAsync: valueByName.has('respond-async'),
    hasZeroWait: wait !== '' && /^0+$/.test(wait),
    ...(seconds > 0 ? { waitSeconds: seconds } : {}),
  };
}
