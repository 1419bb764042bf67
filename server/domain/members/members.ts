// Members of applications: list, change and remove. Decided while the application is locked, by membership-rules.ts.
import { PAGE_LIMIT_DEFAULT, type PageQuery } from '../../../contract/common.ts';
import type { ChangeMember, Member, MemberPage } from '../../../contract/members.ts';
import { hasRight, type Role } from '../../../contract/roles.ts';
import type { MemberRow, MembershipState } from '../../engines/store/rows/members.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import type { AccountId, ApplicationId } from '../../kit/ids.ts';
import type { Audit, Detail } from '../audit/audit.ts';
import { byCaller } from '../audit/by-caller.ts';
import { notFound } from '../faults.ts';
import type { Applications } from '../identity/applications.ts';
import type { AccountCaller, HumanCaller } from '../identity/caller.ts';
import { type Cursors, type ListName, pageOf } from '../identity/cursors.ts';
import { assertSteppedUp } from '../identity/step-up.ts';
import { assertMayChange, givableBy } from './membership-rules.ts';

export interface MembersParts {
  readonly store: Pick<Store, 'members'>;
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
    const before = cursor === undefined ? {} : { before: positionIn(cursors.read<string>(name, cursor)) };
    const rows = await store.members.list(id, { limit: limit + 1, ...before });
    return pageOf(
      rows.map(row => ({ ...row, id: positionOf(row) })),
      limit,
      row => view(row, role),
      last => cursors.after(name, last),
    );
  }

  async change(caller: HumanCaller, appId: string, accountId: string, { role }: ChangeMember): Promise<Member> {
    const { store, applications } = this.#parts;
    const { id, role: own } = await applications.require(caller, appId, 'members');
    const account = accountId as AccountId; // Validated as the format of an id; looked for among the members.
    const { member } = await this.#apply(caller, id, account, role);
    const row = await store.members.get(id, account);
    if (!row) throw notFound('Member', accountId);
    if (member !== role) await this.#record('member.role_changed', caller, id, account, { from: member, to: role });
    return view(row, own);
  }

  /** Removes a member, or the caller. */
  async remove(caller: HumanCaller, appId: string, accountId: string): Promise<void> {
    const isOwn = accountId === caller.accountId;
    const { id } = await this.#parts.applications.require(caller, appId, isOwn ? 'read' : 'members');
    const account = accountId as AccountId; // As above.
    const { member } = await this.#apply(caller, id, account, undefined);
    await this.#record(isOwn ? 'member.left' : 'member.removed', caller, id, account, { role: member });
  }

  /** Returns the role that the member had. */
  async #apply(
    caller: HumanCaller,
    application: ApplicationId,
    account: AccountId,
    role: Role | undefined,
  ): Promise<{ member: Role }> {
    const { store, clock, audit } = this.#parts;
    const now = clock.now();
    const had: { state?: MembershipState } = {};
    const wish = role === undefined ? {} : { role };
    const isOwn = account === caller.accountId;
    const revoked = await store.members.change(application, {
      ...{ by: caller.accountId, account, ...wish, mayInviteTo: givableBy(role), now },
      decide: state => {
        had.state = state;
        assertMayChange(state, { account, ...wish, isOwn, assertSteppedUp: () => assertSteppedUp(caller, now) });
      },
    });
    for (const invitation of revoked)
      await audit.record({
        ...byCaller(caller),
        ...{ action: 'invitation.revoked', applicationId: application, outcome: 'success' },
        ...{ target: { kind: 'invitation', id: invitation }, details: { reason: 'inviter_lost_right' } },
      });
    const { member } = had.state ?? {};
    if (!member) throw notFound('Member', account);
    return { member };
  }

  #record(
    action: MemberAction,
    caller: HumanCaller,
    applicationId: ApplicationId,
    account: AccountId,
    details: Readonly<Record<string, Detail>>,
  ): Promise<void> {
    const target = { kind: 'account', id: account };
    return this.#parts.audit.record({
      ...byCaller(caller),
      ...{ action, applicationId, target, outcome: 'success', details },
    });
  }
}

/** Members have no ids of their own: a list goes on after the time and the account. */
const positionOf = ({ joinedAt, accountId }: MemberRow): string => `${joinedAt.getTime()}/${accountId}`;

function positionIn(text: string): Pick<MemberRow, 'joinedAt' | 'accountId'> {
  const [time = '', accountId = ''] = text.split('/');
  return { joinedAt: new Date(Number(time)), accountId: accountId as AccountId }; // From a cursor that we have signed.
}

const view = ({ accountId, name, email, role, joinedAt, lastActiveAt }: MemberRow, reader: Role): Member => ({
  ...{ accountId, name, role, joinedAt: joinedAt.toISOString() },
  ...(email !== undefined && hasRight(reader, 'members') ? { email } : {}),
  ...(lastActiveAt ? { lastActiveAt: lastActiveAt.toISOString() } : {}),
});
