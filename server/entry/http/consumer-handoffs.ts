// HTTP handlers for the hand-off commands of consumers.
import type { ConsumerHandoffs } from '../../domain/consumers/consumer-handoffs.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';

export interface ConsumerHandoffParts {
  readonly handoffs: Pick<ConsumerHandoffs, 'list' | 'read' | 'claim'>;
}

export const consumerHandoffHandlers = ({ handoffs }: ConsumerHandoffParts) => ({
  listConsumerHandoffs: async ({ caller, body }: In<'listConsumerHandoffs'>): Promise<Answer> =>
    answer(await handoffs.list(caller, body)),

  readConsumerHandoff: async ({ caller, body }: In<'readConsumerHandoff'>): Promise<Answer> =>
    answer(await handoffs.read(caller, body.id)),

  claimConsumerHandoff: async ({ caller, body }: In<'claimConsumerHandoff'>): Promise<Answer> =>
    answer(await handoffs.claim(caller, body.id)),
});
