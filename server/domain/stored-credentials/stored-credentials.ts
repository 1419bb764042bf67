// Credentials for other services: write, rotate, roll back, delete. Each value is sealed in the vault and bound to its
// row. It is opened only for a rollback, or for a call that sends it to a host or types it at an origin that the
// credential allows.
import { PAGE_LIMIT_DEFAULT, type PageQuery } from '../../../contract/common.ts';
import { CREDENTIAL_ID_OPTIONS } from '../../../contract/credential-names.ts';
import {
  type CredentialValue,
  EARLIER_VERSION_RETENTION_HOURS,
  STORED_CREDENTIALS_PER_APPLICATION_MAX,
  type StoredCredential,
  type StoredCredentialPage,
  type StoredCredentialType,
  type WriteStoredCredential,
} from '../../../contract/stored-credentials.ts';
import type {
  CredentialContent,
  CredentialVersionRow,
  NewVersion,
  StoredCredentialWithVersion,
} from '../../engines/store/rows/stored-credentials.ts';
import type { Store } from '../../engines/store/store.ts';
import { canonicalJson } from '../../kit/canonical-json.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import type { Audit, AuditTransaction, Detail } from '../audit/audit.ts';
import { byCaller } from '../audit/by-caller.ts';
import { fault, invalidRequest, limitReached, notFound, nothingToMatch, preconditionFailed } from '../faults.ts';
import type { Applications } from '../identity/applications.ts';
import type { AccountCaller } from '../identity/caller.ts';
import { parseFutureExpiry } from '../identity/credential-rules.ts';
import type { Cursors } from '../identity/cursors.ts';
import { listPageById } from '../identity/page-by-id.ts';
import { revisionFrom } from '../identity/revisions.ts';
import { hostIn, originIn, placeIssues } from './credential-places.ts';
import { valueIssues } from './credential-values.ts';

/** Seals and opens values. `place` is the row that the value belongs to. */
export interface ValueSeal {
  close(place: VersionPlace, value: CredentialValue): Promise<Buffer>;
  open(place: VersionPlace, sealed: Buffer): Promise<CredentialValue>;
}

export type VersionPlace = Pick<CredentialVersionRow, 'applicationId' | 'credentialId' | 'version'>;

export interface StoredCredentialsParts {
  readonly store: Pick<Store, 'storedCredentials' | 'atomically'>;
  readonly applications: Pick<Applications, 'require'>;
  readonly audit: Pick<Audit, 'record'>;
  readonly seal: ValueSeal;
  /**
   * Returns a keyed digest of a string, in hexadecimal. The same string has different digests in different
   * applications.
   */
  readonly fingerprint: (application: ApplicationId, text: string) => string;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

export interface WrittenCredential {
  readonly credential: StoredCredential;
  readonly isNew: boolean;
}

type CredentialAction = `credential.${'written' | 'rotated' | 'rolled_back' | 'deleted'}`;

const ID_PATTERN = new RegExp(CREDENTIAL_ID_OPTIONS.pattern);
const EARLIER_VERSION_MS = EARLIER_VERSION_RETENTION_HOURS * 3_600_000;

export class StoredCredentials {
  readonly #parts: StoredCredentialsParts;

  constructor(parts: StoredCredentialsParts) {
    this.#parts = parts;
  }

  async list(caller: AccountCaller, appId: string, query: PageQuery): Promise<StoredCredentialPage> {
    const { applications, store, cursors } = this.#parts;
    const { id } = await applications.require(caller, appId, 'read');
    const { limit = PAGE_LIMIT_DEFAULT, cursor } = query;
    const rows = await store.storedCredentials.list(id);
    const name = { list: 'credentials', owner: id } as const;
    const page = listPageById(rows, { limit, cursor, name, cursors });
    const views = await this.#views(id, page.data);
    return { ...page, data: views };
  }

  async read(caller: AccountCaller, appId: string, credentialId: string): Promise<StoredCredential> {
    const { id } = await this.#parts.applications.require(caller, appId, 'read');
    return this.#view(id, credentialId);
  }

