// Authenticates requests. Caches credentials for 30 seconds, and drops a revoked credential at once. Does not check
// permissions: scopes are checked in entry, roles in the domain.

import { TOKEN_SCOPES } from '../../../contract/tokens.ts';
import type { ConsumerSessionRow } from '../../engines/store/rows/consumers.ts';
import type { TokenRow } from '../../engines/store/rows/credentials.ts';
import type { Acr, HumanSessionRow } from '../../engines/store/rows/human-sessions.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { AccountId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';
import type { Closeable } from '../../kit/scope.ts';
import {
  type AccountCaller,
  type AgentCaller,
  agentCallerOf,
  type ConsumerCaller,
  type HumanCaller,
  type RequestSource,
  type TokenProof,
} from './caller.ts';
import { rangesAllow } from './cidr.ts';
import { parseCredentialChange } from './credential-change.ts';
import {
  type AcceptedCredential,
  addressNotAllowed,
  credentialInvalid,
  credentialMissing,
  twoCredentials,
  wrongCredentialKind,
} from './credential-faults.ts';
import { type Credential, type CredentialKind, recognize } from './credentials.ts';

const CACHE_MAX_AGE_MS = 30_000;
const CACHE_SIZE_MAX = 10_000;
const USE_RECORD_INTERVAL_MS = 60_000;
/** A human session ends if it has not been used for this long. */
export const SESSION_IDLE_TIMEOUT_MS = 12 * 3600 * 1000;
const USER_AGENT_CHARACTERS_MAX = 256;

/** The credentials in a request's headers. */
export interface PresentedCredentials {
  readonly authorization?: string | undefined;
  readonly apiKey?: string | undefined;
  /** The sign-in cookie of a person or a consumer. Ignored if one of the headers has a credential. */
  readonly cookie?: string | undefined;
  /** Remote end of the connection: the caller, or a proxy in front of the service. */
  readonly peer?: { readonly address: string; readonly port: number | undefined };
  readonly ip: string;
  readonly userAgent?: string | undefined;
  readonly requestId?: string | undefined;
}

/** A caller without the source of its request, which differs for each request. */
type WithoutSource<Caller> = Omit<Caller, 'source'>;
type CachedCaller = WithoutSource<AgentCaller> | WithoutSource<AccountCaller> | WithoutSource<ConsumerCaller>;

interface KnownCredential {
  readonly caller: CachedCaller;
  readonly row: {
    readonly cidrAllow: readonly string[];
    readonly expiresAt?: Date;
    readonly revokedAt?: Date;
  };
  readonly readAtMs: number;
  touchedAt: Date | undefined;
}

interface CallersByCredential {
  agentKey: AgentCaller;
  account: AccountCaller;
  human: HumanCaller;
  consumer: ConsumerCaller;
  agentKeyOrAccount: AgentCaller | AccountCaller;
}

const ACCEPTED_KINDS: Readonly<Record<AcceptedCredential, readonly CredentialKind[]>> = {
  agentKey: ['agent_key'],
  account: ['personal_token', 'developer_token', 'human_session'],
  human: ['human_session'],
  consumer: ['consumer_session'],
  agentKeyOrAccount: ['agent_key', 'personal_token', 'developer_token', 'human_session'],
};

/** Records notable uses of credentials. */
export interface UsageRecorder {
  /** Records that an agent key was sent from an address that is not allowed for the key. */
  recordRefusedAddress(caller: WithoutSource<AgentCaller>, source: RequestSource): void;
  recordFirstUse(account: AccountId, token: TokenProof, source: RequestSource): void;
}

type CredentialStore = Pick<Store, 'keys' | 'tokens' | 'humanSessions' | 'consumerSessions'>;

export class Callers implements Closeable {
  readonly #store: CredentialStore;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #usageRecorder: UsageRecorder;
  readonly #cachedCredentials = new Map<string, KnownCredential>();
  #subscription: Closeable | undefined;
  /** Incremented by each revocation. A row that was read before a revocation is not put into the cache after it. */
  #revocationCount = 0;

