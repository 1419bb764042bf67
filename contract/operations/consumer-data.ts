// Commands of consumers about what is theirs: memory, consents, receipts, sessions.
import {
  ConsumerDevices,
  ConsumerReceipt,
  ConsumerReceiptPage,
  EndDevice,
  ListConsumerReceipts,
  NameReceipt,
} from '../consumer-data.ts';
import {
  Consent,
  ConsentingAgent,
  Consents,
  DeletedMemory,
  DeleteMemory,
  GiveConsent,
  ListMemory,
  MemoryItem,
  MemoryPage,
  NameAgent,
  NameMemory,
  PutMemory,
  WithdrawConsent,
} from '../consumer-memory.ts';
import { ConsumerParams } from '../consumers.ts';
import type { Operation } from '../operation.ts';

const COMMANDS = '/v1/consumer/applications/{appId}/providers/{providerId}';
const ID = '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d11';
const OF_CONSUMER = {
  tag: 'Consumers',
  method: 'POST',
  credential: 'consumer',
  forOrigins: true,
  mount: 'native',
  unknownFields: 'refuse',
  params: ConsumerParams,
} as const;

export const CONSUMER_DATA_OPERATIONS = {
  // ---- memory
  listConsumerMemory: {
    ...OF_CONSUMER,
    path: `${COMMANDS}/memory.list`,
    summary: 'List the memory of a consumer',
    description: 'Returns what is remembered about the consumer, without the values, and who wrote it.',
    isWrite: false,
    body: ListMemory,
    bodyExample: { prefix: 'address.' },
    responses: { 200: { description: 'A page of items.', schema: MemoryPage } },
    errors: ['not_found'],
  },
  readConsumerMemory: {
    ...OF_CONSUMER,
    path: `${COMMANDS}/memory.get`,
    summary: 'Read an item of the memory',
    description: 'Returns an item with its value.',
    isWrite: false,
    body: NameMemory,
    bodyExample: { key: 'address.home' },
    responses: { 200: { description: 'The item.', schema: MemoryItem } },
    errors: ['not_found'],
  },
  writeConsumerMemory: {
    ...OF_CONSUMER,
    path: `${COMMANDS}/memory.put`,
    summary: 'Write an item of the memory',
    description:
      'Writes a value, with a new version. With `ifVersion` only if that is the version that stands. At most 1,000 items and 4 MiB.',
    isWrite: true,
    body: PutMemory,
    bodyExample: { key: 'address.home', value: { city: 'Vienna' }, ifVersion: 0 },
    responses: { 200: { description: 'The item.', schema: MemoryItem } },
    errors: ['not_found', 'revision_conflict', 'limit_reached'],
  },
  deleteConsumerMemory: {
    ...OF_CONSUMER,
    path: `${COMMANDS}/memory.delete`,
    summary: 'Delete items of the memory',
    description: 'Deletes one item, or all whose keys begin with `prefix`.',
    isWrite: true,
    body: DeleteMemory,
    bodyExample: { key: 'address.home' },
    responses: { 200: { description: 'Deleted.', schema: DeletedMemory } },
    errors: ['not_found'],
  },
  giveConsumerConsent: {
    ...OF_CONSUMER,
    path: `${COMMANDS}/memory.consent`,
    summary: 'Allow an agent to use the memory',
    description:
      'Lets an agent key, or all of the application, read items, or read and write them, until the consent ends or is withdrawn.',
    isWrite: true,
    body: GiveConsent,
    bodyExample: { keyId: ID, keys: ['address.*'], access: 'read' },
    responses: { 200: { description: 'The consent.', schema: Consent } },
    errors: ['not_found', 'limit_reached'],
  },
  listConsumerConsents: {
    ...OF_CONSUMER,
    path: `${COMMANDS}/memory.consents`,
    summary: 'List the consents of a consumer',
    description: 'Returns the consents that hold.',
    isWrite: false,
    responses: { 200: { description: 'The consents.', schema: Consents } },
    errors: ['not_found'],
  },
  withdrawConsumerConsent: {
    ...OF_CONSUMER,
    path: `${COMMANDS}/memory.withdraw`,
    summary: 'Withdraw a consent',
    description: 'Ends a consent. When this has answered, nothing more is read or written under it.',
    isWrite: true,
    body: WithdrawConsent,
    bodyExample: { id: ID },
    responses: { 200: { description: 'The consents that are left.', schema: Consents } },
    errors: ['not_found'],
  },
  readConsentingAgent: {
    ...OF_CONSUMER,
    path: `${COMMANDS}/memory.agent`,
    summary: 'Read the name of an agent key',
    description: 'For a page that asks the consumer for a consent.',
    isWrite: false,
    body: NameAgent,
    bodyExample: { keyId: ID },
    responses: { 200: { description: 'The agent key.', schema: ConsentingAgent } },
    errors: ['not_found'],
  },

  // ---- receipts
  listConsumerReceipts: {
    ...OF_CONSUMER,
    path: `${COMMANDS}/receipts.list`,
    summary: 'List the receipts of a consumer',
    description:
      'Returns what agents did that names the consumer: Actions for the consumer, and reads and writes of the memory.',
    isWrite: false,
    body: ListConsumerReceipts,
    bodyExample: { limit: 25 },
    responses: { 200: { description: 'A page of receipts.', schema: ConsumerReceiptPage } },
    errors: ['not_found'],
  },
  readConsumerReceipt: {
    ...OF_CONSUMER,
    path: `${COMMANDS}/receipts.get`,
    summary: 'Read a receipt of a consumer',
    description: 'Returns one with its signed form, which `berth receipts verify` checks.',
    isWrite: false,
    body: NameReceipt,
    bodyExample: { id: ID },
    responses: { 200: { description: 'The receipt.', schema: ConsumerReceipt } },
    errors: ['not_found'],
  },

  // ---- sessions
  listConsumerSessions: {
    ...OF_CONSUMER,
    path: `${COMMANDS}/session.list`,
    summary: 'List the sessions of a consumer',
    description: 'Returns where the consumer is signed in.',
    isWrite: false,
    responses: { 200: { description: 'The sessions.', schema: ConsumerDevices } },
    errors: ['not_found'],
  },
  endConsumerSessionNamed: {
    ...OF_CONSUMER,
    path: `${COMMANDS}/session.endOne`,
    summary: 'Sign a consumer out of one session',
    description: 'Ends a session of the consumer at once.',
    isWrite: true,
    body: EndDevice,
    bodyExample: { id: ID },
    responses: { 200: { description: 'The sessions that are left.', schema: ConsumerDevices } },
    errors: ['not_found'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