  async write(
    caller: AccountCaller,
    appId: string,
    credentialId: string,
    ifMatch: string | undefined,
    request: WriteStoredCredential,
  ): Promise<WrittenCredential> {
    const { applications, store } = this.#parts;
    const { id } = await applications.require(caller, appId, 'credentials');
    if (!ID_PATTERN.test(credentialId))
      throw invalidRequest([
        {
          path: 'id',
          message:
            'is not a valid id; expected at most 64 lowercase letters, digits and hyphens, beginning with a letter, such as shop-api',
        },
      ]);
    const content = this.#contentOf(id, request);
    const existingCredential = await store.storedCredentials.get(id, credentialId);
    if (!existingCredential && ifMatch !== undefined && ifMatch.trim() !== '*') throw nothingToMatch();
    if (existingCredential)
      await this.#rotate(
        caller,
        existingCredential,
        revisionFrom(ifMatch, existingCredential.revision),
        'credential.rotated',
        content,
        request.value,
      );
    else await this.#insert(caller, id, credentialId, content, request.value);
    return { credential: await this.#view(id, credentialId), isNew: !existingCredential };
  }

  /** Stores the previous value as a new version, because a version number is never reused. */
  async rollBack(caller: AccountCaller, appId: string, credentialId: string): Promise<StoredCredential> {
    const { applications, store, seal, clock } = this.#parts;
    const { id } = await applications.require(caller, appId, 'removeCredentials');
    const row = await this.#get(id, credentialId);
    const previousRow = await store.storedCredentials.previous(id, credentialId, row.version, clock.now());
    if (!previousRow) throw noPreviousVersion(credentialId);
    const value = await seal.open(previousRow, previousRow.sealed);
    await this.#rotate(caller, row, row.revision, 'credential.rolled_back', contentIn(previousRow), value);
    return this.#view(id, credentialId);
  }

  async delete(
    caller: AccountCaller,
    appId: string,
    credentialId: string,
    ifMatch: string | undefined,
    force: boolean,
  ): Promise<void> {
    const { applications, store, clock } = this.#parts;
    const { id } = await applications.require(caller, appId, 'removeCredentials');
    const row = await this.#get(id, credentialId);
    const revision = revisionFrom(ifMatch, row.revision);
    await store.atomically(async trx => {
      const usingOperations = await trx.storedCredentials.referencesTo(id, [credentialId]);
      const publishedIds = usingOperations
        .filter(({ isPublished }) => isPublished)
        .map(({ operationId }) => operationId);
      if (publishedIds.length > 0 && !force) throw credentialInUse(credentialId, publishedIds);
      if (!(await trx.storedCredentials.delete(id, credentialId, revision, clock.now()))) throw preconditionFailed();
      await this.#record(trx, 'credential.deleted', caller, id, credentialId, {
        version: row.version,
        usedBy: publishedIds,
      });
    });
  }

  #contentOf(
    application: ApplicationId,
    { type, value, label, hosts = [], origins = [], expiresAt }: WriteStoredCredential,
  ): CredentialContent {
    const issues = [...valueIssues(type, value), ...placeIssues(type, hosts, origins)];
    if (label !== undefined && /[\p{Cc}]/u.test(label))
      issues.push({ path: 'label', message: 'contains a control character' });
    if (issues.length > 0) throw invalidRequest(issues);
    const validUntil = parseFutureExpiry(expiresAt, this.#parts.clock.now());
    return {
      type,
      hosts: [...new Set(hosts.flatMap(host => hostIn(host) ?? []))],
      origins: [...new Set(origins.flatMap(origin => originIn(origin) ?? []))],
      fingerprint: `hmac:${this.#parts.fingerprint(application, canonicalJson({ type, value }))}`,
      ...(label === undefined ? {} : { label }),
      ...(validUntil === undefined ? {} : { expiresAt: validUntil }),
    };
  }

  async #insert(
    caller: AccountCaller,
    applicationId: ApplicationId,
    credentialId: string,
    content: CredentialContent,
    value: CredentialValue,
  ): Promise<void> {
    const { store, clock } = this.#parts;
    const version = await store.storedCredentials.nextVersion(applicationId, credentialId);
    const newVersion = await this.#newVersion({ applicationId, credentialId, version }, content, value);
    await store.atomically(async trx => {
      const max = STORED_CREDENTIALS_PER_APPLICATION_MAX;
      const outcome = await trx.storedCredentials.insert(
        applicationId,
        credentialId,
        version,
        newVersion,
        max,
        clock.now(),
      );
      if (outcome === 'limit_reached') throw limitReached('credentials in this application', max);
      if (!outcome) throw preconditionFailed();
      await this.#record(
        trx,
        'credential.written',
        caller,
        applicationId,
        credentialId,
        auditDetailsOf(version, content),
      );
    });
  }

  async #rotate(
    caller: AccountCaller,
    { applicationId, id, version: previousVersion }: StoredCredentialWithVersion,
    revision: number,
    action: CredentialAction,
    content: CredentialContent,
    value: CredentialValue,
  ): Promise<void> {
    const { store, clock } = this.#parts;
    const version = previousVersion + 1;
    const newVersion = await this.#newVersion({ applicationId, credentialId: id, version }, content, value);
    const now = clock.now();
    const times = { now, destroyAt: addMs(now, EARLIER_VERSION_MS) };
    await store.atomically(async trx => {
      const isRotated = await trx.storedCredentials.rotate(applicationId, id, revision, version, newVersion, times);
      if (!isRotated) throw preconditionFailed();
      await this.#record(trx, action, caller, applicationId, id, auditDetailsOf(version, content));
    });
  }

  async #newVersion(place: VersionPlace, content: CredentialContent, value: CredentialValue): Promise<NewVersion> {
    return { ...content, sealed: await this.#parts.seal.close(place, value) };
  }

  async #get(application: ApplicationId, id: string): Promise<StoredCredentialWithVersion> {
    const row = ID_PATTERN.test(id) ? await this.#parts.store.storedCredentials.get(application, id) : undefined;
    if (!row) throw notFound('Credential', id);
    return row;
  }

  async #view(application: ApplicationId, id: string): Promise<StoredCredential> {
    const [view] = await this.#views(application, [await this.#get(application, id)]);
    if (!view) throw notFound('Credential', id);
    return view;
  }

  async #views(application: ApplicationId, rows: readonly StoredCredentialWithVersion[]): Promise<StoredCredential[]> {
    const usingOperations = await this.#parts.store.storedCredentials.referencesTo(
      application,
      rows.map(({ id }) => id),
    );
    return rows.map(row =>
      viewOf(
        row,
        usingOperations.filter(({ credentialId }) => credentialId === row.id).map(({ operationId }) => operationId),
      ),
    );
  }

  #record(
    trx: AuditTransaction,
    action: CredentialAction,
    caller: AccountCaller,
    applicationId: ApplicationId,
    id: string,
    details: Readonly<Record<string, Detail>>,
  ): Promise<void> {
    const target = { kind: 'credential', id };
    return this.#parts.audit.record(
      { ...byCaller(caller), action, applicationId, target, outcome: 'success', details },
      trx,
    );
  }
}

