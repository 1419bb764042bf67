// Data of a consumer in addition to the profile: consumer sessions, which the consumer can end, and receipts. Also
// defines the request that links two consumers.
import { type Static, Type } from 'typebox';
import { PageQuery, Page as PageSchema, Time, Uuid } from './common.ts';
import { INVOCATION_STATUSES } from './invocations.ts';
import { ACRS } from './sign-in.ts';

// ---- sessions ----------------------------------------------------------------------------------------------------------

const SESSIONS_SHOWN_MAX = 100;

export const ConsumerDevice = Type.Object(
  {
    id: Uuid('Id of the session.'),
    isThis: Type.Boolean({ description: 'Whether this is the session in which the request was sent.' }),
    providerId: Type.String({ description: 'Id of the provider that the consumer signed in with.' }),
    acr: Type.Enum([...ACRS], { description: 'The strength of the proof of identity.' }),
    createdAt: Time('When the consumer signed in.'),
    expiresAt: Time('When the consumer has to sign in again.'),
    lastUsedAt: Type.Optional(Time('When the session was last used.')),
    lastUsedIp: Type.Optional(Type.String({ description: 'Address from which the consumer signed in.' })),
    userAgent: Type.Optional(Type.String({ description: 'The `User-Agent` of the program that signed in.' })),
  },
  { description: 'A session of the consumer that has not ended.' },
);
export type ConsumerDevice = Static<typeof ConsumerDevice>;

export const ConsumerDevices = Type.Object({
  data: Type.Array(ConsumerDevice, { description: `Newest first, at most ${SESSIONS_SHOWN_MAX}.` }),
});
export type ConsumerDevices = Static<typeof ConsumerDevices>;
export { SESSIONS_SHOWN_MAX };

export const EndDevice = Type.Object({ id: Uuid('Id of the session.') });
export type EndDevice = Static<typeof EndDevice>;

// ---- receipts ----------------------------------------------------------------------------------------------------------

const RECEIPT_FIELDS = {
  id: Uuid('Id of the call.'),
  receiptId: Uuid('Id of the receipt (`jti`).'),
  operationId: Type.String({ description: 'Id of the operation that was called.' }),
  operationTitle: Type.String({ description: 'Display name of the operation.' }),
  status: Type.Enum([...INVOCATION_STATUSES], { description: 'How the call ended.' }),
  agent: Type.Object({ name: Type.String() }, { description: 'The agent key that made the call.' }),
  jobId: Type.Optional(Uuid('The Action that was executed.')),
  startedAt: Type.Optional(Time('When the call started.')),
  endedAt: Time('When the call ended.'),
};

export const ConsumerReceipt = Type.Object(
  {
    ...RECEIPT_FIELDS,
    receipt: Type.String({ description: 'The signed receipt (JWS). It can be verified without this service.' }),
  },
  { description: 'The receipt of a call by an agent that names the consumer.' },
);
export type ConsumerReceipt = Static<typeof ConsumerReceipt>;

export const ConsumerReceiptPage = PageSchema(
  Type.Object(RECEIPT_FIELDS, { description: 'A receipt, without its signed form.' }),
  'Newest first.',
);
export type ConsumerReceiptPage = Static<typeof ConsumerReceiptPage>;

export const ListConsumerReceipts = PageQuery;
export type ListConsumerReceipts = Static<typeof ListConsumerReceipts>;

export const ReceiptRef = Type.Object({ id: Uuid('Id of the call.') });
export type ReceiptRef = Static<typeof ReceiptRef>;

// ---- linking -----------------------------------------------------------------------------------------------------------

export const LinkProfile = Type.Object({
  accessToken: Type.String({
    minLength: 1,
    maxLength: 128,
    description:
      'Access token of the session that the same person has with the other provider. The person must have proved their identity in the last five minutes.',
  }),
});
export type LinkProfile = Static<typeof LinkProfile>;