  private constructor(store: CredentialStore, clock: Clock, log: Log, usageRecorder: UsageRecorder) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#usageRecorder = usageRecorder;
  }

  static async open(
    store: CredentialStore & Pick<Store, 'listen'>,
    clock: Clock,
    log: Log,
    usageRecorder: UsageRecorder,
  ): Promise<Callers> {
    const callers = new Callers(store, clock, log, usageRecorder);
    callers.#subscription = await store.listen(
      'credential_revoked',
      payload => callers.forget(parseCredentialChange(payload).hash),
      () => callers.forgetAll(),
    );
    return callers;
  }

  async close(): Promise<void> {
    await this.#subscription?.close();
    this.#cachedCredentials.clear();
  }

  async authenticate<Kind extends AcceptedCredential>(
    presentedCredentials: PresentedCredentials,
    expected: Kind,
  ): Promise<CallersByCredential[Kind]> {
    const credential = credentialIn(presentedCredentials, expected);
    if (credential && !ACCEPTED_KINDS[expected].includes(credential.kind)) throw wrongCredentialKind(expected);
    const knownCredential = credential && (await this.#find(credential));
    if (!knownCredential || !isActive(knownCredential.row, this.#clock.now())) throw credentialInvalid(expected);
    if (!rangesAllow(knownCredential.row.cidrAllow, presentedCredentials.ip)) {
      if (knownCredential.caller.kind === 'agentKey')
        this.#usageRecorder.recordRefusedAddress(knownCredential.caller, sourceOf(presentedCredentials));
      throw addressNotAllowed();
    }
    this.#touch(knownCredential, sourceOf(presentedCredentials));
    const caller = { ...knownCredential.caller, source: sourceOf(presentedCredentials) };
    return caller as CallersByCredential[Kind]; // The kind of the credential was checked above.
  }

  /** Drops a credential from the cache. `hash` is in hex. */
  forget(hash: string): void {
    this.#revocationCount += 1;
    this.#cachedCredentials.delete(hash);
  }

  forgetAll(): void {
    this.#revocationCount += 1;
    this.#cachedCredentials.clear();
  }

  /**
   * Finds a credential. Only active credentials are cached, so that an expired credential takes the same path, and the
   * same time, as an unknown credential. A cached credential that has expired is read again, because a use may have
   * extended its expiry time.
   */
  async #find(credential: Credential): Promise<KnownCredential | undefined> {
    const hexHash = credential.hash.toString('hex');
    const cachedCredential = this.#cachedCredentials.get(hexHash);
    const isFresh = cachedCredential && this.#clock.monotonicMs() - cachedCredential.readAtMs < CACHE_MAX_AGE_MS;
    if (isFresh && isActive(cachedCredential.row, this.#clock.now())) return cachedCredential;
    const previousRevocationCount = this.#revocationCount;
    const readCredential = await this.#read(credential);
    if (
      readCredential &&
      isActive(readCredential.row, this.#clock.now()) &&
      previousRevocationCount === this.#revocationCount
    )
      this.#cache(hexHash, readCredential);
    return readCredential;
  }

  async #read({ kind, hash }: Credential): Promise<KnownCredential | undefined> {
    const readAtMs = this.#clock.monotonicMs();
    if (kind === 'agent_key') {
      const row = await this.#store.keys.byHash(hash);
      return row && { caller: agentCallerOf(row), row, readAtMs, touchedAt: row.lastUsedAt };
    }
    if (kind === 'human_session') {
      const row = await this.#store.humanSessions.byHash(hash);
      return row && { caller: humanCaller(row), row: humanSessionBounds(row), readAtMs, touchedAt: row.lastUsedAt };
    }
    if (kind === 'consumer_session') {
      const row = await this.#store.consumerSessions.byHash(hash);
      return row && { caller: consumerCaller(row), row: consumerBounds(row), readAtMs, touchedAt: row.lastUsedAt };
    }
    const row = await this.#store.tokens.byHash(hash);
    return row && { caller: tokenCaller(row), row, readAtMs, touchedAt: row.lastUsedAt };
  }

  #cache(hexHash: string, knownCredential: KnownCredential): void {
    this.#cachedCredentials.delete(hexHash);
    this.#cachedCredentials.set(hexHash, knownCredential);
    const oldestHash = this.#cachedCredentials.keys().next().value;
    if (this.#cachedCredentials.size > CACHE_SIZE_MAX && oldestHash !== undefined)
      this.#cachedCredentials.delete(oldestHash);
  }

  /** Records the time and address of the use, at most once a minute and without delaying the request. */
  #touch(knownCredential: KnownCredential, source: RequestSource): void {
    const now = this.#clock.now();
    if (knownCredential.touchedAt && now.getTime() - knownCredential.touchedAt.getTime() < USE_RECORD_INTERVAL_MS)
      return;
    knownCredential.touchedAt = now;
    this.#writeUse(knownCredential.caller, now, source).catch(error =>
      this.#log.warn('credential.touch', { error: reason(error) }),
    );
  }

  async #writeUse(caller: CachedCaller, now: Date, source: RequestSource): Promise<void> {
    const { ip } = source;
    if (caller.kind === 'agentKey') return this.#store.keys.touch(caller.keyId, now, ip);
    if (caller.kind === 'consumer') return this.#store.consumerSessions.touch(caller.via.id, now, ip);
    if (caller.via.kind === 'human_session')
      return this.#store.humanSessions.touch(caller.via.id, now, ip, addMs(now, SESSION_IDLE_TIMEOUT_MS));
    const isFirst = await this.#store.tokens.touch(caller.via.id, now, ip);
    if (isFirst) this.#usageRecorder.recordFirstUse(caller.accountId, caller.via, source);
  }
}

