// The sign-in of a consumer, from its start until the browser returns to the application with a code.
import { createHash } from 'node:crypto';
import {
  CONSUMER_CODE_LIFETIME_SECONDS,
  CONSUMER_SIGN_IN_LIFETIME_SECONDS,
  HOSTED_PROVIDER,
  type HostedSignIn,
  type HostedSignInResult,
  type StartConsumerSession,
  type StartedConsumerSession,
} from '../../../contract/consumers.ts';
import type { Acr } from '../../../contract/sign-in.ts';
import type { ApplicationRow } from '../../engines/store/rows/accounts.ts';
import type { ConsumerRow, ConsumerSignInRow, IdentityRow } from '../../engines/store/rows/consumers.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { type ConsumerSignInId, isUuid, newId } from '../../kit/ids.ts';
import type { Audit } from '../audit/audit.ts';
import { invalidRequest, notFound } from '../faults.ts';
import type { RequestSource } from '../identity/caller.ts';
import { mint } from '../identity/credentials.ts';
import type { SharedTallies, SharedTally } from '../limits/shared-tally.ts';
import { providerDisabled } from './faults.ts';
import { type Identities, methodsOf } from './identities.ts';
import { isRegistered } from './registered.ts';

const MINUTE_MS = 60_000;
const ADDRESS_START_LIMIT = {
  name: 'consumers.starts',
  what: 'started sign-ins',
  max: 30,
  withinMs: MINUTE_MS,
  scope: 'address',
} as const;
/** Paths of the pages of Berth on which consumers are signed in with a cookie. */
const CONSUMER_PAGE_PATH_PATTERN =
  /^\/consumer\/[0-9a-f-]{36}(?:\/(?:receipts|memory|account|(?:approve|consent|handoffs)\/[0-9a-f-]{36}))?$/;

export interface SignInsParts {
  readonly store: Pick<Store, 'consumers' | 'consumerSignIns' | 'atomically'>;
  readonly identities: Identities;
  readonly audit: Pick<Audit, 'record'>;
  readonly clock: Clock;
  readonly tallies: Pick<SharedTallies, 'of'>;
}

/** An open sign-in, and its application. */
export interface OpenSignIn {
  readonly row: ConsumerSignInRow;
  readonly application: ApplicationRow;
  readonly identity: IdentityRow;
}

export interface ProvenIdentity {
  readonly acr: Acr;
  readonly authTime: Date;
  readonly idTokenSealed?: Buffer;
}

/** Returns the address at which the consumer signs in with a provider other than `hosted`. */
export type UpstreamStart = (
  application: ApplicationRow,
  row: ConsumerSignInRow,
  startRequest: StartConsumerSession,
) => Promise<{ readonly authorizationUrl: string; readonly upstreamState: Buffer }>;

export class SignIns {
  readonly #parts: SignInsParts;
  readonly #startTally: SharedTally;

  constructor(parts: SignInsParts) {
    this.#parts = parts;
    this.#startTally = parts.tallies.of(ADDRESS_START_LIMIT);
  }

  /**
   * `origin` is the origin of the Berth page that sent the request. If no Berth page sent it, `origin` is the public
   * origin of the server.
   */
  async start(
    appId: string,
    providerId: string,
    startRequest: StartConsumerSession,
    origin: URL,
    source: RequestSource,
    upstream: UpstreamStart,
  ): Promise<StartedConsumerSession> {
    await this.#startTally.take(source.ip);
    const { identities, store, clock } = this.#parts;
    const application = await identities.requireApplication(appId);
    const identity = await identities.of(application.id);
    const isHosted = providerId === HOSTED_PROVIDER;
    if (isHosted && identity.hostedMethods.length === 0) throw providerDisabled(providerId, '/identity');
    const transport = startRequest.transport ?? 'token';
    if (!isAllowed(startRequest.redirectUri, transport, identity, origin)) throw notRegistered();
    const now = clock.now();
    const id = newId<ConsumerSignInId>(now);
    const row: ConsumerSignInRow = {
      ...{ id, applicationId: application.id, providerId, redirectUri: startRequest.redirectUri },
      ...{ codeChallenge: startRequest.codeChallenge, transport },
      ...(startRequest.state === undefined ? {} : { state: startRequest.state }),
      ...(startRequest.loginHint === undefined ? {} : { loginHint: startRequest.loginHint }),
      ...(startRequest.maxAge === undefined ? {} : { maxAge: startRequest.maxAge }),
      ...{ createdAt: now, expiresAt: addMs(now, CONSUMER_SIGN_IN_LIFETIME_SECONDS * 1000) },
    };
    const expiresAt = row.expiresAt.toISOString();
    if (isHosted) {
      await store.consumerSignIns.insert(row);
      const authorizationUrl = `${origin.origin}/consumer/signin/${application.id}/${id}`;
      return { authorizationUrl, expiresAt };
    }
    const { authorizationUrl, upstreamState } = await upstream(application, row, startRequest);
    await store.consumerSignIns.insert({ ...row, upstreamState });
    return { authorizationUrl, expiresAt };
  }

