// The sign-in settings that the members of an application configure for its consumers.
import type { ServiceConfig } from '../../../contract/config.ts';
import {
  type ApplicationIdentity,
  CONSUMER_REFRESH_LIFETIME_SECONDS,
  CONSUMER_SESSION_LIFETIME_SECONDS,
  HOSTED_PROVIDER,
  type ReplaceIdentity,
} from '../../../contract/consumers.ts';
import type { SIGN_IN_METHODS } from '../../../contract/sign-in.ts';
import type { ApplicationRow } from '../../engines/store/rows/accounts.ts';
import type { ConsumerProviderRow } from '../../engines/store/rows/consumer-providers.ts';
import type { IdentityRow } from '../../engines/store/rows/consumers.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { type ApplicationId, isUuid } from '../../kit/ids.ts';
import type { Audit } from '../audit/audit.ts';
import { byCaller } from '../audit/by-caller.ts';
import { invalidRequest, notFound, preconditionFailed } from '../faults.ts';
import type { Applications } from '../identity/applications.ts';
import type { AccountCaller } from '../identity/caller.ts';
import { revisionFrom } from '../identity/revisions.ts';
import { isOrigin, registrationIssues } from './registered.ts';

export const isProviderId = (text: string): boolean => /^[a-z][a-z0-9-]{1,63}$/.test(text);

export interface IdentitiesParts {
  readonly store: Pick<Store, 'identities' | 'consumers' | 'consumerProviders' | 'applications' | 'atomically'>;
  readonly applications: Pick<Applications, 'require'>;
  readonly audit: Pick<Audit, 'record'>;
  readonly clock: Clock;
  readonly publicUrl: string;
}

export class Identities {
  readonly #parts: IdentitiesParts;

  constructor(parts: IdentitiesParts) {
    this.#parts = parts;
  }

  async read(caller: AccountCaller, appId: string): Promise<ApplicationIdentity> {
    const application = await this.#parts.applications.require(caller, appId, 'read');
    return this.#view(application, await this.of(application.id));
  }

  async replace(
    caller: AccountCaller,
    appId: string,
    ifMatch: string | undefined,
    replacement: ReplaceIdentity,
  ): Promise<ApplicationIdentity> {
    const { applications, store, audit, clock } = this.#parts;
    const application = await applications.require(caller, appId, 'identity');
    const currentIdentity = await this.of(application.id);
    const revision = revisionFrom(ifMatch, currentIdentity.revision);
    const row = rowOf(application.id, replacement, revision + 1, clock.now());
    const issues = registrationIssues(row);
    if (issues.length > 0) throw invalidRequest(issues);
    await store.atomically(async trx => {
      if (!(await trx.identities.replace(row, revision))) throw preconditionFailed(currentIdentity.revision);
      const details = { fields: Object.keys(replacement), revision: row.revision };
      const entry = { action: 'identity.changed', applicationId: application.id, outcome: 'success', details } as const;
      await audit.record({ ...byCaller(caller), ...entry }, trx);
    });
    return this.#view(application, row);
  }

