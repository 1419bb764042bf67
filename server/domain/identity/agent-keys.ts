// Issues, reads, changes, rotates and revokes agent keys. Permissions are checked in applications.ts. A key is shown
// only once.
import {
  AGENT_KEYS_PER_APPLICATION_MAX,
  type AgentKey,
  type AgentKeyPage,
  BROWSER_SCOPES,
  type ChangeAgentKey,
  type CreateAgentKey,
  type IssuedAgentKey,
  type RevokeAgentKeyQuery,
  ROTATION_GRACE_SECONDS_DEFAULT,
  type RotateAgentKey,
} from '../../../contract/agent-keys.ts';
import { PAGE_LIMIT_DEFAULT, type PageQuery } from '../../../contract/common.ts';
import type { Grant } from '../../../contract/grants.ts';
import type { GrantRow, KeyChange, KeyRow } from '../../engines/store/rows/credentials.ts';
import type { Store } from '../../engines/store/store.ts';
import type { AssertNone } from '../../kit/assert-none.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { withoutUndefined } from '../../kit/complete.ts';
import { type ApplicationId, isUuid, type KeyId, newId } from '../../kit/ids.ts';
import type { Secret } from '../../kit/secret.ts';
import type { Audit, AuditSource, AuditTransaction, Detail } from '../audit/audit.ts';
import { BY_OPERATOR, byCaller } from '../audit/by-caller.ts';
import { fault, limitReached, notFound, preconditionFailed, REVOKE_ADVICE } from '../faults.ts';
import type { Applications } from './applications.ts';
import type { AccountCaller } from './caller.ts';
import { cleanRanges, credentialView, parseEarlierExpiry, parseFutureExpiry, statusOf } from './credential-rules.ts';
import { mint } from './credentials.ts';
import { type Cursors, type ListName, listPageOf } from './cursors.ts';
import { cleanGrants } from './grants.ts';
import { cleanName } from './names.ts';
import { revisionFrom } from './revisions.ts';

export interface AgentKeysParts {
  readonly store: Pick<Store, 'keys' | 'atomically'>;
  readonly clock: Clock;
  readonly cursors: Cursors;
  readonly applications: Applications;
  readonly audit: Pick<Audit, 'record'>;
  /**
   * Called with the hash, in hex, of each credential that has changed. Other processes get revocations from the store.
   */
  readonly onCredentialChanged: (hash: string, shouldKeepConnections?: boolean) => void;
}

/** A key that was not yet used, revoked or rotated. */
type NewKeyRow = Omit<KeyRow, 'revokedAt' | 'lastUsedAt' | 'lastUsedIp' | 'replacedBy'>;

/** Do not compile if a field of a request is neither stored nor changed. */
export type UnstoredField = AssertNone<Exclude<keyof CreateAgentKey, keyof NewKeyRow>>;
export type UnchangedField = AssertNone<Exclude<keyof ChangeAgentKey, keyof KeyChange>>;

type KeyAction = `agent_key.${'created' | 'changed' | 'rotated' | 'revoked'}`;

export class AgentKeys {
  readonly #parts: AgentKeysParts;

  constructor(parts: AgentKeysParts) {
    this.#parts = parts;
  }

  async create(caller: AccountCaller, appId: string, request: CreateAgentKey): Promise<IssuedAgentKey> {
    const { id } = await this.#parts.applications.require(caller, appId, 'agentKeys');
    const { row, key } = await this.issue(id, request, byCaller(caller));
    return this.#issuedView(row, key);
  }

