// Members of applications: list, change and remove. membership-rules.ts decides about changes while the application is
// locked.
import { PAGE_LIMIT_DEFAULT, type PageQuery } from '../../../contract/common.ts';
import type { ChangeMember, Member, MemberPage } from '../../../contract/members.ts';
import { hasRight, type Role } from '../../../contract/roles.ts';
import type { MemberRow, MembershipState } from '../../engines/store/rows/members.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import type { AccountId, ApplicationId, InvitationId } from '../../kit/ids.ts';
import type { Audit, AuditTransaction, Detail } from '../audit/audit.ts';
import { byCaller } from '../audit/by-caller.ts';
import { notFound } from '../faults.ts';
import type { Applications } from '../identity/applications.ts';
import type { AccountCaller, HumanCaller } from '../identity/caller.ts';
import { type Cursors, type ListName, listPageOf } from '../identity/cursors.ts';
import { assertSteppedUp } from '../identity/step-up.ts';
import { assertMayChange, assignableRoles } from './membership-rules.ts';

export interface MembersParts {
  readonly store: Pick<Store, 'members' | 'atomically'>;
  readonly clock: Clock;
  readonly cursors: Cursors;
  readonly applications: Pick<Applications, 'require'>;
  readonly audit: Pick<Audit, 'record'>;
}

type MemberAction = 'member.role_changed' | 'member.removed' | 'member.left';

export class Members {
  readonly #parts: MembersParts;

  constructor(parts: MembersParts) {
    this.#parts = parts;
  }

  async list(
    caller: AccountCaller,
    appId: string,
    { limit = PAGE_LIMIT_DEFAULT, cursor }: PageQuery,
  ): Promise<MemberPage> {
    const { store, cursors, applications } = this.#parts;
    const { id, role } = await applications.require(caller, appId, 'read');
    const name: ListName = { list: 'members', owner: id };
    const beforeOption = cursor === undefined ? {} : { before: positionIn(cursors.read<string>(name, cursor)) };
    const rows = await store.members.list(id, { limit: limit + 1, ...beforeOption });
    return listPageOf(
      rows.map(row => ({ ...row, id: positionOf(row) })),
      limit,
      row => view(row, role),
      last => cursors.after(name, last),
    );
  }

  async change(caller: HumanCaller, appId: string, accountId: string, { role }: ChangeMember): Promise<Member> {
    const { store, applications } = this.#parts;
    const { id, role: callerRole } = await applications.require(caller, appId, 'members');
    const account = accountId as AccountId; // Validated as a UUID by the contract.
    await this.#apply(caller, id, account, role);
    const row = await store.members.get(id, account);
    if (!row) throw notFound('Member', accountId);
    return view(row, callerRole);
  }

  /** Removes another member, or the caller, from the application. */
  async remove(caller: HumanCaller, appId: string, accountId: string): Promise<void> {
    const isOwn = accountId === caller.accountId;
    const { id } = await this.#parts.applications.require(caller, appId, isOwn ? 'read' : 'members');
    const account = accountId as AccountId; // Validated as a UUID by the contract.
    await this.#apply(caller, id, account, undefined);
  }

  /** Gives a member this role, or removes the member if no role is given. */
  #apply(caller: HumanCaller, application: ApplicationId, account: AccountId, role: Role | undefined): Promise<void> {
    return this.#parts.store.atomically(async trx => {
      const { member, revoked } = await this.#applyChange(trx, caller, application, account, role);
      for (const invitationId of revoked) await this.#recordRevoked(trx, caller, application, invitationId);
      const isOwn = account === caller.accountId;
      if (role === undefined)
        await this.#record(trx, isOwn ? 'member.left' : 'member.removed', caller, application, account, {
          role: member,
        });
      else if (member !== role)
        await this.#record(trx, 'member.role_changed', caller, application, account, { from: member, to: role });
    });
  }

  /**
   * Returns the previous role of the member, and the ids of the invitations that were revoked because of the change.
   */
  async #applyChange(
    trx: Pick<Store, 'members'>,
    caller: HumanCaller,
    application: ApplicationId,
    account: AccountId,
    role: Role | undefined,
  ): Promise<{ readonly member: Role; readonly revoked: readonly InvitationId[] }> {
    const now = this.#parts.clock.now();
    const stateHolder: { state?: MembershipState } = {};
    const roleField = role === undefined ? {} : { role };
    const isOwn = account === caller.accountId;
    const revokedIds = await trx.members.change(application, {
      ...{ by: caller.accountId, account, ...roleField, mayInviteTo: assignableRoles(role), now },
      decide: state => {
        stateHolder.state = state;
        assertMayChange(state, { account, ...roleField, isOwn, assertSteppedUp: () => assertSteppedUp(caller, now) });
      },
    });
    const { memberRole } = stateHolder.state ?? {};
    if (!memberRole) throw notFound('Member', account);
    return { member: memberRole, revoked: revokedIds };
  }

  #recordRevoked(trx: AuditTransaction, caller: HumanCaller, applicationId: ApplicationId, id: InvitationId) {
    const entry = {
      ...byCaller(caller),
      ...({ action: 'invitation.revoked', applicationId, outcome: 'success' } as const),
      ...{ target: { kind: 'invitation', id }, details: { reason: 'inviter_lost_right' } },
    };
    return this.#parts.audit.record(entry, trx);
  }

  #record(
    trx: AuditTransaction,
    action: MemberAction,
    caller: HumanCaller,
    applicationId: ApplicationId,
    account: AccountId,
    details: Readonly<Record<string, Detail>>,
  ): Promise<void> {
    const target = { kind: 'account', id: account };
    const entry = { ...byCaller(caller), action, applicationId, target, outcome: 'success', details } as const;
    return this.#parts.audit.record(entry, trx);
  }
}

/**
 * Returns the position of a member for a cursor. Members have no ids of their own, so the position consists of the time
 * at which the member joined and the id of the account.
 */
const positionOf = ({ joinedAt, accountId }: MemberRow): string => `${joinedAt.getTime()}/${accountId}`;

function positionIn(text: string): Pick<MemberRow, 'joinedAt' | 'accountId'> {
  const [time = '', accountId = ''] = text.split('/');
  // The text comes from a cursor that this service has signed.
  return { joinedAt: new Date(Number(time)), accountId: accountId as AccountId };
}

const view = ({ accountId, name, email, role, joinedAt, lastActiveAt }: MemberRow, reader: Role): Member => ({
  ...{ accountId, name, role, joinedAt: joinedAt.toISOString() },
  ...(email !== undefined && hasRight(reader, 'members') ? { email } : {}),
  ...(lastActiveAt ? { lastActiveAt: lastActiveAt.toISOString() } : {}),
});
