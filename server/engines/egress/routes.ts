// Chooses the proxy for a host: the first matching rule decides. Patterns come from callers, so RE2 matches them, which
// takes time linear in the length of the host.
import { RE2JS } from 're2js';
import type { HostMatcher } from './host-rules.ts';
import type { EgressPolicy } from './policy.ts';
import type { Upstream } from './upstream.ts';

export interface RouteRule {
  /** Absent: every host. */
  readonly pattern?: string | undefined;
  readonly by: Upstream | 'direct';
}

export function routes(rules: readonly RouteRule[]): EgressPolicy['routeTo'] {
  const compiled = rules.map(({ pattern, by }) => ({
    matches: pattern === undefined ? () => true : compile(pattern),
    by,
  }));
  return hostname => {
    const by = compiled.find(rule => rule.matches(hostname))?.by;
    return by === 'direct' ? undefined : by;
  };
}

/** The error message for an invalid pattern; undefined for a valid one. */
export function patternError(pattern: string): string | undefined {
  try {
    compile(pattern);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** A pattern may match any part of a host. Case is ignored, because hosts are in lower case but patterns may not be. */
function compile(pattern: string): HostMatcher {
  const compiled = RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE);
  return hostname => compiled.matcher(hostname).find();
}
