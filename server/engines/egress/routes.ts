// Chooses the proxy for a host: the first matching rule decides. Patterns come from callers, so they are matched with
// RE2, whose time is linear in the length of the host and in the size of the compiled patterns. This size is limited.
import { RE2JS } from 're2js';
import type { HostMatcher } from './host-rules.ts';
import type { EgressPolicy } from './policy.ts';
import type { Upstream } from './upstream.ts';

export interface RouteRule {
  /** If absent, the rule applies to every host. */
  readonly pattern?: string | undefined;
  readonly by: Upstream | 'direct';
}

export function routerOf(rules: readonly RouteRule[]): EgressPolicy['routeTo'] {
  const compiledRules = rules.map(({ pattern, by }) => ({
    matches: pattern === undefined ? () => true : matcherOf(pattern),
    by,
  }));
  return hostname => {
    const chosenRoute = compiledRules.find(rule => rule.matches(hostname))?.by;
    return chosenRoute === 'direct' ? undefined : chosenRoute;
  };
}

/**
 * Maximum number of RE2 instructions in all patterns of a session. At this limit, matching a host of 253 characters
 * takes about 10 ms.
 */
export const PATTERN_INSTRUCTIONS_MAX = 1000;
/**
 * Maximum length of a pattern in which each count, such as `{1,63}`, is replaced by repetitions. A longer pattern is
 * not compiled, because compiling it would take too long.
 */
const EXPANDED_LENGTH_MAX = 4 * PATTERN_INSTRUCTIONS_MAX;

/**
 * Returns the error message for each invalid pattern, and undefined for each valid one. Once a pattern exceeds
 * PATTERN_INSTRUCTIONS_MAX, the patterns after it are not examined.
 */
export function patternErrors(patterns: ReadonlyArray<string | undefined>): ReadonlyArray<string | undefined> {
  let remainingInstructions = PATTERN_INSTRUCTIONS_MAX;
  return patterns.map(pattern => {
    if (pattern === undefined || remainingInstructions < 0) return undefined;
    try {
      remainingInstructions -=
        expandedLength(pattern) > EXPANDED_LENGTH_MAX ? Number.POSITIVE_INFINITY : compile(pattern).programSize();
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
    return remainingInstructions < 0 ? TOO_LARGE_MESSAGE : undefined;
  });
}

const TOO_LARGE_MESSAGE = `it brings the patterns of the session to more than ${PATTERN_INSTRUCTIONS_MAX} instructions; a count such as {1,63} repeats the part before it, so use smaller counts, or + and *`;

/**
 * Matches a count together with the end of the character or class that it repeats. A count after an empty `\Q\E`
 * repeats the item before the `\Q\E`.
 */
const COUNT_PATTERN = /(\\E|[\].\w])?\{(\d+)(?:,(\d*))?\}/g;

/**
 * An upper bound on the size of a pattern after its counts are replaced by repetitions, as if all counted groups were
 * nested. Each repetition of a character or a class counts as 1.
 */
function expandedLength(pattern: string): number {
  let [length, copies] = [pattern.length, 1];
  for (const [, repeatedItem, minCount, maxCount] of pattern.matchAll(COUNT_PATTERN)) {
    const count = Math.max(1, Number(minCount), Number(maxCount ?? 0));
    if (repeatedItem === undefined || repeatedItem === '\\E') copies *= count;
    else length += count;
  }
  return length * copies;
}

/** Case is ignored, because host names are in lower case but patterns may not be. */
const compile = (pattern: string): RE2JS => RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE);

/** The pattern may match any part of a host name. */
function matcherOf(pattern: string): HostMatcher {
  const compiledPattern = compile(pattern);
  return hostname => compiledPattern.matcher(hostname).find();
}
