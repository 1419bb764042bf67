// Invitations to applications: create, list, revoke and accept. The secret of a link is stored only as a hash.
import { PAGE_LIMIT_DEFAULT, type PageQuery } from '../../../contract/common.ts';
import {
  type AcceptedInvitation,
  type AcceptInvitation,
  type CreateInvitation,
  INVITATION_LIFETIME_SECONDS_DEFAULT,
  INVITATIONS_PER_HOUR_MAX,
  type Invitation,
  type InvitationPage,
  type IssuedInvitation,
  PENDING_INVITATIONS_MAX,
} from '../../../contract/invitations.ts';
import { isAtLeast, REQUIRED_ROLE, type Role } from '../../../contract/roles.ts';
import type { InvitationRow, InvitingState } from '../../engines/store/rows/invitations.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { type ApplicationId, type InvitationId, isUuid, newId } from '../../kit/ids.ts';
import type { Task } from '../../kit/task.ts';
import type { Audit, AuditTransaction, Detail } from '../audit/audit.ts';
import { byCaller } from '../audit/by-caller.ts';
import { fault, limitReached, notFound, REVOKE_ADVICE, roleMissing } from '../faults.ts';
import type { Applications } from '../identity/applications.ts';
import type { AccountCaller, HumanCaller } from '../identity/caller.ts';
import { mint, recognizeSecret } from '../identity/credentials.ts';
import { type Cursors, type ListName, listPageOf } from '../identity/cursors.ts';
import { assertSteppedUp } from '../identity/step-up.ts';
import type { SharedTallies, SharedTally } from '../limits/shared-tally.ts';
import type { Mail } from '../mail/mail.ts';
import { cleanEmail } from '../people/email.ts';
import { acceptUrlOf, invitationMail } from './invitation-mail.ts';
import { mayAssign } from './membership-rules.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** An invitation that has ended is listed for this long, then removed. */
const LISTED_AFTER_END_MS = 90 * DAY_MS;
/** Limits how often an account may fail to accept an invitation. */
const FAILURES_LIMIT = {
  name: 'invitations.account',
  what: 'failed attempts to accept an invitation',
  max: 20,
  withinMs: 10 * 60_000,
  scope: 'account',
} as const;

type InvitationAction = `invitation.${'created' | 'revoked' | 'accepted' | 'refused'}`;

export interface InvitationsParts {
  readonly store: Pick<Store, 'invitations' | 'accounts' | 'atomically'>;
  readonly clock: Clock;
  readonly cursors: Cursors;
  readonly applications: Pick<Applications, 'require'>;
  readonly audit: Pick<Audit, 'record'>;
  readonly mail: Pick<Mail, 'queue'>;
  readonly publicUrl: string;
  readonly tallies: Pick<SharedTallies, 'of'>;
}

export class Invitations {
  readonly #parts: InvitationsParts;
  readonly #failureTally: SharedTally;
  readonly tasks: readonly Task[];

