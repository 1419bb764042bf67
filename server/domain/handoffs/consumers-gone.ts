// Cancels hand-offs whose consumer is deleted, and takes back control from consumers after their consumer session has
// ended. Only the host that owns a session changes the lease of that session.
import type { Store } from '../../engines/store/store.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Lease } from './lease.ts';
import { BY_SERVICE } from './lease-parts.ts';

export interface DeletedConsumersParts {
  readonly store: Pick<Store, 'handoffs'>;
  readonly leaseOf: (session: SessionId) => Pick<Lease, 'cancel' | 'takeBack'> | undefined;
}

export async function withdrawFromConsumers({ store, leaseOf }: DeletedConsumersParts): Promise<number> {
  let withdrawnCount = 0;
  for (const { row, isDeleted } of await store.handoffs.listWithoutConsumer()) {
    const lease = leaseOf(row.sessionId);
    if (!lease) continue;
    await (isDeleted ? lease.cancel(row.id, BY_SERVICE, { kind: 'service' }) : lease.takeBack(row.fence));
    withdrawnCount += 1;
  }
  return withdrawnCount;
}
