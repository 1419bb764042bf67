// What a consumer can see and end besides the profile: sessions and receipts; and what links two consumers.
import { type Static, Type } from 'typebox';
import { PageQuery, Page as PageSchema, Time, Uuid } from './common.ts';
import { INVOCATION_STATUSES } from './invocations.ts';
import { ACRS } from './sign-in.ts';

// ---- sessions ----------------------------------------------------------------------------------------------------------

const SESSIONS_SHOWN_MAX = 100;

export const ConsumerDevice = Type.Object(
  {
    id: Uuid('Id of the session.'),
    isThis: Type.Boolean({ description: 'Whether it is the session of this request.' }),
    providerId: Type.String({ description: 'What it was signed in with.' }),
    acr: Type.Enum([...ACRS], { description: 'The strength of the proof of identity.' }),
    createdAt: Time('When the consumer signed in.'),
    expiresAt: Time('When the consumer has to sign in again.'),
    lastUsedAt: Type.Optional(Time('When it was last used.')),
    lastUsedIp: Type.Optional(Type.String({ description: 'From which address.' })),
    userAgent: Type.Optional(Type.String({ description: 'The program that signed in, as it called itself.' })),
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

const RECEIPT = {
  id: Uuid('Id of the call.'),
  receiptId: Uuid('Id of the receipt (`jti`).'),
  operationId: Type.String({ description: 'What was called.' }),
  operationTitle: Type.String({ description: 'Its name for people.' }),
  status: Type.Enum([...INVOCATION_STATUSES], { description: 'How it ended.' }),
  agent: Type.Object({ name: Type.String() }, { description: 'The agent key that called it.' }),
  jobId: Type.Optional(Uuid('The Action that was executed.')),
  startedAt: Type.Optional(Time('When it was started.')),
  endedAt: Time('When it ended.'),
};

export const ConsumerReceipt = Type.Object(
  {
    ...RECEIPT,
    receipt: Type.String({ description: 'The signed receipt (JWS). It can be verified without this service.' }),
  },
  { description: 'What an agent did that names the consumer.' },
);
export type ConsumerReceipt = Static<typeof ConsumerReceipt>;

export const ConsumerReceiptPage = PageSchema(
  Type.Object(RECEIPT, { description: 'A receipt, without its signed form.' }),
  'Newest first.',
);
export type ConsumerReceiptPage = Static<typeof ConsumerReceiptPage>;

export const ListConsumerReceipts = PageQuery;
export type ListConsumerReceipts = Static<typeof ListConsumerReceipts>;

export const NameReceipt = Type.Object({ id: Uuid('Id of the call.') });
export type NameReceipt = Static<typeof NameReceipt>;

// ---- linking -----------------------------------------------------------------------------------------------------------

export const LinkProfile = Type.Object({
  accessToken: Type.String({
    minLength: 1,
    maxLength: 128,
    description:
      'Access token of the session that the same person has with the other provider. Signed in with a moment ago.',
  }),
});
export type LinkProfile = Static<typeof LinkProfile>;