  /** Returns the sign-in configuration. If the application has configured nothing, consumers cannot sign in. */
  async of(application: ApplicationId): Promise<IdentityRow> {
    return (await this.#parts.store.identities.get(application)) ?? rowOf(application, {}, 0, this.#parts.clock.now());
  }

  /** Returns the application with the id in a path. Does not check a caller. */
  async requireApplication(appId: string): Promise<ApplicationRow> {
    const id = appId.toLowerCase() as ApplicationId; // Checked by isUuid.
    const application = isUuid(id) ? await this.#parts.store.applications.byId(id) : undefined;
    if (!application) throw notFound('Application', appId);
    return application;
  }

  /**
   * Returns the public description of how consumers sign in. Undefined if consumers cannot sign in, or if the
   * application does not exist.
   */
  async publicDescription(appId: string): Promise<ServiceConfig['consumer']> {
    const { store } = this.#parts;
    const id = appId.toLowerCase() as ApplicationId; // Checked by isUuid.
    const application = isUuid(id) ? await store.applications.byId(id) : undefined;
    if (!application) return undefined;
    const { hostedMethods, colour } = await this.of(id);
    const enabledProviders = (await store.consumerProviders.list(id)).filter(({ enabled }) => enabled);
    const providers = [
      ...(hostedMethods.length > 0 ? [{ id: HOSTED_PROVIDER, title: application.name, kind: 'hosted' as const }] : []),
      ...enabledProviders.map(({ id, title }) => ({ id, title, kind: 'oidc' as const })),
    ];
    if (providers.length === 0) return undefined;
    return { name: application.name, ...(colour === undefined ? {} : { colour }), providers };
  }

  /**
   * Returns the application if it has this provider. A disabled provider counts, because it may still have consumer
   * sessions.
   */
  async applicationWithProvider(appId: string, providerId: string): Promise<ApplicationRow> {
    const application = await this.requireApplication(appId);
    const hasProvider =
      providerId === HOSTED_PROVIDER || (await this.findProvider(application.id, providerId)) !== undefined;
    if (!hasProvider) throw notFound('Provider', providerId);
    return application;
  }

  async findProvider(application: ApplicationId, id: string): Promise<ConsumerProviderRow | undefined> {
    return isProviderId(id) ? this.#parts.store.consumerProviders.get(application, id) : undefined;
  }

  async allowsOrigin(appId: string, origin: string): Promise<boolean> {
    return (await this.originsOf(appId)).includes(origin);
  }

  /**
   * Returns the origins that the application has registered. Omits stored origins that an earlier version accepted and
   * that would be refused now.
   */
  async originsOf(appId: string): Promise<readonly string[]> {
    const id = appId.toLowerCase() as ApplicationId; // Checked by isUuid.
    const row = isUuid(id) ? await this.#parts.store.identities.get(id) : undefined;
    return row?.origins.filter(isOrigin) ?? [];
  }

  issuerOf({ slug }: Pick<ApplicationRow, 'slug'>): string {
    return `${this.#parts.publicUrl}/a/${slug}`;
  }

  async #view(application: ApplicationRow, row: IdentityRow): Promise<ApplicationIdentity> {
    return {
      issuer: this.issuerOf(application),
      hosted: { methods: [...methodsOf(row)], registration: row.hostedRegistration },
      ...(row.colour === undefined ? {} : { colour: row.colour }),
      origins: [...row.origins],
      redirectUris: [...row.redirectUris],
      sessionTtl: row.sessionSeconds,
      refreshTtl: row.refreshSeconds,
      consumers: { total: await this.#parts.store.consumers.count(application.id) },
      revision: row.revision,
    };
  }
}

type Method = (typeof SIGN_IN_METHODS)[number];

export const methodsOf = ({ hostedMethods }: IdentityRow): readonly Method[] => hostedMethods as readonly Method[]; // Validated by the contract.

const rowOf = (
  applicationId: ApplicationId,
  {
    hosted = { methods: [], registration: 'closed' },
    colour,
    origins = [],
    redirectUris = [],
    sessionTtl = CONSUMER_SESSION_LIFETIME_SECONDS,
    refreshTtl = CONSUMER_REFRESH_LIFETIME_SECONDS,
  }: ReplaceIdentity,
  revision: number,
  updatedAt: Date,
): IdentityRow => ({
  ...{ applicationId, hostedMethods: [...new Set(hosted.methods)], hostedRegistration: hosted.registration },
  ...(colour === undefined ? {} : { colour }),
  ...{ origins: [...new Set(origins)], redirectUris: [...new Set(redirectUris)] },
  ...{ sessionSeconds: sessionTtl, refreshSeconds: refreshTtl, revision, updatedAt },
});
