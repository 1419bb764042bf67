// The operator's own proxies, which rules of the type `browserbase` ask for by place: chosen by what they state.
import { createHash } from 'node:crypto';
import type { SessionId } from '../../kit/ids.ts';
import type { RouteBy } from './proxies.ts';

export interface ProxyPool {
  /** What events call it. */
  readonly name: string;
  /** ISO 3166 alpha-2, upper case. */
  readonly country: string;
  readonly state?: string | undefined;
  readonly city?: string | undefined;
  /** One is chosen for each session and kept. */
  readonly proxies: readonly [RouteBy, ...RouteBy[]];
  /** Sessions whose every connection may go here get this time zone, unless they name one. */
  readonly timeZone?: string | undefined;
}

export interface Place {
  readonly country: string;
  readonly state?: string | undefined;
  readonly city?: string | undefined;
}

/** What `proxies: true` asks for, where there is one; else the first pool. */
const COUNTRY_DEFAULT = 'US';

/** A pool that states all that was asked for; undefined: there is none. */
export function poolFor(pools: readonly ProxyPool[], place: Place | undefined): ProxyPool | undefined {
  if (!place) return pools.find(pool => pool.country === COUNTRY_DEFAULT) ?? pools[0];
  return pools.find(
    pool =>
      pool.country === place.country.toUpperCase() &&
      (place.state === undefined || same(pool.state, place.state)) &&
      (place.city === undefined || same(pool.city, place.city)),
  );
}

/** Official clients write NEW_YORK. */
const same = (stated: string | undefined, asked: string): boolean =>
  stated !== undefined && plainWords(stated) === plainWords(asked);

const plainWords = (text: string): string => text.toLowerCase().replaceAll(/[_\s-]+/g, ' ');

/** The same for all rules of one session. */
export function memberFor(pool: ProxyPool, session: SessionId): RouteBy {
  const index = createHash('sha256').update(session).digest().readUInt32BE() % pool.proxies.length;
  return pool.proxies[index] ?? pool.proxies[0];
}
