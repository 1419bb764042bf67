// The OpenID providers that the members of an application configure for its consumers.
import {
  type ConsumerProvider,
  type ConsumerProviders,
  HOSTED_PROVIDER,
  PROVIDERS_MAX,
  type WriteProvider,
} from '../../../contract/consumers.ts';
import type { metadataIn, ProviderMetadata } from '../../engines/openid/discovery.ts';
import type { Outcome } from '../../engines/openid/trouble.ts';
import type { ConsumerProviderRow } from '../../engines/store/rows/consumer-providers.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import type { Audit } from '../audit/audit.ts';
import { byCaller } from '../audit/by-caller.ts';
import { fault, invalidRequest, limitReached, notFound, nothingToMatch, preconditionFailed } from '../faults.ts';
import type { Applications } from '../identity/applications.ts';
import type { AccountCaller } from '../identity/caller.ts';
import { cleanName } from '../identity/names.ts';
import { revisionFrom } from '../identity/revisions.ts';
import { type Identities, isProviderId } from './identities.ts';

/** Ids that are reserved for the providers of Berth itself. */
const RESERVED_IDS: readonly string[] = [HOSTED_PROVIDER, 'phone'];

export interface SecretSeal {
  close(application: ApplicationId, provider: string, secret: string): Promise<Buffer>;
  open(application: ApplicationId, provider: string, sealed: Buffer): Promise<string>;
}

export interface ProvidersParts {
  readonly store: Pick<Store, 'consumerProviders' | 'atomically'>;
  readonly identities: Identities;
  readonly applications: Pick<Applications, 'require'>;
  readonly audit: Pick<Audit, 'record'>;
  readonly clock: Clock;
  readonly seal: SecretSeal;
  readonly discover: (issuer: string) => Promise<Outcome<ProviderMetadata>>;
  readonly metadataIn: typeof metadataIn;
  /** The address to which providers redirect browsers. */
  readonly callbackUrl: string;
}

export class Providers {
  readonly #parts: ProvidersParts;

  constructor(parts: ProvidersParts) {
    this.#parts = parts;
  }

  async list(caller: AccountCaller, appId: string): Promise<ConsumerProviders> {
    const { applications, store } = this.#parts;
    const { id } = await applications.require(caller, appId, 'read');
    return { data: (await store.consumerProviders.list(id)).map(row => this.#view(row)) };
  }

  async read(caller: AccountCaller, appId: string, providerId: string): Promise<ConsumerProvider> {
    const { id } = await this.#parts.applications.require(caller, appId, 'read');
    return this.#view(await this.#get(id, providerId));
  }

  async write(
    caller: AccountCaller,
    appId: string,
    providerId: string,
    ifMatch: string | undefined,
    changes: WriteProvider,
  ): Promise<{ readonly provider: ConsumerProvider; readonly isNew: boolean }> {
    const { applications, identities, store, audit, clock, seal } = this.#parts;
    const { id: applicationId } = await applications.require(caller, appId, 'identity');
    if (!isProviderId(providerId) || RESERVED_IDS.includes(providerId))
      throw invalidRequest([
        { path: 'providerId', message: `is reserved or not a valid id; expected an id such as acme` },
      ]);
    const existingProvider = await identities.findProvider(applicationId, providerId);
    if (!existingProvider && ifMatch !== undefined && ifMatch.trim() !== '*') throw nothingToMatch();
    const currentRevision = existingProvider ? revisionFrom(ifMatch, existingProvider.revision) : 0;
    const { issuer, clientId, clientSecret, scopes = [], enabled = true } = changes;
    const title = cleanName(changes.title);
    // The stored secret is kept only if the issuer stays the same, because it must not be sent to another issuer.
    const keptSecret = existingProvider?.issuer === issuer ? existingProvider.secretSealed : undefined;
    const secretSealed =
      clientSecret === undefined ? keptSecret : await seal.close(applicationId, providerId, clientSecret);
    const authMethod = changes.authMethod ?? (secretSealed ? 'client_secret_basic' : 'none');
    if (authMethod !== 'none' && !secretSealed)
      throw invalidRequest([{ path: 'clientSecret', message: `is required for ${authMethod}` }]);
    const metadata = await this.#fetchMetadata(issuer);
    const now = clock.now();
    const row: ConsumerProviderRow = {
      ...{ applicationId, id: providerId, title, enabled, issuer, clientId, authMethod, scopes: [...new Set(scopes)] },
      ...(secretSealed && authMethod !== 'none' ? { secretSealed } : {}),
      metadata: { ...metadata, algorithms: [...metadata.algorithms] },
      ...{ revision: currentRevision + 1, createdAt: existingProvider?.createdAt ?? now, updatedAt: now },
    };
    await store.atomically(async trx => {
      const outcome = await trx.consumerProviders.write(row, currentRevision, PROVIDERS_MAX);
      if (outcome === 'limit_reached') throw limitReached('providers of this application', PROVIDERS_MAX);
      if (outcome === 'changed') throw preconditionFailed();
      const target = { kind: 'consumer_provider', id: providerId };
      const details = { issuer, clientId, enabled, revision: row.revision };
      const entry = {
        action: 'identity.provider_written',
        applicationId,
        outcome: 'success',
        target,
        details,
      } as const;
      await audit.record({ ...byCaller(caller), ...entry }, trx);
    });
    return { provider: this.#view(row), isNew: !existingProvider };
  }

  async remove(caller: AccountCaller, appId: string, providerId: string, ifMatch: string | undefined): Promise<void> {
    const { applications, store, audit } = this.#parts;
    const { id: applicationId } = await applications.require(caller, appId, 'identity');
    const row = await this.#get(applicationId, providerId);
    const revision = revisionFrom(ifMatch, row.revision);
    await store.atomically(async trx => {
      if (!(await trx.consumerProviders.remove(applicationId, row.id, revision))) throw preconditionFailed();
      const target = { kind: 'consumer_provider', id: row.id };
      const entry = { action: 'identity.provider_removed', applicationId, outcome: 'success', target } as const;
      await audit.record({ ...byCaller(caller), ...entry }, trx);
    });
  }

  async #fetchMetadata(issuer: string): Promise<ProviderMetadata> {
    const outcome = await this.#parts.discover(issuer);
    if ('value' in outcome) return outcome.value;
    throw fault('upstream_failed', `The provider cannot be used. ${outcome.words}`, {
      advice: 'Check the issuer, and check that this service can read the discovery document of the issuer.',
    });
  }

  async #get(application: ApplicationId, id: string): Promise<ConsumerProviderRow> {
    const row = await this.#parts.identities.findProvider(application, id);
    if (!row) throw notFound('Provider', id);
    return row;
  }

  #view(row: ConsumerProviderRow): ConsumerProvider {
    return {
      ...{ id: row.id, title: row.title, issuer: row.issuer, clientId: row.clientId, authMethod: row.authMethod },
      clientSecret: row.secretSealed ? 'set' : 'missing',
      ...{ scopes: [...row.scopes], enabled: row.enabled, redirectUri: this.#parts.callbackUrl },
      canEndSessions: this.#parts.metadataIn(row.metadata).endSessionEndpoint !== undefined,
      revision: row.revision,
      ...{ createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString() },
    };
  }
}
