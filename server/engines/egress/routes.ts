// Which proxy leads to which host: rules in order, the first that fits decides. Patterns come from callers and are run
// in time linear in the host's length.
import { RE2JS } from 're2js';
import type { HostJudge } from './host-rules.ts';
import type { EgressPolicy } from './policy.ts';
import type { Upstream } from './upstream.ts';

export interface RouteRule {
  /** Absent: every host. */
  readonly pattern?: string | undefined;
  readonly by: Upstream | 'direct';
}

export function routes(rules: readonly RouteRule[]): EgressPolicy['routeTo'] {
  const compiled = rules.map(({ pattern, by }) => ({ fits: pattern === undefined ? () => true : fits(pattern), by }));
  return hostname => {
    const by = compiled.find(rule => rule.fits(hostname))?.by;
    return by === 'direct' ? undefined : by;
  };
}

/** What is wrong with a pattern, in words; undefined when it can be used. */
export function patternError(pattern: string): string | undefined {
  try {
    fits(pattern);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Found anywhere in the host, as a regular expression is. Hosts are in lower case, so case does not matter here. */
function fits(pattern: string): HostJudge {
  const compiled = RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE);
  return hostname => compiled.matcher(hostname).find();
}
