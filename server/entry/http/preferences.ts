// The `Prefer` header (RFC 7240): what a caller would like of the answer. What cannot be read is passed over, as the RFC says. Pure.
import { WAIT_MAX_SECONDS } from '../../../contract/limits.ts';

export interface Preferences {
  /** `handling=strict`: fields that the operation does not know are refused instead of warned of. */
  readonly isStrict: boolean;
  /** `wait=SECONDS`: wait in the queue instead of being refused; capped here. */
  readonly waitSeconds?: number;
}

/**
 * A preference, its value quoted or not; parameters behind a semicolon have no meaning here. `(?!\s)`: blanks are read once,
 * not as often as they can be shared out between two places.
 */
const PREFERENCE = /^([a-z-]+)(?:\s*=\s*(?!\s)(?:"([^"]*)"|([^\s;"]*)))?\s*(?:;.*)?$/i;

export function readPreferences(header: string | readonly string[] | undefined): Preferences {
  const stated = new Map<string, string>();
  for (const part of [header ?? []].flat().join(',').split(',')) {
    const [, name = '', quoted, plain] = PREFERENCE.exec(part.trim()) ?? [];
    // Of two that contradict each other the first counts.
    if (!stated.has(name.toLowerCase())) stated.set(name.toLowerCase(), quoted ?? plain ?? '');
  }
  const wait = stated.get('wait') ?? '';
  const seconds = /^\d{1,9}$/.test(wait) ? Math.min(Number(wait), WAIT_MAX_SECONDS) : 0;
  return {
    isStrict: stated.get('handling')?.toLowerCase() === 'strict',
    ...(seconds > 0 ? { waitSeconds: seconds } : {}),
  };
}
