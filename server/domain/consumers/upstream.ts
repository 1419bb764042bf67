// Sign-in with an OpenID provider that the application has configured. Uses the authorization code flow with PKCE,
// state and nonce. State, nonce and verifier are derived from the id of the sign-in, so none of them is stored.
import { createHash, createHmac } from 'node:crypto';
import type { StartConsumerSession } from '../../../contract/consumers.ts';
import type { metadataIn } from '../../engines/openid/discovery.ts';
import type { Client, IdentifiedSubject, RelyingParty } from '../../engines/openid/relying-party.ts';
import type { ApplicationRow } from '../../engines/store/rows/accounts.ts';
import type { ConsumerProviderRow } from '../../engines/store/rows/consumer-providers.ts';
import type { ConsumerSessionRow, ConsumerSignInRow } from '../../engines/store/rows/consumers.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { boundedText } from '../../kit/foreign.ts';
import { type ApplicationId, type ConsumerId, newId } from '../../kit/ids.ts';
import type { Secret } from '../../kit/secret.ts';
import type { Audit } from '../audit/audit.ts';
import type { RequestSource } from '../identity/caller.ts';
import { signInFailed } from '../people/faults.ts';
import { providerDisabled } from './faults.ts';
import type { Identities } from './identities.ts';
import type { SecretSeal } from './providers.ts';
import { challengeOf, type SignIns } from './sign-ins.ts';

const STATE_CHARACTERS_MAX = 128;
const CODE_CHARACTERS_MAX = 4096;
const NAME_CHARACTERS_MAX = 64;
const SUBJECT_CHARACTERS = 32;

export interface UpstreamParts {
  readonly store: Pick<Store, 'consumers' | 'consumerSignIns'>;
  readonly identities: Identities;
  readonly signIns: SignIns;
  readonly audit: Pick<Audit, 'record'>;
  readonly clock: Clock;
  readonly secret: Secret;
  readonly seal: SecretSeal;
  readonly tokenSeal: TokenSeal;
  readonly relyingParty: Pick<RelyingParty, 'identify'>;
  readonly metadataIn: typeof metadataIn;
  readonly callbackUrl: string;
}

/** Seals ID tokens, which the provider requires when a consumer signs out there. */
export interface TokenSeal {
  close(application: ApplicationId, consumer: ConsumerId, token: string): Promise<Buffer>;
  open(application: ApplicationId, consumer: ConsumerId, sealed: Buffer): Promise<string>;
}

/** The query parameters of the provider's redirect back to this service. */
export interface CallbackQuery {
  readonly state?: unknown;
  readonly code?: unknown;
  readonly iss?: unknown;
  readonly error?: unknown;
}

export class Upstream {
  readonly #parts: UpstreamParts;

  constructor(parts: UpstreamParts) {
    this.#parts = parts;
  }

