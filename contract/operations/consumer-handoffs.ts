// Commands with which consumers list, read and claim the hand-offs that name them.
import { ConsumerHandoff, ConsumerHandoffPage, HandoffRef, ListConsumerHandoffs } from '../consumer-handoffs.ts';
import { ClaimedHandoff } from '../handoffs.ts';
import type { Operation } from '../operation.ts';
import { COMMANDS_PATH, CONSUMER_COMMAND } from './of-consumer.ts';

const ID = '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d11';

export const CONSUMER_HANDOFF_OPERATIONS = {
  listConsumerHandoffs: {
    ...CONSUMER_COMMAND,
    path: `${COMMANDS_PATH}/handoffs.list`,
    summary: 'List the hand-offs of a consumer',
    description: 'Returns the hand-offs that name the consumer, newest first.',
    isWrite: false,
    body: ListConsumerHandoffs,
    bodyExample: { status: 'requested' },
    responses: { 200: { description: 'A page of hand-offs.', schema: ConsumerHandoffPage } },
    errors: ['not_found'],
  },
  readConsumerHandoff: {
    ...CONSUMER_COMMAND,
    path: `${COMMANDS_PATH}/handoffs.get`,
    summary: 'Read a hand-off of a consumer',
    description:
      'Returns who is asking for the hand-off, what they are asking for, and the page concerned. Used before the consumer takes control.',
    isWrite: false,
    body: HandoffRef,
    bodyExample: { id: ID },
    responses: { 200: { description: 'The hand-off.', schema: ConsumerHandoff } },
    errors: ['not_found'],
  },
  claimConsumerHandoff: {
    ...CONSUMER_COMMAND,
    path: `${COMMANDS_PATH}/handoffs.claim`,
    summary: 'Claim a hand-off as the consumer whom it names',
    description:
      'Gives the consumer control of the session, with a lease token for `renew`, `complete` and `cancel`. Only one of several concurrent requests gets control. The lease ends when this session of the consumer ends. For a payment, the consumer must have proved their identity recently.',
    isWrite: true,
    body: HandoffRef,
    bodyExample: { id: ID },
    responses: { 200: { description: 'The lease.', schema: ClaimedHandoff } },
    errors: [
      'not_found',
      'insufficient_user_authentication',
      'handoff_claimed',
      'already_decided',
      'session_not_running',
    ],
  },
} as const satisfies Readonly<Record<string, Operation>>;
