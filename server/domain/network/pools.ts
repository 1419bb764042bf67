// The operator's proxy pools, which rules of type `browserbase` select by location.
import { createHash } from 'node:crypto';
import type { SessionId } from '../../kit/ids.ts';

/** A proxy in the form in which it is encrypted and stored with the session. */
export interface StoredProxy {
  readonly name: string;
  readonly scheme: 'http' | 'https' | 'socks5';
  readonly hostname: string;
  readonly port: number;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** Whether the operator configured this proxy. */
  readonly trusted: boolean;
}

export interface ProxyPool {
  /** The name of the pool in events. */
  readonly name: string;
  /** ISO 3166 alpha-2, upper case. */
  readonly country: string;
  readonly state?: string | undefined;
  readonly city?: string | undefined;
  /** The proxies of the pool. One is chosen for each session, and the choice does not change. */
  readonly proxies: readonly [StoredProxy, ...StoredProxy[]];
  /** The time zone of sessions whose connections all go through this pool, unless they set their own. */
  readonly timeZone?: string | undefined;
}

export interface Place {
  readonly country: string;
  readonly state?: string | undefined;
  readonly city?: string | undefined;
}

/** The country that `proxies: true` selects if there is a pool for it. Otherwise the first pool is used. */
const COUNTRY_DEFAULT = 'US';

/** Returns the first pool that matches every requested part of the location, or undefined. */
export function poolFor(pools: readonly ProxyPool[], place: Place | undefined): ProxyPool | undefined {
  if (!place) return pools.find(pool => pool.country === COUNTRY_DEFAULT) ?? pools[0];
  return pools.find(
    pool =>
      pool.country === place.country.toUpperCase() &&
      (place.state === undefined || isSamePlaceName(pool.state, place.state)) &&
      (place.city === undefined || isSamePlaceName(pool.city, place.city)),
  );
}

/** Compares names, ignoring case and separators, because official clients write NEW_YORK for New York. */
const isSamePlaceName = (poolName: string | undefined, requestedName: string): boolean =>
  poolName !== undefined && normalizeName(poolName) === normalizeName(requestedName);

const normalizeName = (text: string): string => text.toLowerCase().replaceAll(/[_\s-]+/g, ' ');

/** Chooses a proxy of the pool by the session id only, so that all rules of a session use the same proxy. */
export function proxyFor(pool: ProxyPool, session: SessionId): StoredProxy {
  const index = createHash('sha256').update(session).digest().readUInt32BE() % pool.proxies.length;
  return pool.proxies[index] ?? pool.proxies[0];
}
