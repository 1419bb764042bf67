// Computes the limits of an application from its configured limits, the defaults, and the operator's ceiling. Pure.

import type { Issue } from '../../../contract/common.ts';
import { BROWSER_LIMITS_DEFAULT, type BrowserLimits, type PartialBrowserLimits } from '../../../contract/limits.ts';
import type { JsonObject } from '../../kit/json.ts';

const LIMIT_NAMES = Object.keys(BROWSER_LIMITS_DEFAULT) as ReadonlyArray<keyof BrowserLimits>;

/**
 * Returns the limits that are configured for an application, with the default for each limit that is absent or is not a
 * number.
 */
export function configuredLimits({ browsers }: JsonObject): BrowserLimits {
  const limits: { -readonly [Name in keyof BrowserLimits]: number } = { ...BROWSER_LIMITS_DEFAULT };
  const configuredValues: Readonly<Record<string, unknown>> = Object(browsers);
  for (const name of LIMIT_NAMES) {
    const value = configuredValues[name];
    if (typeof value === 'number') limits[name] = value;
  }
  return limits;
}

/**
 * Applies the operator's ceiling to configured limits. A default time limit above the maximum is reduced to the
 * maximum.
 */
export function effectiveLimits(applicationLimits: BrowserLimits, ceiling: PartialBrowserLimits): BrowserLimits {
  const cappedLimits = { ...applicationLimits };
  for (const name of LIMIT_NAMES)
    cappedLimits[name] = Math.min(applicationLimits[name], ceiling[name] ?? Number.POSITIVE_INFINITY);
  return { ...cappedLimits, defaultTimeout: Math.min(cappedLimits.defaultTimeout, cappedLimits.maxTimeout) };
}

/**
 * Returns an issue for each requested limit that would not take effect: limits above the ceiling, unless they were
 * configured before the operator lowered it, and a default time limit above the maximum.
 */
export function ineffectiveLimitIssues(
  requestedLimits: PartialBrowserLimits,
  currentLimits: BrowserLimits,
  ceiling: PartialBrowserLimits,
): readonly Issue[] {
  const ceilingIssues = LIMIT_NAMES.flatMap(name => {
    const [value, max] = [requestedLimits[name], ceiling[name]];
    if (value === undefined || max === undefined || value <= max || value === currentLimits[name]) return [];
    return [{ path: `browsers.${name}`, message: `is ${value}; the operator of this service allows at most ${max}` }];
  });
  const { defaultTimeout, maxTimeout = BROWSER_LIMITS_DEFAULT.maxTimeout } = requestedLimits;
  if (defaultTimeout === undefined || defaultTimeout <= maxTimeout) return ceilingIssues;
  const message = `is ${defaultTimeout}, which is above maxTimeout (${maxTimeout})`;
  return [...ceilingIssues, { path: 'browsers.defaultTimeout', message }];
}
