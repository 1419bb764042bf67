// The hand-offs API for consumers. Consumers read and claim the hand-offs that name them.
import { PAGE_LIMIT_DEFAULT } from '../../../contract/common.ts';
import type {
  ConsumerHandoff,
  ConsumerHandoffPage,
  ListConsumerHandoffs,
} from '../../../contract/consumer-handoffs.ts';
import { type ClaimedHandoff, INSTRUCTIONS_SHOWN_CHARACTERS_MAX } from '../../../contract/handoffs.ts';
import type { HandoffRow } from '../../engines/store/rows/handoffs.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { boundedText } from '../../kit/foreign.ts';
import { type HandoffId, isUuid, type KeyId } from '../../kit/ids.ts';
import { byConsumer } from '../audit/by-caller.ts';
import { notFound } from '../faults.ts';
import type { Handoffs } from '../handoffs/handoffs.ts';
import type { ConsumerCaller } from '../identity/caller.ts';
import { type Cursors, type ListName, listPageOf } from '../identity/cursors.ts';
import { assertSteppedUp } from '../identity/step-up.ts';

export interface ConsumerHandoffsParts {
  readonly store: Pick<Store, 'handoffs' | 'keys'>;
  readonly handoffs: Pick<Handoffs, 'claimFor' | 'currentPageOrigin' | 'listedPageOrigin'>;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

type PageOrigin = Pick<ConsumerHandoff, 'pageOrigin'>;

export class ConsumerHandoffs {
  readonly #parts: ConsumerHandoffsParts;

  constructor(parts: ConsumerHandoffsParts) {
    this.#parts = parts;
  }

  async list(
    { consumerId }: ConsumerCaller,
    { status, limit = PAGE_LIMIT_DEFAULT, cursor }: ListConsumerHandoffs,
  ): Promise<ConsumerHandoffPage> {
    const { store, handoffs, cursors } = this.#parts;
    const name: ListName = { list: `consumer_handoffs ${status ?? ''}`, owner: consumerId };
    const beforeOption = cursor === undefined ? {} : { before: cursors.read<HandoffId>(name, cursor) };
    const listOptions = { ...beforeOption, ...(status === undefined ? {} : { status }), limit: limit + 1 };
    const { data, ...pagination } = listPageOf(
      await store.handoffs.ofConsumer(consumerId, listOptions),
      limit,
      row => row,
      id => cursors.after(name, id),
    );
    return { data: await Promise.all(data.map(row => this.#view(row, handoffs.listedPageOrigin(row)))), ...pagination };
  }

  async read(caller: ConsumerCaller, id: string): Promise<ConsumerHandoff> {
    const row = await this.#requireOwn(caller, id);
    return this.#view(row, await this.#parts.handoffs.currentPageOrigin(row));
  }

  async claim(caller: ConsumerCaller, id: string): Promise<ClaimedHandoff> {
    const { handoffs, clock } = this.#parts;
    const row = await this.#requireOwn(caller, id);
    if (row.reason === 'payment') assertSteppedUp(caller, clock.now());
    const { applicationId: _, ...source } = byConsumer(caller);
    return handoffs.claimFor(row, { kind: 'consumer', id: caller.consumerId, session: caller.via.id, source });
  }

  async #requireOwn({ applicationId, consumerId }: ConsumerCaller, id: string): Promise<HandoffRow> {
    const row = isUuid(id) ? await this.#parts.store.handoffs.get(applicationId, id as HandoffId) : undefined;
    if (row?.consumerId !== consumerId) throw notFound('Hand-off', id);
    return row;
  }

  async #view(row: HandoffRow, page: PageOrigin): Promise<ConsumerHandoff> {
    const { id, status, reason, record, allowedOrigins, leaseExpiresAt, endedAt } = row;
    return {
      ...{ id, status, reason, record, instructions: boundedText(row.instructions, INSTRUCTIONS_SHOWN_CHARACTERS_MAX) },
      agent: { name: await this.#readAgentName(row) },
      ...(allowedOrigins ? { allowedOrigins: [...allowedOrigins] } : {}),
      ...page,
      ...{ createdAt: row.createdAt.toISOString(), expiresAt: row.expiresAt.toISOString() },
      ...(leaseExpiresAt ? { leaseExpiresAt: leaseExpiresAt.toISOString() } : {}),
      ...(endedAt ? { endedAt: endedAt.toISOString() } : {}),
    };
  }

  /**
   * Returns the name of the agent key that requested the hand-off. If no agent key requested it, returns the name of
   * the key that created the session.
   */
  async #readAgentName({ applicationId, requesterKind, requesterId, keyId }: HandoffRow): Promise<string> {
    // For an agent key, `requesterId` is the id of the key.
    const id = requesterKind === 'agent_key' ? (requesterId as KeyId | undefined) : keyId;
    const key = id && (await this.#parts.store.keys.get(applicationId, id));
    return key?.name ?? 'an agent key that no longer exists';
  }
}