const isActive = ({ revokedAt, expiresAt }: KnownCredential['row'], now: Date): boolean =>
  !revokedAt && (!expiresAt || expiresAt > now);

export const sourceOf = ({ ip, userAgent, requestId }: PresentedCredentials): RequestSource => ({
  ip,
  ...(userAgent === undefined ? {} : { userAgent: userAgent.slice(0, USER_AGENT_CHARACTERS_MAX) }),
  ...(requestId === undefined ? {} : { requestId }),
});

const tokenCaller = (row: TokenRow): WithoutSource<AccountCaller> => ({
  kind: 'account',
  accountId: row.accountId,
  via: { kind: row.kind === 'developer' ? 'developer_token' : 'personal_token', id: row.id },
  scopes: new Set(row.scopes),
  ...(row.applicationIds ? { applicationIds: new Set(row.applicationIds) } : {}),
  cidrAllow: row.cidrAllow,
  ...(row.expiresAt ? { expiresAt: row.expiresAt } : {}),
});

const ALL_SCOPES: ReadonlySet<string> = new Set(TOKEN_SCOPES);

const humanCaller = (row: HumanSessionRow & { readonly strongestAcr: Acr }): WithoutSource<AccountCaller> => ({
  kind: 'account',
  accountId: row.accountId,
  via: {
    kind: 'human_session',
    id: row.id,
    authTime: row.authTime,
    acr: row.acr,
    strongestAcr: row.strongestAcr,
  },
  scopes: ALL_SCOPES,
  cidrAllow: [],
});

const NO_SCOPES: ReadonlySet<string> = new Set();

const consumerCaller = (row: ConsumerSessionRow & { readonly strongestAcr: Acr }): WithoutSource<ConsumerCaller> => ({
  kind: 'consumer',
  applicationId: row.applicationId,
  providerId: row.providerId,
  consumerId: row.consumerId,
  via: {
    kind: 'consumer_session',
    id: row.id,
    authTime: row.authTime,
    acr: row.acr,
    strongestAcr: row.strongestAcr,
    expiresAt: row.expiresAt,
  },
  scopes: NO_SCOPES,
});

const consumerBounds = ({ expiresAt, revokedAt }: ConsumerSessionRow): KnownCredential['row'] => ({
  cidrAllow: [],
  expiresAt,
  ...(revokedAt ? { revokedAt } : {}),
});

const humanSessionBounds = ({ expiresAt, idleExpiresAt, revokedAt }: HumanSessionRow): KnownCredential['row'] => ({
  cidrAllow: [],
  expiresAt: idleExpiresAt < expiresAt ? idleExpiresAt : expiresAt,
  ...(revokedAt ? { revokedAt } : {}),
});

/**
 * Returns the credential in the request. If there are two different credentials, the request is refused. A cookie is
 * not a bearer credential.
 */
function credentialIn(
  presentedCredentials: PresentedCredentials,
  expected: AcceptedCredential,
): Credential | undefined {
  const bearerText = bearerIn(presentedCredentials);
  if (bearerText !== undefined) {
    const credential = recognize(bearerText);
    if (credential?.kind === 'human_session') throw wrongCredentialKind(expected);
    return credential;
  }
  if (presentedCredentials.cookie === undefined) throw credentialMissing(expected);
  const credential = recognize(presentedCredentials.cookie);
  return credential?.kind === (expected === 'consumer' ? 'consumer_session' : 'human_session') ? credential : undefined;
}

function bearerIn({ authorization, apiKey }: PresentedCredentials): string | undefined {
  const [, bearer] = authorization === undefined ? [] : (/^bearer +(\S+) *$/i.exec(authorization) ?? ['', '']);
  const key = apiKey?.trim() === '' ? undefined : apiKey?.trim();
  if (bearer !== undefined && key !== undefined && bearer !== key) throw twoCredentials();
  return bearer ?? key;
}
