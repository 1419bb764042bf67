// The inbox of a person: the requests that wait for the person in all applications of which they are a member, and the
// settings for e-mails about these requests.
import { createHash } from 'node:crypto';
import type {
  ChangeNotifications,
  InboxQuery,
  Inbox as InboxView,
  Notifications as NotificationsView,
} from '../../../contract/inbox.ts';
import { hasRight, type Right, ROLES } from '../../../contract/roles.ts';
import type { Role } from '../../engines/store/rows/accounts.ts';
import type { InboxCount, InboxRoles } from '../../engines/store/rows/inbox.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import type { AccountId, ApplicationId } from '../../kit/ids.ts';
import type { ChangeFollower, FollowedValue } from '../change-follower.ts';
import { invalidRequest } from '../faults.ts';
import type { HumanCaller } from '../identity/caller.ts';

/**
 * Polling interval. Most changes are announced. Polling detects changes of a member's role, and changes whose
 * announcement was lost.
 */
const POLL_INTERVAL_MS = 15_000;
const STATE_CHARACTERS = 22;

const rolesWith = (right: Right): readonly Role[] => ROLES.filter(role => hasRight(role, right));

/** The roles that may decide Actions and claim hand-offs, according to `contract/roles.ts`. */
export const INBOX_ROLES: InboxRoles = {
  member: rolesWith('approveActions'),
  owner: rolesWith('approveAsOwner'),
  handoff: rolesWith('handoffs'),
};

export interface InboxParts {
  readonly store: Pick<Store, 'inbox' | 'accounts'>;
  readonly changeFollower: ChangeFollower;
  readonly clock: Clock;
}

export class Inbox {
  readonly #parts: InboxParts;

  constructor(parts: InboxParts) {
    this.#parts = parts;
  }

  async read({ accountId }: HumanCaller, { wait = 0, since }: InboxQuery, signal: AbortSignal): Promise<InboxView> {
    const { changeFollower } = this.#parts;
    const firstView = await this.#readCounts(accountId);
    if (wait === 0) return firstView;
    const knownState = since ?? firstView.state;
    const ownIds = new Set(await this.#applicationsOf(accountId));
    const followedValue: FollowedValue<InboxView> = {
      caller: accountId,
      // A string that is not an application id is never in the set, so the cast is safe.
      concerns: application => ownIds.has(application as ApplicationId),
      read: () => this.#readCounts(accountId),
      isChanged: ({ state }) => state !== knownState,
      pollMs: POLL_INTERVAL_MS,
    };
    return changeFollower.awaitChange(firstView, followedValue, wait, signal);
  }

  async readNotifications({ accountId }: HumanCaller): Promise<NotificationsView> {
    const { inbox, accounts } = this.#parts.store;
    const [{ mails, mutedApplications }, account, applications] = await Promise.all([
      inbox.settings(accountId),
      accounts.get(accountId),
      this.#applicationsOf(accountId),
    ]);
    const ownIds = new Set(applications);
    const isReachable = account?.email !== undefined && account.emailVerifiedAt !== undefined;
    return {
      mails,
      mutedApplications: mutedApplications.filter(id => ownIds.has(id)), // Omits applications that the person has left.
      ...(isReachable ? { email: account.email } : {}),
    };
  }

  async changeNotifications(caller: HumanCaller, change: ChangeNotifications): Promise<NotificationsView> {
    const { mails, mutedApplications } = change;
    const ownIds = new Set(await this.#applicationsOf(caller.accountId));
    const mutedIds = mutedApplications?.map((text, index) => {
      const id = text.toLowerCase() as ApplicationId; // Checked against `ownIds`.
      if (ownIds.has(id)) return id;
      throw invalidRequest([
        { path: `mutedApplications.${index}`, message: 'is not the id of one of your applications' },
      ]);
    });
    await this.#parts.store.inbox.changeSettings(caller.accountId, {
      ...(mails === undefined ? {} : { mails }),
      ...(mutedIds ? { mutedApplications: mutedIds } : {}),
    });
    return this.readNotifications(caller);
  }

  async #readCounts(account: AccountId): Promise<InboxView> {
    const { store, clock } = this.#parts;
    const counts = await store.inbox.counts(account, INBOX_ROLES, clock.now());
    return {
      state: stateOf(counts),
      applications: counts.map(({ mark: _, ...count }) => count),
    };
  }

  #applicationsOf(account: AccountId): Promise<readonly ApplicationId[]> {
    return this.#parts.store.inbox.applicationsOf(account);
  }
}

const stateOf = (counts: readonly InboxCount[]): string =>
  createHash('sha256')
    .update(counts.map(({ applicationId, mark }) => `${applicationId} ${mark}`).join(' '))
    .digest('base64url')
    .slice(0, STATE_CHARACTERS);
