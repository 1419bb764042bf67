// Resolves names: first with the static names of the operator, then as localhost, then with DNS. The caller checks the
// addresses. Uses c-ares instead of getaddrinfo. Node has only four threads for getaddrinfo, and one page with
// unresolvable names could block them for all sessions.
import { Resolver } from 'node:dns/promises';
import type { Clock } from '../../kit/clock.ts';
import { SingleFlight } from '../../kit/single-flight.ts';
import { withTimeout } from '../../kit/wait.ts';
import { FailedError } from './failure.ts';

/**
 * Returns the addresses of a name (lower case, punycode, no trailing dot). Rejects with FailedError if there are none.
 */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

export interface ResolverOptions {
  /** The operator's static names (BERTH_EGRESS_HOSTS). They take precedence over localhost and DNS. */
  readonly hosts: ReadonlyMap<string, string>;
  readonly clock: Clock;
  /** `address:port` of each name server. If absent, the name servers of the machine are used. */
  readonly servers?: readonly string[];
  /** Timeouts that replace the defaults. Only tests set them. */
  readonly timeouts?: Partial<ResolveTimeouts>;
}

export interface ResolveTimeouts {
  /** How long to wait for a response before the query is repeated. */
  readonly queryMs: number;
  /** How long to wait for the second address family when the first has been resolved (resolution delay of RFC 8305). */
  readonly otherFamilyMs: number;
}

const DEFAULT_TIMEOUTS: ResolveTimeouts = { queryMs: 2000, otherFamilyMs: 250 };
const QUERY_TRIES_MAX = 3;
const CACHED_NAMES_MAX = 512;
const CACHED_SECONDS_MAX = 60;
const LOOPBACK = '127.0.0.1';

interface ResolvedHost {
  readonly addresses: readonly string[];
  readonly ttlSeconds: number;
}

/**
 * Creates the resolver of one session. Sessions do not share a resolver, because names cached for one session would
 * affect the timing of another.
 */
export function createResolver({ hosts, clock, servers, timeouts }: ResolverOptions): Resolve {
  const { queryMs, otherFamilyMs } = { ...DEFAULT_TIMEOUTS, ...timeouts };
  const resolver = new Resolver({ timeout: queryMs, tries: QUERY_TRIES_MAX });
  if (servers) resolver.setServers([...servers]);
  const cache = new NameCache(clock);
  const queries = new SingleFlight<string, ResolvedHost>();
  return async hostname => {
    const staticAddress = hosts.get(hostname);
    if (staticAddress !== undefined) return [staticAddress];
    // RFC 6761: localhost is always loopback.
    if (hostname === 'localhost' || hostname.endsWith('.localhost')) return [LOOPBACK];
    const cachedAddresses = cache.get(hostname);
    if (cachedAddresses) return cachedAddresses;
    const resolvedHost = await queries.run(hostname, () => query(resolver, hostname, otherFamilyMs));
    cache.set(hostname, resolvedHost);
    return resolvedHost.addresses;
  };
}

async function query(resolver: Resolver, hostname: string, otherFamilyMs: number): Promise<ResolvedHost> {
  const ipv4Query = resolver.resolve4(hostname, { ttl: true });
  const ipv6Query = resolver.resolve6(hostname, { ttl: true });
  const answers = await waitForBoth(ipv4Query, ipv6Query, otherFamilyMs);
  const records = answers.flatMap(answer => (answer.status === 'fulfilled' ? answer.value : []));
  if (records.length === 0) throw failureOf(answers);
  return {
    addresses: records.map(record => record.address),
    ttlSeconds: Math.min(CACHED_SECONDS_MAX, ...records.map(record => record.ttl)),
  };
}

/**
 * Waits for both results. If one succeeds and the other then takes too long, returns only the result that succeeded.
 */
async function waitForBoth<T>(
  firstFamily: Promise<T>,
  secondFamily: Promise<T>,
  otherFamilyMs: number,
): Promise<PromiseSettledResult<T>[]> {
  const bothResults = Promise.allSettled([firstFamily, secondFamily]);
  const firstResult = await Promise.any([firstFamily, secondFamily]).then(
    value => ({ status: 'fulfilled', value }) as const,
    () => undefined,
  );
  if (!firstResult) return bothResults;
  return withTimeout(otherFamilyMs, 'the DNS response for the other address family', () => bothResults).catch(() => [
    firstResult,
  ]);
}

const TIMEOUT_CODES = ['ETIMEOUT', 'EAI_AGAIN', 'ETIMEDOUT'];

function failureOf(answers: readonly PromiseSettledResult<unknown>[]): FailedError {
  const reasons = answers.flatMap(answer => (answer.status === 'rejected' ? [answer.reason] : []));
  const isTimeout = reasons.some(reason => TIMEOUT_CODES.includes(String(reason?.code)));
  return new FailedError(isTimeout ? 'name_timed_out' : 'name_not_resolved', reasons[0]);
}

/** Caches the addresses of names for their time to live. When the cache is full, the oldest entry is removed. */
class NameCache {
  readonly #entries = new Map<string, { addresses: readonly string[]; untilMs: number }>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get(hostname: string): readonly string[] | undefined {
    const entry = this.#entries.get(hostname);
    if (entry && entry.untilMs > this.#clock.monotonicMs()) return entry.addresses;
    this.#entries.delete(hostname);
    return undefined;
  }

  set(hostname: string, result: ResolvedHost): void {
    if (result.ttlSeconds <= 0) return;
    const oldest = this.#entries.keys().next();
    if (this.#entries.size >= CACHED_NAMES_MAX && !oldest.done) this.#entries.delete(oldest.value);
    this.#entries.set(hostname, {
      addresses: result.addresses,
      untilMs: this.#clock.monotonicMs() + result.ttlSeconds * 1000,
    });
  }
}