  constructor(parts: InvitationsParts) {
    this.#parts = parts;
    this.#failureTally = parts.tallies.of(FAILURES_LIMIT);
    this.tasks = [{ name: 'forget_invitations', everyMs: HOUR_MS, run: () => this.#forget() }];
  }

  async create(caller: AccountCaller, appId: string, request: CreateInvitation): Promise<IssuedInvitation> {
    const { store, clock, applications, mail, publicUrl } = this.#parts;
    const { email: requestedEmail, role, expiresIn = INVITATION_LIFETIME_SECONDS_DEFAULT } = request;
    const { id: applicationId, name } = await applications.require(
      caller,
      appId,
      role === 'owner' ? 'owners' : 'members',
    );
    const now = clock.now();
    if (role === 'owner') assertSteppedUp(caller, now);
    const { hash, text } = mint('invitation');
    const row: InvitationRow = {
      ...{ id: newId<InvitationId>(now), applicationId, email: cleanEmail(requestedEmail), role, hash },
      ...{ invitedBy: caller.accountId, createdAt: now, expiresAt: addMs(now, expiresIn * 1000) },
    };
    await store.atomically(async trx => {
      await trx.invitations.insert(row, addMs(now, -HOUR_MS), state => assertMayInvite(state, row));
      await this.#record('invitation.created', caller, row, { role }, trx);
    });
    const inviter = await store.accounts.get(caller.accountId);
    const acceptUrl = acceptUrlOf(publicUrl, text);
    const newMail = invitationMail({ row, acceptUrl, application: name, inviter: inviter?.name ?? 'A member' });
    await mail.queue(newMail).catch(async error => {
      await this.#revoke(caller, row, { reason: 'mail_not_written' });
      throw error;
    });
    return { ...this.#view(row), acceptUrl };
  }

  async list(
    caller: AccountCaller,
    appId: string,
    { limit = PAGE_LIMIT_DEFAULT, cursor }: PageQuery,
  ): Promise<InvitationPage> {
    const { store, clock, cursors, applications } = this.#parts;
    const { id } = await applications.require(caller, appId, 'members');
    const name: ListName = { list: 'invitations', owner: id };
    const beforeOption = cursor === undefined ? {} : { before: cursors.read<InvitationId>(name, cursor) };
    const endedSince = addMs(clock.now(), -LISTED_AFTER_END_MS);
    const rows = await store.invitations.list(id, endedSince, { limit: limit + 1, ...beforeOption });
    return listPageOf(
      rows,
      limit,
      row => this.#view(row),
      last => cursors.after(name, last),
    );
  }

  async revoke(caller: AccountCaller, appId: string, invitationId: string): Promise<void> {
    const { id: applicationId } = await this.#parts.applications.require(caller, appId, 'members');
    const id = invitationId as InvitationId; // Checked by isUuid in the next line.
    const isRevoked = isUuid(invitationId) && (await this.#revoke(caller, { id, applicationId }));
    if (!isRevoked) throw notFound('Invitation', invitationId);
  }

  #revoke(
    caller: AccountCaller,
    invitation: Pick<InvitationRow, 'id' | 'applicationId'>,
    details: Readonly<Record<string, Detail>> = {},
  ): Promise<boolean> {
    const { store, clock } = this.#parts;
    return store.atomically(async trx => {
      const isRevoked = await trx.invitations.revoke(invitation.applicationId, invitation.id, clock.now());
      if (isRevoked) await this.#record('invitation.revoked', caller, invitation, details, trx);
      return isRevoked;
    });
  }

  /**
   * Accepts an invitation. If the verified address of the account was not invited, the invitation is treated as not
   * found.
   */
  async accept(caller: HumanCaller, { token }: AcceptInvitation): Promise<AcceptedInvitation> {
    const { store } = this.#parts;
    const undoAttempt = await this.#failureTally.take(caller.accountId);
    const row = await this.#find(token);
    const account = await store.accounts.get(caller.accountId);
    if (!row || !account) throw invitationNotFound();
    const isInvitee = account.email === row.email && account.emailVerifiedAt !== undefined;
    const role = isInvitee ? await this.#accept(caller, row) : undefined;
    if (!role) {
      const reason = isInvitee ? 'not_pending' : account.email === row.email ? 'email_not_verified' : 'other_email';
      await this.#record('invitation.refused', caller, row, { reason });
      throw invitationNotFound();
    }
    await undoAttempt();
    return { applicationId: row.applicationId, role };
  }

  /** Accepts the invitation and returns the role. Undefined if the invitation is no longer pending. */
  #accept(caller: HumanCaller, row: InvitationRow): Promise<Role | undefined> {
    const { store, clock } = this.#parts;
    return store.atomically(async trx => {
      const role = await trx.invitations.accept(row, caller.accountId, clock.now(), currentRole =>
        currentRole && isAtLeast(currentRole, row.role) ? currentRole : row.role,
      );
      if (role) await this.#record('invitation.accepted', caller, row, { role }, trx);
      return role;
    });
  }

  /**
   * Returns the address that a pending invitation was sent to. A person with its secret may register with this address.
   */
  async invitedEmail(secret: string): Promise<string | undefined> {
    const row = await this.#find(secret);
    return row && this.#statusOf(row) === 'pending' ? row.email : undefined;
  }

  async #find(secret: string): Promise<InvitationRow | undefined> {
    const hash = recognizeSecret('invitation', secret);
    return hash && this.#parts.store.invitations.byHash(hash);
  }

  #statusOf({ acceptedAt, revokedAt, expiresAt }: InvitationRow): Invitation['status'] {
    if (acceptedAt) return 'accepted';
    if (revokedAt) return 'revoked';
    return expiresAt <= this.#parts.clock.now() ? 'expired' : 'pending';
  }