  /**
   * Returns the open sign-in of the page.
   * @throws Fault `not_found` for a sign-in that is complete or has expired.
   */
  async open(appId: string, providerId: string, signIn: string): Promise<OpenSignIn> {
    const { identities, store, clock } = this.#parts;
    const application = await identities.requireApplication(appId);
    const id = signIn.toLowerCase() as ConsumerSignInId; // Checked by isUuid.
    const row = isUuid(id)
      ? await store.consumerSignIns.findOpen(application.id, providerId, id, clock.now())
      : undefined;
    if (!row) throw notFound('Sign-in', signIn);
    return { row, application, identity: await identities.of(application.id) };
  }

  async describe(appId: string, providerId: string, signIn: string): Promise<HostedSignIn> {
    const { row, application, identity } = await this.open(appId, providerId, signIn);
    const { colour } = identity;
    return {
      application: { name: application.name, ...(colour === undefined ? {} : { colour }) },
      methods: [...methodsOf(identity)],
      registration: identity.hostedRegistration,
      ...(row.loginHint === undefined ? {} : { loginHint: row.loginHint }),
      returnsTo: new URL(row.redirectUri).origin,
      expiresAt: row.expiresAt.toISOString(),
    };
  }

  /** Completes the sign-in. Returns the redirect URI with the code. */
  async complete(
    { row, application }: Omit<OpenSignIn, 'identity'>,
    { id, linkedTo }: ConsumerRow,
    { acr, authTime, idTokenSealed }: ProvenIdentity,
    source: RequestSource,
  ): Promise<HostedSignInResult> {
    const { store, clock, audit, identities } = this.#parts;
    const now = clock.now();
    const consumerId = linkedTo ?? id;
    const { hash, text } = mint('consumer_code');
    const codeExpiresAt = addMs(now, CONSUMER_CODE_LIFETIME_SECONDS * 1000);
    await store.atomically(async trx => {
      const proof = { consumerId, acr, authTime, codeHash: hash, codeExpiresAt };
      const completion = { ...proof, ...(idTokenSealed ? { idTokenSealed } : {}) };
      if (!(await trx.consumerSignIns.complete(row.id, now, completion))) throw notFound('Sign-in', row.id);
      await trx.consumers.change(application.id, consumerId, { lastSignedInAt: now });
      const actor = { kind: 'consumer', id: consumerId } as const;
      const details = { provider: row.providerId, acr };
      const entry = { action: 'consumer.session.started', applicationId: application.id, outcome: 'success' } as const;
      await audit.record({ ...entry, actor, details, ...source }, trx);
    });
    const { state } = row;
    const query = {
      code: text.reveal(),
      ...(state === undefined ? {} : { state }),
      iss: identities.issuerOf(application),
    };
    return { redirectTo: withQuery(row.redirectUri, query) };
  }

  /** Returns the redirect URI with an OAuth error, for a sign-in that failed at a provider. */
  failureRedirect({ row, application }: Omit<OpenSignIn, 'identity'>, error: 'access_denied' | 'server_error'): string {
    const { state } = row;
    const iss = this.#parts.identities.issuerOf(application);
    return withQuery(row.redirectUri, { error, ...(state === undefined ? {} : { state }), iss });
  }
}

/**
 * Whether the address is allowed. Tokens are sent only to addresses that the application has registered. Cookies are
 * set only on pages of Berth.
 */
function isAllowed(uri: string, transport: 'token' | 'cookie', { redirectUris }: IdentityRow, origin: URL): boolean {
  if (transport === 'token') return isRegistered(uri, redirectUris);
  return uri.startsWith(`${origin.origin}/`) && CONSUMER_PAGE_PATH_PATTERN.test(uri.slice(origin.origin.length));
}

const withQuery = (address: string, query: Readonly<Record<string, string>>): string =>
  `${address}${address.includes('?') ? '&' : '?'}${new URLSearchParams(query)}`;

export const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url');

const notRegistered = (): Error =>
  invalidRequest([{ path: 'redirectUri', message: 'is not an address that the application has registered' }]);
