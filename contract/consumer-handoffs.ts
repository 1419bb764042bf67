// Hand-offs as the consumer sees them whom they name: who asks for what, and control of the browser.
import { type Static, Type } from 'typebox';
import { Page, PageQuery, Time, Uuid } from './common.ts';
import { Handoff, INSTRUCTIONS_SHOWN_MAX } from './handoffs.ts';

/** Hand-offs that wait for one consumer, or that the consumer has. */
export const OPEN_HANDOFFS_PER_CONSUMER_MAX = 20;

const { status, reason, record, allowedOrigins, leaseExpiresAt, endedAt } = Handoff.properties;

export const ListConsumerHandoffs = Type.Object({ ...PageQuery.properties, status: Type.Optional(status) });
export type ListConsumerHandoffs = Static<typeof ListConsumerHandoffs>;

export const NameHandoff = Type.Object({ id: Uuid('Id of the hand-off.') });

export const ConsumerHandoff = Type.Object(
  {
    id: Uuid('Id of the hand-off.'),
    status,
    reason,
    instructions: Type.String({
      description: `What the agent asks for, as plain text: its first ${INSTRUCTIONS_SHOWN_MAX} characters. Untrusted.`,
    }),
    agent: Type.Object({ name: Type.String({ description: 'Name of the agent key.' }) }, { description: 'Who asks.' }),
    record,
    allowedOrigins,
    pageOrigin: Type.Optional(
      Type.String({ description: 'Origin of the page that is shown first. In a list: as far as it is known.' }),
    ),
    createdAt: Time('When it was requested.'),
    expiresAt: Time('Until when it waits.'),
    leaseExpiresAt,
    endedAt,
  },
  { description: 'A hand-off that names the consumer.' },
);
export type ConsumerHandoff = Static<typeof ConsumerHandoff>;

export const ConsumerHandoffPage = Page(ConsumerHandoff, 'Newest first.');
export type ConsumerHandoffPage = Static<typeof ConsumerHandoffPage>;