  #view(row: InvitationRow): Invitation {
    const { id, email, role, invitedBy, expiresAt, createdAt } = row;
    const status = this.#statusOf(row);
    const endedAt = row.acceptedAt ?? row.revokedAt ?? (status === 'expired' ? expiresAt : undefined);
    return {
      ...{ id, email, role, status, invitedBy },
      ...(endedAt ? { endedAt: endedAt.toISOString() } : {}),
      ...{ expiresAt: expiresAt.toISOString(), createdAt: createdAt.toISOString() },
    };
  }

  #record(
    action: InvitationAction,
    caller: AccountCaller,
    { id, applicationId }: { readonly id: InvitationId; readonly applicationId: ApplicationId },
    details: Readonly<Record<string, Detail>>,
    trx?: AuditTransaction,
  ): Promise<void> {
    const outcome = action === 'invitation.refused' ? 'refused' : 'success';
    const target = { kind: 'invitation', id };
    return this.#parts.audit.record({ ...byCaller(caller), action, applicationId, target, outcome, details }, trx);
  }

  async #forget(): Promise<Record<string, number>> {
    const { store, clock } = this.#parts;
    return { removed: await store.invitations.removeEnded(addMs(clock.now(), -LISTED_AFTER_END_MS)) };
  }
}

/**
 * Throws if the invitation is not allowed. Called while the application is locked, so that a member who has lost the
 * right in the meantime cannot invite.
 */
function assertMayInvite({ role, pending, recent }: InvitingState, row: InvitationRow): void {
  if (!role) throw notFound('Application', row.applicationId);
  if (!mayAssign(role, row.role)) throw roleMissing(REQUIRED_ROLE[row.role === 'owner' ? 'owners' : 'members']);
  if (pending >= PENDING_INVITATIONS_MAX)
    throw limitReached('pending invitations in this application', PENDING_INVITATIONS_MAX, REVOKE_ADVICE);
  const [oldest] = recent;
  if (oldest && recent.length >= INVITATIONS_PER_HOUR_MAX) {
    const waitMs = oldest.getTime() + HOUR_MS - row.createdAt.getTime();
    throw tooManyInvitations(Math.max(1, Math.ceil(waitMs / 1000)));
  }
}

const tooManyInvitations = (retryAfterSeconds: number): Error =>
  fault(
    'rate_limited',
    `This application has sent ${INVITATIONS_PER_HOUR_MAX} invitations within the last hour, which is the limit.`,
    {
      advice: `Wait ${retryAfterSeconds} s.`,
      details: {
        ...{ limit: INVITATIONS_PER_HOUR_MAX, used: INVITATIONS_PER_HOUR_MAX },
        ...{ scope: 'application', retryAfterSeconds },
      },
    },
  );

const invitationNotFound = (): Error =>
  fault(
    'not_found',
    'This invitation does not exist, is no longer valid, or is not for the verified address of this account.',
    {
      advice: 'Sign in with the invited address, verify the address, or ask for another invitation.',
    },
  );