const auditDetailsOf = (version: number, { type, hosts, origins }: CredentialContent): Record<string, Detail> => ({
  version,
  type,
  hosts,
  origins,
});

const contentIn = ({
  type,
  label,
  hosts,
  origins,
  expiresAt,
  fingerprint,
}: CredentialVersionRow): CredentialContent => ({
  ...{ type, hosts, origins, fingerprint },
  ...(label === undefined ? {} : { label }),
  ...(expiresAt === undefined ? {} : { expiresAt }),
});

const viewOf = (
  { id, version, revision, current, createdAt, rotatedAt, lastUsedAt, previousUntil }: StoredCredentialWithVersion,
  usedBy: readonly string[],
): StoredCredential => ({
  ...{ id, version, revision, fingerprint: current.fingerprint, usedBy: [...usedBy] },
  type: current.type as StoredCredentialType, // Validated by the contract when it was written.
  ...(current.label === undefined ? {} : { label: current.label }),
  ...{ hosts: [...current.hosts], origins: [...current.origins] },
  ...(current.expiresAt === undefined ? {} : { expiresAt: current.expiresAt.toISOString() }),
  ...{ createdAt: createdAt.toISOString(), rotatedAt: rotatedAt.toISOString() },
  ...(lastUsedAt === undefined ? {} : { lastUsedAt: lastUsedAt.toISOString() }),
  ...(previousUntil === undefined ? {} : { rollbackUntil: previousUntil.toISOString() }),
});

const noPreviousVersion = (id: string): Error =>
  fault('gone', `The previous version of the credential ${id} does not exist, or was destroyed.`, {
    advice: 'To use the previous value again, write it as a new version.',
  });

const credentialInUse = (id: string, operations: readonly string[]): Error =>
  fault('not_ready', `Published operations use the credential ${id}: ${operations.slice(0, 20).join(', ')}.`, {
    advice:
      'Withdraw these operations first. With ?force=true, the credential is deleted anyway, and calls of these operations are then refused.',
    details: { usedBy: operations },
  });
