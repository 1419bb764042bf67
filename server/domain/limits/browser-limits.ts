// The limits of an application: what its owner configured, defaults for the rest, and the operator's ceiling. Pure.

import { BROWSER_LIMITS_DEFAULT, type BrowserLimits, type SomeBrowserLimits } from '../../../contract/limits.ts';
import type { JsonObject } from '../../kit/json.ts';

const NAMES = Object.keys(BROWSER_LIMITS_DEFAULT) as ReadonlyArray<keyof BrowserLimits>;

/** What a row configures, with the default of each limit that it does not name. Only numbers are read. */
export function configuredLimits({ browsers }: JsonObject): BrowserLimits {
  const limits: { -readonly [Name in keyof BrowserLimits]: number } = { ...BROWSER_LIMITS_DEFAULT };
  const configured: Readonly<Record<string, unknown>> = Object(browsers);
  for (const name of NAMES) {
    const value = configured[name];
    if (typeof value === 'number') limits[name] = value;
  }
  return limits;
}

/** A default time limit above the longest one is the longest one. */
export function effectiveLimits(configured: BrowserLimits, ceiling: SomeBrowserLimits): BrowserLimits {
  const capped = { ...configured };
  for (const name of NAMES) capped[name] = Math.min(configured[name], ceiling[name] ?? Number.POSITIVE_INFINITY);
  return { ...capped, defaultTimeout: Math.min(capped.defaultTimeout, capped.maxTimeout) };
}
