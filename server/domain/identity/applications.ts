// Creates, lists, reads and renames applications. Also decides whether an account may access an application. This
// depends on the role of the account and on the restrictions of its token.
import {
  APPLICATIONS_PER_ACCOUNT_MAX,
  type Application,
  type ApplicationPage,
  type CreateApplication,
  type RenameApplication,
} from '../../../contract/applications.ts';
import { PAGE_LIMIT_DEFAULT, type PageQuery } from '../../../contract/common.ts';
import { hasRight, REQUIRED_ROLE, type Right } from '../../../contract/roles.ts';
import type { ApplicationRow, Role } from '../../engines/store/rows/accounts.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { type AccountId, type ApplicationId, isUuid, newId, type TokenId } from '../../kit/ids.ts';
import type { Audit, AuditSource, AuditTransaction } from '../audit/audit.ts';
import { BY_OPERATOR, byCaller } from '../audit/by-caller.ts';
import { fault, limitReached, notFound, preconditionFailed, roleMissing } from '../faults.ts';
import { type AccountCaller, type AgentCaller, tokenIdOf } from './caller.ts';
import { type Cursors, type ListName, listPageOf } from './cursors.ts';
import { cleanName, slugOf, withSuffix } from './names.ts';
import { revisionFrom } from './revisions.ts';

export type MemberApplication = ApplicationRow & { readonly role: Role };

const SLUG_TRIES_MAX = 5;

export interface ApplicationsParts {
  readonly store: Pick<Store, 'applications' | 'tokens' | 'atomically'>;
  readonly clock: Clock;
  readonly cursors: Cursors;
  readonly audit: Pick<Audit, 'record'>;
  /** Called with the hash, in hex, of a token whose applications have changed. */
  readonly onCredentialChanged: (hash: string) => void;
}

export class Applications {
  readonly #store: ApplicationsParts['store'];
  readonly #clock: Clock;
  readonly #cursors: Cursors;
  readonly #audit: Pick<Audit, 'record'>;
  readonly #onCredentialChanged: ApplicationsParts['onCredentialChanged'];

  constructor({ store, clock, cursors, audit, onCredentialChanged }: ApplicationsParts) {
    this.#store = store;
    this.#clock = clock;
    this.#cursors = cursors;
    this.#audit = audit;
    this.#onCredentialChanged = onCredentialChanged;
  }

  async create(caller: AccountCaller, request: CreateApplication): Promise<Application> {
    const { accountId, applicationIds } = caller;
    const tokenId = applicationIds && tokenIdOf(caller);
    if (applicationIds && (applicationIds.size > 0 || !tokenId)) throw tokenIsRestricted();
    const row = await this.insert(accountId, request, byCaller(caller), tokenId);
    if (tokenId) await this.#forget(accountId, tokenId);
    return applicationView({ ...row, role: 'owner' });
  }

