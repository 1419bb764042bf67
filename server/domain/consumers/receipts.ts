// The receipts that name a consumer. They are for calls that agents made on behalf of the consumer, and for reads and
// writes of the consumer's memory by agents.
import { PAGE_LIMIT_DEFAULT } from '../../../contract/common.ts';
import type { ConsumerReceipt, ConsumerReceiptPage, ListConsumerReceipts } from '../../../contract/consumer-data.ts';
import type { InvocationRow } from '../../engines/store/rows/invocations.ts';
import type { Store } from '../../engines/store/store.ts';
import { type InvocationId, isUuid } from '../../kit/ids.ts';
import type { Catalogue } from '../configured-operations/callable.ts';
import { notFound } from '../faults.ts';
import type { ConsumerCaller } from '../identity/caller.ts';
import { type Cursors, type ListName, listPageOf } from '../identity/cursors.ts';

export interface ConsumerReceiptsParts {
  readonly store: Pick<Store, 'invocations' | 'keys'>;
  readonly catalogue: Pick<Catalogue, 'findRevision'>;
  readonly cursors: Cursors;
}

export class ConsumerReceipts {
  readonly #parts: ConsumerReceiptsParts;

  constructor(parts: ConsumerReceiptsParts) {
    this.#parts = parts;
  }

  async list(
    { consumerId }: ConsumerCaller,
    { limit = PAGE_LIMIT_DEFAULT, cursor }: ListConsumerReceipts,
  ): Promise<ConsumerReceiptPage> {
    const { store, cursors } = this.#parts;
    const name: ListName = { list: 'consumer_receipts', owner: consumerId };
    const beforeOption = cursor === undefined ? {} : { before: cursors.read<InvocationId>(name, cursor) };
    const rows = await store.invocations.ofConsumer(consumerId, { ...beforeOption, limit: limit + 1 });
    const { data, ...pagination } = listPageOf(
      rows,
      limit,
      row => row,
      id => cursors.after(name, id),
    );
    return { data: await Promise.all(data.map(row => this.#view(row))), ...pagination };
  }

  async read({ applicationId, consumerId }: ConsumerCaller, id: string): Promise<ConsumerReceipt> {
    const row = isUuid(id) ? await this.#parts.store.invocations.get(applicationId, id as InvocationId) : undefined;
    if (row?.consumerId !== consumerId || row.receipt === undefined) throw notFound('Receipt', id);
    return { ...(await this.#view(row)), receipt: row.receipt };
  }

  async #view(row: InvocationRow): Promise<ConsumerReceiptPage['data'][number]> {
    const { store, catalogue } = this.#parts;
    const { id, receiptId = '', applicationId, operationId, operationRevision, state, keyId, jobId } = row;
    const [operation, key] = await Promise.all([
      catalogue.findRevision(applicationId, operationId, operationRevision),
      store.keys.get(applicationId, keyId),
    ]);
    if (state === 'accepted' || state === 'dispatched')
      throw new Error(`the invocation ${id} has a receipt but has not ended`);
    return {
      ...{ id, receiptId, operationId, operationTitle: operation?.title ?? operationId, status: state },
      agent: { name: key?.name ?? 'an agent key that no longer exists' },
      ...(jobId === undefined ? {} : { jobId }),
      ...(row.startedAt ? { startedAt: row.startedAt.toISOString() } : {}),
      endedAt: (row.endedAt ?? row.createdAt).toISOString(),
    };
  }
}
