// Hand-offs as shown to the consumer whom they name: who is asking, what they are asking for, and how the consumer
// takes control of the browser.
import { type Static, Type } from 'typebox';
import { Page, PageQuery, Time, Uuid } from './common.ts';
import { Handoff, INSTRUCTIONS_SHOWN_CHARACTERS_MAX } from './handoffs.ts';

/** Maximum number of open hand-offs per consumer, whether they are waiting for the consumer or claimed. */
export const OPEN_HANDOFFS_PER_CONSUMER_MAX = 20;

const { status, reason, record, allowedOrigins, leaseExpiresAt, endedAt } = Handoff.properties;

export const ListConsumerHandoffs = Type.Object({ ...PageQuery.properties, status: Type.Optional(status) });
export type ListConsumerHandoffs = Static<typeof ListConsumerHandoffs>;

export const HandoffRef = Type.Object({ id: Uuid('Id of the hand-off.') });

export const ConsumerHandoff = Type.Object(
  {
    id: Uuid('Id of the hand-off.'),
    status,
    reason,
    instructions: Type.String({
      description: `The first ${INSTRUCTIONS_SHOWN_CHARACTERS_MAX} characters of what the agent asks for, as plain text. Untrusted.`,
    }),
    agent: Type.Object(
      { name: Type.String({ description: 'Name of the agent key.' }) },
      { description: 'Who is asking.' },
    ),
    record,
    allowedOrigins,
    pageOrigin: Type.Optional(
      Type.String({
        description: 'Origin of the page that is shown first. In a list, it is absent if it is not known.',
      }),
    ),
    createdAt: Time('When the hand-off was requested.'),
    expiresAt: Time('When the hand-off stops waiting for the consumer.'),
    leaseExpiresAt,
    endedAt,
  },
  { description: 'A hand-off that names the consumer.' },
);
export type ConsumerHandoff = Static<typeof ConsumerHandoff>;

export const ConsumerHandoffPage = Page(ConsumerHandoff, 'Newest first.');
export type ConsumerHandoffPage = Static<typeof ConsumerHandoffPage>;