  /** Creates a key without checking a caller. Used at the first start and by the command line. */
  async issue(
    applicationId: ApplicationId,
    request: CreateAgentKey,
    source: AuditSource = BY_OPERATOR,
  ): Promise<{ row: KeyRow; key: Secret }> {
    const now = this.#parts.clock.now();
    const { hash, prefix, text } = mint('agent_key');
    const expiresAt = parseFutureExpiry(request.expiresAt, now);
    const row = withoutUndefined<NewKeyRow>({
      id: newId<KeyId>(now),
      applicationId,
      name: cleanName(request.name),
      prefix,
      hash,
      scopes: [...new Set(request.scopes ?? BROWSER_SCOPES)],
      grants: cleanGrants(request.grants),
      cidrAllow: cleanRanges(request.cidrAllow),
      revision: 1,
      createdAt: now,
      expiresAt,
    });
    await this.#parts.store.atomically(async trx => {
      const outcome = await trx.keys.insert(row, AGENT_KEYS_PER_APPLICATION_MAX);
      if (outcome === 'limit_reached') throw tooManyKeys();
      const details = { scopes: row.scopes, grants: operationsOf(row) };
      await this.#record(trx, 'agent_key.created', row, source, details);
    });
    return { row, key: text };
  }

  async list(
    caller: AccountCaller,
    appId: string,
    { limit = PAGE_LIMIT_DEFAULT, cursor }: PageQuery,
  ): Promise<AgentKeyPage> {
    const { id } = await this.#parts.applications.require(caller, appId, 'read');
    const { store, clock, cursors } = this.#parts;
    const name: ListName = { list: 'agent-keys', owner: id };
    const beforeOption = cursor === undefined ? {} : { before: cursors.read<KeyId>(name, cursor) };
    const rows = await store.keys.list(id, clock.now(), { limit: limit + 1, ...beforeOption });
    return listPageOf(
      rows,
      limit,
      row => this.#view(row),
      last => cursors.after(name, last),
    );
  }

  async read(caller: AccountCaller, appId: string, keyId: string): Promise<AgentKey> {
    const { id } = await this.#parts.applications.require(caller, appId, 'read');
    return this.#view(await this.#get(id, keyId));
  }

  async change(
    caller: AccountCaller,
    appId: string,
    keyId: string,
    ifMatch: string | undefined,
    request: ChangeAgentKey,
  ): Promise<AgentKey> {
    const { id } = await this.#parts.applications.require(caller, appId, 'agentKeys');
    const row = await this.#requireActive(id, keyId);
    const revision = revisionFrom(ifMatch, row.revision);
    const expiresAt = parseEarlierExpiry(request.expiresAt, row.expiresAt, this.#parts.clock.now());
    const change = withoutUndefined<KeyChange>({
      name: request.name === undefined ? undefined : cleanName(request.name),
      grants: request.grants && cleanGrants(request.grants),
      cidrAllow: request.cidrAllow && cleanRanges(request.cidrAllow),
      expiresAt,
    });
    const changedRow = await this.#parts.store.atomically(async trx => {
      const changedRow = await trx.keys.change(row.applicationId, row.id, revision, change);
      if (!changedRow) throw preconditionFailed();
      const grantsField = request.grants === undefined ? {} : { grants: operationsOf(changedRow) };
      const details = { fields: Object.keys(request), ...grantsField };
      await this.#record(trx, 'agent_key.changed', row, byCaller(caller), details);
      return changedRow;
    });
    this.#parts.onCredentialChanged(row.hash.toString('hex'));
    return this.#view(changedRow);
  }

  async revoke(caller: AccountCaller, appId: string, keyId: string, query: RevokeAgentKeyQuery = {}): Promise<void> {
    const { id } = await this.#parts.applications.require(caller, appId, 'agentKeys');
    await this.end(id, keyId, query.closeConnections === 'false', byCaller(caller));
  }

  /** Revokes a key without checking a caller. */
  async end(
    applicationId: ApplicationId,
    keyId: string,
    shouldKeepConnections = false,
    source: AuditSource = BY_OPERATOR,
  ): Promise<void> {
    const row = await this.#requireActive(applicationId, keyId);
    const now = this.#parts.clock.now();
    const isRevoked = await this.#parts.store.atomically(async trx => {
      const isEnded = await trx.keys.revoke(applicationId, row.id, now, { shouldKeepConnections });
      if (isEnded) await this.#record(trx, 'agent_key.revoked', row, source);
      return isEnded;
    });
    this.#parts.onCredentialChanged(row.hash.toString('hex'), shouldKeepConnections);
    if (!isRevoked) throw notFound('Agent key', keyId);
  }

  /**
   * Issues a new key with the same rights. The old key expires after the grace period, or at once if the period is 0.
   */
  async rotate(caller: AccountCaller, appId: string, keyId: string, request: RotateAgentKey): Promise<IssuedAgentKey> {
    const { id } = await this.#parts.applications.require(caller, appId, 'agentKeys');
    const oldKey = await this.#requireActive(id, keyId);
    if (oldKey.replacedBy || statusOf(oldKey, this.#parts.clock.now()) !== 'active') throw notRotatable(oldKey);
    const graceSeconds = request.graceSeconds ?? ROTATION_GRACE_SECONDS_DEFAULT;
    const now = this.#parts.clock.now();
    const { hash, prefix, text } = mint('agent_key');
    const { lastUsedAt: _used, lastUsedIp: _ip, ...copiedFields } = oldKey;
    const row: KeyRow = { ...copiedFields, id: newId<KeyId>(now), hash, prefix, revision: 1, createdAt: now };
    const oldExpiresAt = addMs(now, graceSeconds * 1000);
    const outcome = await this.#parts.store.atomically(async trx => {
      const outcome = await trx.keys.rotate(oldKey.id, row, oldExpiresAt, AGENT_KEYS_PER_APPLICATION_MAX);
      if (outcome === 'limit_reached') throw tooManyKeys(); // The error rolls back the change of the old key.
      const details = { replacedBy: row.id, graceSeconds };
      if (outcome === 'rotated') await this.#record(trx, 'agent_key.rotated', oldKey, byCaller(caller), details);
      return outcome;
    });
    if (outcome === 'not_rotatable') throw notRotatable(await this.#get(id, keyId));
    this.#parts.onCredentialChanged(oldKey.hash.toString('hex'));
    return this.#issuedView(row, text);
  }

  #record(
    trx: AuditTransaction,
    action: KeyAction,
    { id, applicationId }: KeyRow,
    source: AuditSource,
    details: Readonly<Record<string, Detail>> = {},
  ): Promise<void> {
    const target = { kind: 'agent_key', id };
    return this.#parts.audit.record({ ...source, action, applicationId, target, outcome: 'success', details }, trx);
  }

  async #get(applicationId: ApplicationId, keyId: string): Promise<KeyRow> {
    const row = isUuid(keyId) ? await this.#parts.store.keys.get(applicationId, keyId as KeyId) : undefined;
    if (!row) throw notFound('Agent key', keyId);
    return row;
  }

  async #requireActive(applicationId: ApplicationId, keyId: string): Promise<KeyRow> {
    const row = await this.#get(applicationId, keyId);
    if (row.revokedAt) throw notFound('Agent key', keyId);
    return row;
  }

  #view(row: KeyRow): AgentKey {
    return withoutUndefined<AgentKey>({
      ...credentialView(row, this.#parts.clock.now()),
      applicationId: row.applicationId,
      revision: row.revision,
      grants: row.grants.map(grantView),
    });
  }

  #issuedView(row: KeyRow, key: Secret): IssuedAgentKey {
    return { ...this.#view(row), key: key.reveal() };
  }
}

const grantView = ({ credentials, ...grant }: GrantRow): Grant => ({
  ...grant,
  ...(credentials === undefined ? {} : { credentials: [...credentials] }),
});

const operationsOf = ({ grants }: KeyRow): string[] => grants.map(({ operationId }) => operationId);

const tooManyKeys = (): Error =>
  limitReached('active agent keys in this application', AGENT_KEYS_PER_APPLICATION_MAX, REVOKE_ADVICE);

const notRotatable = ({ id, replacedBy }: KeyRow): Error =>
  replacedBy
    ? fault('key_not_rotatable', `Agent key ${id} cannot be rotated again, because it was replaced by ${replacedBy}.`, {
        advice: 'Rotate the newer key, or issue a new key.',
        details: { replacedBy },
      })
    : fault('key_not_rotatable', `Agent key ${id} cannot be rotated, because it has expired or was revoked.`, {
        advice: 'Issue a new key.',
      });