  readonly start = async (
    application: ApplicationRow,
    { id, providerId }: ConsumerSignInRow,
    { prompt, maxAge, loginHint }: StartConsumerSession,
  ): Promise<{ readonly authorizationUrl: string; readonly upstreamState: Buffer }> => {
    const { identities, metadataIn, callbackUrl } = this.#parts;
    const provider = await identities.findProvider(application.id, providerId);
    if (!provider?.enabled) throw providerDisabled(providerId);
    const state = this.#deriveValue('state', id);
    const url = new URL(metadataIn(provider.metadata).authorizationEndpoint);
    const query = {
      ...{ response_type: 'code', client_id: provider.clientId, redirect_uri: callbackUrl, state },
      ...{ scope: ['openid', ...provider.scopes].join(' '), nonce: this.#deriveValue('nonce', id) },
      ...{ code_challenge: challengeOf(this.#deriveValue('verifier', id)), code_challenge_method: 'S256' },
      ...(prompt === undefined ? {} : { prompt }),
      ...(maxAge === undefined ? {} : { max_age: String(maxAge) }),
      ...(loginHint === undefined ? {} : { login_hint: loginHint }),
    };
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return { authorizationUrl: url.href, upstreamState: hashOf(state) };
  };

  /** Returns the address to redirect the browser to. It is an address of the application, with a code or an error. */
  async finish({ state, code, iss, error }: CallbackQuery, source: RequestSource): Promise<string> {
    const { store, identities, signIns, clock, metadataIn } = this.#parts;
    const isStateValid = typeof state === 'string' && state.length <= STATE_CHARACTERS_MAX;
    const row = isStateValid ? await store.consumerSignIns.takeByState(hashOf(state), clock.now()) : undefined;
    if (!row) throw signInFailed('sign-in');
    const application = await identities.requireApplication(row.applicationId);
    const openSignIn = { row, application };
    const provider = await identities.findProvider(application.id, row.providerId);
    if (!provider?.enabled) return signIns.failureRedirect(openSignIn, 'server_error');
    if (error !== undefined) return signIns.failureRedirect(openSignIn, 'access_denied');
    const metadata = metadataIn(provider.metadata);
    // A mix-up (RFC 9207): the response comes from a provider other than the one that received the request.
    const isMixedUp = iss === undefined ? metadata.answersWithIssuer : iss !== provider.issuer;
    if (isMixedUp) return this.#refuse(openSignIn, 'iss', source);
    if (typeof code !== 'string' || code.length > CODE_CHARACTERS_MAX) return this.#refuse(openSignIn, 'code', source);
    const outcome = await this.#parts.relyingParty.identify(metadata, await this.#openClient(provider), {
      ...{ code, redirectUri: this.#parts.callbackUrl, nonce: this.#deriveValue('nonce', row.id) },
      verifier: this.#deriveValue('verifier', row.id),
      ...(row.maxAge === undefined ? {} : { maxAge: row.maxAge }),
    });
    if ('words' in outcome) return this.#refuse(openSignIn, outcome.words, source);
    return this.#complete(openSignIn, provider, outcome.value, source);
  }

  /** Returns the address at which the browser is signed out at the provider. */
  async logoutUrl(session: ConsumerSessionRow | undefined): Promise<string | undefined> {
    if (!session?.idTokenSealed) return undefined;
    const { applicationId, providerId, consumerId, idTokenSealed } = session;
    const provider = await this.#parts.identities.findProvider(applicationId, providerId);
    const endpoint = provider && this.#parts.metadataIn(provider.metadata).endSessionEndpoint;
    if (!provider || endpoint === undefined) return undefined;
    const url = new URL(endpoint);
    url.searchParams.set('id_token_hint', await this.#parts.tokenSeal.open(applicationId, consumerId, idTokenSealed));
    url.searchParams.set('client_id', provider.clientId);
    return url.href;
  }

  async #complete(
    openSignIn: { readonly row: ConsumerSignInRow; readonly application: ApplicationRow },
    { issuer }: ConsumerProviderRow,
    { subject, name, authTime, idToken }: IdentifiedSubject,
    source: RequestSource,
  ): Promise<string> {
    const { store, clock, signIns, tokenSeal } = this.#parts;
    const { row, application } = openSignIn;
    const now = clock.now();
    const displayName =
      name === undefined ? '' : boundedText(name.replace(/\p{Cc}/gu, ' ').trim(), NAME_CHARACTERS_MAX);
    const foundConsumer = await store.consumers.insertOrFind({
      ...{ id: newId<ConsumerId>(now), applicationId: application.id, providerId: row.providerId, createdAt: now },
      subject: this.#pairwiseSubject(application.id, issuer, subject),
      ...(displayName === '' ? {} : { displayName }),
    });
    if (!foundConsumer) return this.#refuse(openSignIn, 'subject', source);
    const idTokenSealed = await tokenSeal.close(application.id, foundConsumer.row.id, idToken);
    const provenIdentity = { acr: 'berth:1', authTime, idTokenSealed } as const;
    return (await signIns.complete(openSignIn, foundConsumer.row, provenIdentity, source)).redirectTo;
  }

  async #refuse(
    openSignIn: { readonly row: ConsumerSignInRow; readonly application: ApplicationRow },
    why: string,
    source: RequestSource,
  ): Promise<string> {
    const { row, application } = openSignIn;
    await this.#parts.audit.record({
      ...{ action: 'consumer.session.refused', applicationId: application.id, outcome: 'refused' },
      ...{ actor: { kind: 'anonymous' }, details: { provider: row.providerId, why }, ...source },
    });
    return this.#parts.signIns.failureRedirect(openSignIn, 'server_error');
  }

  async #openClient({ applicationId, id, clientId, secretSealed, authMethod }: ConsumerProviderRow): Promise<Client> {
    const secret = secretSealed && (await this.#parts.seal.open(applicationId, id, secretSealed));
    return { id: clientId, authMethod, ...(secret === undefined ? {} : { secret }) };
  }

  /**
   * Derives the subject that an application sees. It differs between issuers, and between applications, so that two
   * applications cannot match their users.
   */
  #pairwiseSubject(application: ApplicationId, issuer: string, subject: string): string {
    return `p_${this.#deriveValue('subject', `${application}\n${issuer}\n${subject}`).slice(0, SUBJECT_CHARACTERS)}`;
  }

  #deriveValue(purpose: string, input: string): string {
    const key = createHmac('sha256', this.#parts.secret.reveal()).update(`consumer sign-in\n${purpose}`).digest();
    return createHmac('sha256', key).update(input).digest('base64url');
  }
}

const hashOf = (state: string): Buffer => createHash('sha256').update(state).digest();
