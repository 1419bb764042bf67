// The Actions API for members: lists and reads the Actions of an application, and lets a member decide them. Creates
// the Approver for a member.
import type {
  ActionChallenge,
  ActionListQuery,
  ApplicationAction,
  ApplicationActionPage,
  DecideAction,
} from '../../../contract/actions.ts';
import { PAGE_LIMIT_DEFAULT } from '../../../contract/common.ts';
import { hasRight } from '../../../contract/roles.ts';
import type { ActionRow } from '../../engines/store/rows/actions.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { type ActionId, isUuid, type PasskeyId } from '../../kit/ids.ts';
import { byCaller } from '../audit/by-caller.ts';
import { notFound } from '../faults.ts';
import type { Applications, MemberApplication } from '../identity/applications.ts';
import type { AccountCaller, HumanCaller } from '../identity/caller.ts';
import { type Cursors, type ListName, listPageOf } from '../identity/cursors.ts';
import { assertSteppedUp } from '../identity/step-up.ts';
import type { MemberApprover } from './approver.ts';
import type { Decisions, Sender } from './decisions.ts';

/**
 * The scope that a token needs to read inputs, in addition to a sufficient role of its account. An input may contain
 * confidential data.
 */
const CONTENT_SCOPE = 'applications:write';

export interface ApplicationActionsParts {
  readonly store: Pick<Store, 'actions' | 'passkeys'>;
  readonly applications: Pick<Applications, 'require'>;
  readonly decisions: Decisions;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

export class ApplicationActions {
  readonly #parts: ApplicationActionsParts;

  constructor(parts: ApplicationActionsParts) {
    this.#parts = parts;
  }

  async list(caller: AccountCaller, appId: string, query: ActionListQuery): Promise<ApplicationActionPage> {
    const { store, applications, cursors } = this.#parts;
    const application = await applications.require(caller, appId, 'read');
    const { limit = PAGE_LIMIT_DEFAULT, cursor, status } = query;
    const name: ListName = { list: 'actions', owner: application.id };
    const rows = await store.actions.list(application.id, {
      limit: limit + 1,
      ...(status === undefined ? {} : { states: [status] }),
      ...(cursor === undefined ? {} : { before: cursors.read<ActionId>(name, cursor) }),
    });
    const listedActions = await Promise.all(
      rows.map(async row => ({ id: row.id, view: await this.#viewOf(caller, application, row) })),
    );
    return listPageOf(
      listedActions,
      limit,
      ({ view }) => view,
      last => cursors.after(name, last),
    );
  }

  async read(caller: AccountCaller, appId: string, jobId: string): Promise<ApplicationAction> {
    const application = await this.#parts.applications.require(caller, appId, 'read');
    const row = isUuid(jobId) ? await this.#parts.store.actions.get(application.id, jobId as ActionId) : undefined;
    if (!row) throw notFound('Action', jobId);
    return this.#viewOf(caller, application, row);
  }

  /**
   * Reads an Action for the approval page, whose address contains the id of the Action, but not that of the
   * application.
   */
  async readApproval(caller: HumanCaller, jobId: string): Promise<ApplicationAction> {
    const id = jobId as ActionId; // Checked by isUuid.
    const row = isUuid(jobId) ? await this.#parts.store.actions.forAccount(caller.accountId, id) : undefined;
    if (!row) throw notFound('Action', jobId);
    const application = await this.#parts.applications.require(caller, row.applicationId, 'read');
    if (!mayDecide(caller, application, row)) throw notFound('Action', jobId);
    return this.#viewOf(caller, application, row);
  }

  async challenge(caller: HumanCaller, appId: string, jobId: string, origin: URL): Promise<ActionChallenge> {
    return this.#parts.decisions.challenge(await this.#approver(caller, appId), jobId, origin);
  }

  async decide(
    caller: HumanCaller,
    appId: string,
    jobId: string,
    request: DecideAction,
    sender: Sender,
  ): Promise<ApplicationAction> {
    return this.#parts.decisions.decide(await this.#approver(caller, appId), jobId, request, sender);
  }

  async #approver(caller: HumanCaller, appId: string): Promise<MemberApprover> {
    const { applications, store, clock } = this.#parts;
    const { id: applicationId, role } = await applications.require(caller, appId, 'approveActions');
    const { accountId, via } = caller;
    return {
      ...{ kind: hasRight(role, 'approveAsOwner') ? 'owner' : 'member', id: accountId, applicationId },
      ...{ acr: via.acr, authTime: via.authTime, source: byCaller(caller) },
      assertSteppedUp: () => assertSteppedUp(caller, clock.now()),
      passkeys: {
        list: () => store.passkeys.list(accountId),
        // The id comes from `list`.
        recordUse: (id, counter) => store.passkeys.recordUse(id as PasskeyId, counter, clock.now()),
      },
    };
  }

  #viewOf(caller: AccountCaller, application: MemberApplication, row: ActionRow): Promise<ApplicationAction> {
    const maySeeContent =
      hasRight(application.role, 'invocationResults') &&
      (caller.via.kind === 'human_session' || caller.scopes.has(CONTENT_SCOPE));
    return this.#parts.decisions.viewFor(row, { maySeeContent, mayDecide: mayDecide(caller, application, row) });
  }
}

/** Whether the caller may decide the Action. Requires a signed-in person with a sufficient role. */
function mayDecide({ via }: AccountCaller, { role }: MemberApplication, { approver }: ActionRow): boolean {
  if (via.kind !== 'human_session' || approver === 'end_user') return false;
  return hasRight(role, approver === 'owner' ? 'approveAsOwner' : 'approveActions');
}
