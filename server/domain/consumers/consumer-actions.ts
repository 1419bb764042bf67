// The Actions API for consumers. Consumers read and decide the Actions that name them. They can sign with a passkey.
import type {
  ActionChallenge,
  ApplicationAction,
  ApplicationActionPage,
  DecideAction,
  EndUser,
} from '../../../contract/actions.ts';
import { PAGE_LIMIT_DEFAULT } from '../../../contract/common.ts';
import type { ListConsumerActions } from '../../../contract/consumers.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import type { ActionId, ApplicationId, ConsumerPasskeyId } from '../../kit/ids.ts';
import type { EndUserApprover, EndUsers } from '../actions/approver.ts';
import type { Decisions, Sender } from '../actions/decisions.ts';
import { byConsumer } from '../audit/by-caller.ts';
import { notFound } from '../faults.ts';
import type { ConsumerCaller } from '../identity/caller.ts';
import { type Cursors, type ListName, listPageOf } from '../identity/cursors.ts';
import { assertSteppedUp } from '../identity/step-up.ts';

export interface ConsumerActionsParts {
  readonly store: Pick<Store, 'consumers' | 'consumerPasskeys'>;
  readonly decisions: Pick<Decisions, 'readFor' | 'listFor' | 'challenge' | 'decide'>;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

export class ConsumerActions {
  readonly #parts: ConsumerActionsParts;

  constructor(parts: ConsumerActionsParts) {
    this.#parts = parts;
  }

  async list(
    caller: ConsumerCaller,
    { status, limit = PAGE_LIMIT_DEFAULT, cursor }: ListConsumerActions,
  ): Promise<ApplicationActionPage> {
    const { decisions, cursors } = this.#parts;
    const name: ListName = { list: 'consumer_actions', owner: caller.consumerId };
    const beforeOption = cursor === undefined ? {} : { before: cursors.read<ActionId>(name, cursor) };
    const statesOption = status === undefined ? {} : { states: [status] };
    const foundActions = await decisions.listFor(await this.#approver(caller), {
      ...statesOption,
      ...beforeOption,
      limit: limit + 1,
    });
    const rows = foundActions.map(action => ({ id: action.jobId, action }));
    return listPageOf(
      rows,
      limit,
      ({ action }) => action,
      id => cursors.after(name, id),
    );
  }

  async read(caller: ConsumerCaller, jobId: string): Promise<ApplicationAction> {
    return this.#parts.decisions.readFor(await this.#approver(caller), jobId);
  }

  async challenge(caller: ConsumerCaller, jobId: string, origin: URL): Promise<ActionChallenge> {
    return this.#parts.decisions.challenge(await this.#approver(caller), jobId, origin);
  }

  async decide(
    caller: ConsumerCaller,
    jobId: string,
    decision: DecideAction,
    sender: Sender,
  ): Promise<ApplicationAction> {
    return this.#parts.decisions.decide(await this.#approver(caller), jobId, decision, sender);
  }

  async #approver(caller: ConsumerCaller): Promise<EndUserApprover> {
    const { store, clock } = this.#parts;
    const { applicationId, consumerId, via } = caller;
    const names = await store.consumers.namesOf(applicationId, consumerId);
    const [endUser] = names;
    if (!endUser) throw notFound('Consumer', consumerId);
    const { applicationId: _, ...source } = byConsumer(caller);
    return {
      ...{ kind: 'end_user', applicationId, endUser, names },
      ...{ acr: via.acr, authTime: via.authTime, source },
      assertSteppedUp: () => assertSteppedUp(caller, clock.now()),
      passkeys: {
        list: () => store.consumerPasskeys.list(consumerId),
        // The id comes from the list above.
        recordUse: (id, counter) => store.consumerPasskeys.recordUse(id as ConsumerPasskeyId, counter, clock.now()),
      },
    };
  }
}

/** Checks whether the end user whom an agent names as the approver of an Action is a consumer of the application. */
export const endUsersIn = ({ consumers }: Pick<Store, 'consumers'>): EndUsers => ({
  canDecide: async (application: ApplicationId, { providerId, subject }: EndUser) =>
    (await consumers.bySubject(application, providerId, subject)) !== undefined,
});
