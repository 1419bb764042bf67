// OpenID providers with which the consumers of an application sign in.
import type { ApplicationId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';

export type ClientAuthMethod = 'client_secret_basic' | 'client_secret_post' | 'none';

export interface ConsumerProviderRow {
  readonly applicationId: ApplicationId;
  readonly id: string;
  readonly title: string;
  readonly enabled: boolean;
  readonly issuer: string;
  readonly clientId: string;
  readonly authMethod: ClientAuthMethod;
  readonly secretSealed?: Buffer;
  readonly scopes: readonly string[];
  /** Values from the provider's discovery document, after they were checked. */
  readonly metadata: JsonObject;
  readonly revision: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface ConsumerProviders {
  get(application: ApplicationId, id: string): Promise<ConsumerProviderRow | undefined>;
  /** All providers of an application, ordered by id. */
  list(application: ApplicationId): Promise<ConsumerProviderRow[]>;
  /**
   * Inserts the row if `expectedRevision` is 0. Otherwise replaces the row if it has this revision. `changed`: there is
   * already a row, or there is none with this revision.
   */
  write(
    row: ConsumerProviderRow,
    expectedRevision: number,
    limit: number,
  ): Promise<'written' | 'limit_reached' | 'changed'>;
  remove(application: ApplicationId, id: string, revision: number): Promise<boolean>;
}
