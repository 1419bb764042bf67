// Authenticates requests. Caches credentials for 30 seconds, and drops a revoked one at once. Does not check permissions:
// scopes are checked in entry, roles in the domain.

import type { CredentialRow, KeyRow, TokenRow } from '../../engines/store/rows/credentials.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import type { Closeable } from '../../kit/scope.ts';
import { fault } from '../faults.ts';
import type { AccountCaller, AgentCaller, Caller, CallerKind } from './caller.ts';
import { allows } from './cidr.ts';
import { type Credential, recognise } from './credentials.ts';
import { parseNotice } from './notices.ts';

const CACHED_MS = 30_000;
const CACHED_MAX = 10_000;
const TOUCH_EVERY_MS = 60_000;

/** The credentials in a request's headers. */
export interface Presented {
  readonly authorization?: string | undefined;
  readonly apiKey?: string | undefined;
  readonly ip: string;
}

interface Known {
  readonly caller: Caller;
  readonly row: CredentialRow;
  readonly readAtMs: number;
  touchedAt: Date | undefined;
}

type CallerOf<Kind extends CallerKind> = Kind extends 'agentKey' ? AgentCaller : AccountCaller;

const EXPECTED = { agentKey: 'agent_key', account: 'personal_access_token' } as const;
const KIND_NAMES = { agentKey: 'an agent key (bak_…)', account: 'a personal access token (bpt_…)' } as const;

export class Callers implements Closeable {
  readonly #store: Pick<Store, 'keys' | 'tokens'>;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #known = new Map<string, Known>();
  #listening: Closeable | undefined;
  /** Incremented by each revocation: what was read from the database before one is not cached after it. */
  #revocations = 0;

  private constructor(store: Pick<Store, 'keys' | 'tokens'>, clock: Clock, log: Log) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
  }

  static async open(store: Pick<Store, 'keys' | 'tokens' | 'listen'>, clock: Clock, log: Log): Promise<Callers> {
    const callers = new Callers(store, clock, log);
    callers.#listening = await store.listen(
      'credential_revoked',
      notice => callers.forget(parseNotice(notice).hash),
      () => callers.forgetAll(),
    );
    return callers;
  }

  async close(): Promise<void> {
    await this.#listening?.close();
    this.#known.clear();
  }

  async authenticate<Kind extends CallerKind>(presented: Presented, expected: Kind): Promise<CallerOf<Kind>> {
    const credential = recognise(presentedText(presented, expected));
    if (credential && credential.kind !== expected) throw wrongKind(expected);
    const known = credential && (await this.#find(credential));
    if (!known || !isActive(known.row, this.#clock.now())) throw invalid(expected);
    if (!allows(known.row.cidrAllow, presented.ip)) throw refusedAddress();
    this.#touch(known, presented.ip);
    return known.caller as CallerOf<Kind>; // Its kind is the credential's, which was compared above.
  }

  /** Drops a credential from the cache, by the hex of its hash. */
  forget(hash: string): void {
    this.#revocations += 1;
    this.#known.delete(hash);
  }

  forgetAll(): void {
    this.#revocations += 1;
    this.#known.clear();
  }

  /** Only active credentials are cached, so that an expired one takes the same path, and time, as an unknown one. */
  async #find(credential: Credential): Promise<Known | undefined> {
    const name = credential.hash.toString('hex');
    const known = this.#known.get(name);
    if (known && this.#clock.monotonicMs() - known.readAtMs < CACHED_MS) return known;
    const before = this.#revocations;
    const read = await this.#read(credential);
    if (read && isActive(read.row, this.#clock.now()) && before === this.#revocations) this.#cache(name, read);
    return read;
  }

  async #read({ kind, hash }: Credential): Promise<Known | undefined> {
    const readAtMs = this.#clock.monotonicMs();
    if (kind === 'agentKey') {
      const row = await this.#store.keys.byHash(hash);
      return row && { caller: agentCaller(row), row, readAtMs, touchedAt: row.lastUsedAt };
    }
    const row = await this.#store.tokens.byHash(hash);
    return row && { caller: accountCaller(row), row, readAtMs, touchedAt: row.lastUsedAt };
  }

  #cache(name: string, known: Known): void {
    this.#known.delete(name);
    this.#known.set(name, known);
    const oldest = this.#known.keys().next().value;
    if (this.#known.size > CACHED_MAX && oldest !== undefined) this.#known.delete(oldest);
  }

  /** Records the time and address of the use, at most once a minute and without delaying the request. */
  #touch(known: Known, ip: string): void {
    const now = this.#clock.now();
    if (known.touchedAt && now.getTime() - known.touchedAt.getTime() < TOUCH_EVERY_MS) return;
    known.touchedAt = now;
    const { caller } = known;
    const written =
      caller.kind === 'agentKey'
        ? this.#store.keys.touch(caller.keyId, now, ip)
        : this.#store.tokens.touch(caller.tokenId, now, ip);
    written.catch(error => this.#log.warn('credential.touch', { error: reason(error) }));
  }
}

const isActive = ({ revokedAt, expiresAt }: CredentialRow, now: Date): boolean =>
  !revokedAt && (!expiresAt || expiresAt > now);

const agentCaller = (row: KeyRow): AgentCaller => ({
  kind: 'agentKey',
  applicationId: row.applicationId,
  keyId: row.id,
  scopes: new Set(row.scopes),
});

const accountCaller = (row: TokenRow): AccountCaller => ({
  kind: 'account',
  accountId: row.accountId,
  tokenId: row.id,
  scopes: new Set(row.scopes),
  ...(row.applicationIds ? { applicationIds: new Set(row.applicationIds) } : {}),
  cidrAllow: row.cidrAllow,
  ...(row.expiresAt ? { expiresAt: row.expiresAt } : {}),
});

/** The credential in the request. Two different ones are refused instead of choosing one. */
function presentedText({ authorization, apiKey }: Presented, expected: CallerKind): string {
  const [, bearer] = authorization === undefined ? [] : (/^bearer +(\S+) *$/i.exec(authorization) ?? ['', '']);
  const key = apiKey?.trim() === '' ? undefined : apiKey?.trim();
  if (bearer === undefined && key === undefined) throw missing(expected);
  if (bearer !== undefined && key !== undefined && bearer !== key) throw twoCredentials();
  return bearer ?? key ?? '';
}

const missing = (expected: CallerKind): Error =>
  fault('missing_credentials', 'The request has no credential.', {
    advice: `Send the header Authorization: Bearer with ${KIND_NAMES[expected]}.`,
    details: { expected: EXPECTED[expected] },
  });

const twoCredentials = (): Error =>
  fault('invalid_credentials', 'Authorization and X-BB-API-Key are different credentials.', {
    advice: 'Send only one of them.',
  });

const wrongKind = (expected: CallerKind): Error =>
  fault('invalid_credentials', `This operation requires ${KIND_NAMES[expected]}, not another kind of credential.`, {
    details: { expected: EXPECTED[expected] },
  });

/** The same answer for malformed, unknown, expired and revoked credentials, so that it reveals nothing. */
const invalid = (expected: CallerKind): Error =>
  fault('invalid_credentials', 'The credential is not valid.', {
    advice: `Send ${KIND_NAMES[expected]} that is neither expired nor revoked.`,
  });

const refusedAddress = (): Error =>
  fault('address_not_allowed', 'This credential may not be used from your address.', {
    advice: 'Call from an address in the cidrAllow of the credential, or change that list.',
  });
