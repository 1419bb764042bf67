// What an application's limits come to: what its owner configured, the defaults under it, the operator's ceiling over it. Pure.
import { BROWSER_LIMITS_DEFAULT, type BrowserLimits, type SomeBrowserLimits } from '../../../contract/limits.ts';
import type { JsonObject } from '../../engines/store/rows/json.ts';

/** What is kept of an application's limits: the members that its owner named. */
export interface ConfiguredLimits {
  readonly browsers?: SomeBrowserLimits;
}

const NAMES = Object.keys(BROWSER_LIMITS_DEFAULT) as ReadonlyArray<keyof BrowserLimits>;

export function configuredLimits({ browsers = {} }: ConfiguredLimits): BrowserLimits {
  return { ...BROWSER_LIMITS_DEFAULT, ...browsers };
}

/** A default time limit above the longest one is the longest one. */
export function effectiveLimits(configured: BrowserLimits, ceiling: SomeBrowserLimits): BrowserLimits {
  const capped = { ...configured };
  for (const name of NAMES) capped[name] = Math.min(configured[name], ceiling[name] ?? Number.POSITIVE_INFINITY);
  return { ...capped, defaultTimeout: Math.min(capped.defaultTimeout, capped.maxTimeout) };
}

/** The row's JSON: only ours are taken, and only where they are numbers. */
export function readConfigured({ browsers }: JsonObject): ConfiguredLimits {
  if (typeof browsers !== 'object' || browsers === null) return {};
  const entries = Object.entries(browsers).filter(
    ([name, value]) => NAMES.some(known => known === name) && typeof value === 'number',
  );
  return { browsers: Object.fromEntries(entries) };
}
