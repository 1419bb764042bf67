// Names to addresses: the operator's static names, localhost, then DNS. Every answer is returned, none is judged here.
// Asks name servers itself instead of getaddrinfo, whose four threads one page with dead names could block for all.
import { Resolver } from 'node:dns/promises';
import type { Clock } from '../../kit/clock.ts';
import { SingleFlight } from '../../kit/single-flight.ts';
import { within } from '../../kit/wait.ts';
import { Failed } from './failure.ts';

/** Addresses of a name (lower case, punycode, no trailing dot). Rejects with Failed when there are none. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

export interface ResolverOptions {
  /** Static names of the operator; they win. */
  readonly hosts: ReadonlyMap<string, string>;
  readonly clock: Clock;
  /** `address:port` of name servers; absent: those of the machine. */
  readonly servers?: readonly string[];
  /** Tests lengthen them; nobody else changes them. */
  readonly waits?: Partial<ResolveWaits>;
}

export interface ResolveWaits {
  /** For an answer, before the question is asked again. */
  readonly queryMs: number;
  /** Once one family has answered, how long the other is waited for (RFC 8305 calls it resolution delay). */
  readonly otherFamilyMs: number;
}

const WAITS: ResolveWaits = { queryMs: 2000, otherFamilyMs: 250 };
const QUERY_TRIES = 3;
const KEPT_NAMES_MAX = 512;
const KEPT_SECONDS_MAX = 60;
const LOOPBACK = '127.0.0.1';

interface Found {
  readonly addresses: readonly string[];
  readonly ttlSeconds: number;
}

/** One per session: what is remembered of one session's names must not show in the timing of another's. */
export function createResolver({ hosts, clock, servers, waits }: ResolverOptions): Resolve {
  const { queryMs, otherFamilyMs } = { ...WAITS, ...waits };
  const resolver = new Resolver({ timeout: queryMs, tries: QUERY_TRIES });
  if (servers) resolver.setServers([...servers]);
  const kept = new KeptNames(clock);
  const asking = new SingleFlight<string, Found>();
  return async hostname => {
    const fixed = hosts.get(hostname);
    if (fixed !== undefined) return [fixed];
    // RFC 6761: localhost is loopback, whatever a name server says.
    if (hostname === 'localhost' || hostname.endsWith('.localhost')) return [LOOPBACK];
    const remembered = kept.get(hostname);
    if (remembered) return remembered;
    const found = await asking.run(hostname, () => ask(resolver, hostname, otherFamilyMs));
    kept.set(hostname, found);
    return found.addresses;
  };
}

async function ask(resolver: Resolver, hostname: string, otherFamilyMs: number): Promise<Found> {
  const four = resolver.resolve4(hostname, { ttl: true });
  const six = resolver.resolve6(hostname, { ttl: true });
  const answers = await bothOrSoon(four, six, otherFamilyMs);
  const records = answers.flatMap(answer => (answer.status === 'fulfilled' ? answer.value : []));
  if (records.length === 0) throw failure(answers);
  return {
    addresses: records.map(record => record.address),
    ttlSeconds: Math.min(KEPT_SECONDS_MAX, ...records.map(record => record.ttl)),
  };
}

/** Both outcomes, or the first success alone when the other side keeps us waiting. */
async function bothOrSoon<T>(
  one: Promise<T>,
  other: Promise<T>,
  otherFamilyMs: number,
): Promise<PromiseSettledResult<T>[]> {
  const both = Promise.allSettled([one, other]);
  const first = await Promise.any([one, other]).then(
    value => ({ status: 'fulfilled', value }) as const,
    () => undefined,
  );
  if (!first) return both;
  return within(otherFamilyMs, 'the other address family', () => both).catch(() => [first]);
}

const TIMED_OUT = ['ETIMEOUT', 'EAI_AGAIN', 'ETIMEDOUT'];

function failure(answers: readonly PromiseSettledResult<unknown>[]): Failed {
  const reasons = answers.flatMap(answer => (answer.status === 'rejected' ? [answer.reason] : []));
  const late = reasons.some(reason => TIMED_OUT.includes(String(reason?.code)));
  return new Failed(late ? 'name_timed_out' : 'name_not_resolved', reasons[0]);
}

/** Answers within their time to live. Bounded: the oldest goes. */
class KeptNames {
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

  set(hostname: string, found: Found): void {
    if (found.ttlSeconds <= 0) return;
    const oldest = this.#entries.keys().next();
    if (this.#entries.size >= KEPT_NAMES_MAX && !oldest.done) this.#entries.delete(oldest.value);
    this.#entries.set(hostname, {
      addresses: found.addresses,
      untilMs: this.#clock.monotonicMs() + found.ttlSeconds * 1000,
    });
  }
}