  /**
   * Creates an application without checking a caller, for the first start and the command line. `restrictedTokenId` is
   * the id of a token that is restricted to no application yet. The token is then restricted to the new application.
   */
  async insert(
    owner: AccountId,
    request: CreateApplication,
    source: AuditSource = BY_OPERATOR,
    restrictedTokenId?: TokenId,
  ): Promise<ApplicationRow> {
    const name = cleanName(request.name);
    let slug = request.slug ?? slugOf(name);
    for (let attempt = 1; ; attempt += 1) {
      const row = this.#newRow(owner, name, slug);
      const outcome = await this.#store.atomically(async trx => {
        const outcome = await trx.applications.insert(row, owner, APPLICATIONS_PER_ACCOUNT_MAX, restrictedTokenId);
        if (outcome === 'inserted') await this.#record(trx, 'application.created', row, source);
        return outcome;
      });
      if (outcome === 'inserted') return row;
      if (outcome === 'token_used') throw tokenIsRestricted();
      if (outcome === 'limit_reached')
        throw limitReached(
          'applications in this account',
          APPLICATIONS_PER_ACCOUNT_MAX,
          'Use one of your applications: applications cannot be deleted.',
        );
      if (request.slug !== undefined || attempt === SLUG_TRIES_MAX) throw slugTaken(slug);
      slug = withSuffix(slugOf(name));
    }
  }

  async list(caller: AccountCaller, { limit = PAGE_LIMIT_DEFAULT, cursor }: PageQuery): Promise<ApplicationPage> {
    const name: ListName = { list: 'applications', owner: caller.via.id };
    const beforeId = cursor === undefined ? undefined : this.#cursors.read<ApplicationId>(name, cursor);
    const rows = caller.applicationIds
      ? await this.#listAccessible(caller.accountId, caller.applicationIds, beforeId)
      : await this.#store.applications.list(caller.accountId, {
          limit: limit + 1,
          ...(beforeId ? { before: beforeId } : {}),
        });
    return listPageOf(rows, limit, applicationView, id => this.#cursors.after(name, id));
  }

  async read(caller: AccountCaller, id: string): Promise<Application> {
    return applicationView(await this.require(caller, id, 'read'));
  }

  async rename(
    caller: AccountCaller,
    id: string,
    ifMatch: string | undefined,
    change: RenameApplication,
  ): Promise<Application> {
    const { id: applicationId, role, revision: currentRevision } = await this.require(caller, id, 'rename');
    const revision = revisionFrom(ifMatch, currentRevision);
    const name = cleanName(change.name);
    const row = await this.#store.atomically(async trx => {
      const row = await trx.applications.rename(applicationId, revision, name, this.#clock.now());
      if (!row) throw preconditionFailed();
      await this.#record(trx, 'application.renamed', row, byCaller(caller));
      return row;
    });
    return applicationView({ ...row, role });
  }

  #record(
    trx: AuditTransaction,
    action: 'application.created' | 'application.renamed',
    { id }: ApplicationRow,
    source: AuditSource,
  ): Promise<void> {
    const target = { kind: 'application', id };
    return this.#audit.record({ ...source, action, applicationId: id, target, outcome: 'success' }, trx);
  }

  /**
   * Returns the application if the role of the caller has this right. An application that the caller cannot access is
   * treated as not found (404).
   */
  async require(caller: AccountCaller, id: string, right: Right): Promise<MemberApplication> {
    const row = await this.#findAccessible(caller, id);
    if (!row) throw notFound('Application', id);
    if (!hasRight(row.role, right)) throw roleMissing(REQUIRED_ROLE[right]);
    return row;
  }

  /** Returns the application of an agent key. */
  async ofAgent(caller: AgentCaller): Promise<ApplicationRow> {
    const row = await this.#store.applications.byId(caller.applicationId);
    if (!row) throw notFound('Application', caller.applicationId);
    return row;
  }

  /** Whether the caller can access the application in any role. */
  async canAccess(caller: AccountCaller, id: string): Promise<boolean> {
    return (await this.#findAccessible(caller, id)) !== undefined;
  }

  async #findAccessible(
    { accountId, applicationIds }: AccountCaller,
    id: string,
  ): Promise<MemberApplication | undefined> {
    if (!isUuid(id)) return undefined;
    const applicationId = id as ApplicationId; // Checked by isUuid.
    if (applicationIds && !applicationIds.has(applicationId)) return undefined;
    return this.#store.applications.get(applicationId, accountId);
  }

  /**
   * Returns the applications in `ids` that the account can access. A restricted token names at most 50 applications, so
   * they are read one by one.
   */
  async #listAccessible(
    accountId: AccountId,
    ids: ReadonlySet<ApplicationId>,
    beforeId: ApplicationId | undefined,
  ): Promise<MemberApplication[]> {
    const newestFirstIds = [...ids].sort().reverse();
    const remainingIds = beforeId === undefined ? newestFirstIds : newestFirstIds.filter(id => id < beforeId);
    const rows = await Promise.all(remainingIds.map(id => this.#store.applications.get(id, accountId)));
    return rows.filter(row => row !== undefined);
  }

  /** Drops the token from the cache, because its cached caller does not have the new application yet. */
  async #forget(account: AccountId, id: TokenId): Promise<void> {
    const token = await this.#store.tokens.get(account, id);
    if (token) this.#onCredentialChanged(token.hash.toString('hex'));
  }

  #newRow(billingAccountId: AccountId, name: string, slug: string): ApplicationRow {
    const now = this.#clock.now();
    return { id: newId<ApplicationId>(now), name, slug, billingAccountId, revision: 1, createdAt: now, updatedAt: now };
  }
}

const applicationView = (row: MemberApplication): Application => ({
  id: row.id,
  name: row.name,
  slug: row.slug,
  role: row.role,
  billingAccountId: row.billingAccountId,
  environment: 'development',
  revision: row.revision,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString(),
});

const slugTaken = (slug: string): Error =>
  fault('name_taken', `The slug ${slug} is already in use in this installation.`, {
    advice: 'Choose another slug, or omit the slug.',
    details: { slug },
  });

const tokenIsRestricted = (): Error =>
  fault(
    'permission_denied',
    'This token is restricted to certain applications and cannot create another application.',
    {
      advice: 'Use a token without applicationIds.',
    },
  );
