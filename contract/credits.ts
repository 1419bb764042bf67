// The credit of an account: balance, reservations, ledger entries and usage.
import { type Static, Type } from 'typebox';
import { Page, PageQuery, Time, Uuid } from './common.ts';

export const MICROCREDITS_PER_CREDIT = 1_000_000;
export const RESERVATIONS_SHOWN_MAX = 100;
export const CREDIT_USAGE_DAYS_DEFAULT = 31;
export const CREDIT_USAGE_DAYS_MAX = 400;
export const CREDIT_USAGE_ROWS_MAX = 400;

const AMOUNT_MAX = Number.MAX_SAFE_INTEGER;
const Amount = (description: string) =>
  Type.Integer({ minimum: 0, maximum: AMOUNT_MAX, description: `${description} In micro-credits.` });
const Leg = (description: string) =>
  Type.Integer({ minimum: -AMOUNT_MAX, maximum: AMOUNT_MAX, description: `${description} In micro-credits.` });

export const PURPOSE_KINDS = ['session', 'invocation'] as const;

const Purpose = Type.Object(
  {
    kind: Type.Enum([...PURPOSE_KINDS]),
    id: Uuid('Id of the session or invocation.'),
  },
  { description: 'The session or invocation that the credit is held for.' },
);

export const Reservation = Type.Object(
  {
    id: Uuid('Id of the reservation.'),
    purpose: Purpose,
    amount: Amount('Total amount that is held.'),
    captured: Amount('The part that has been used and captured so far.'),
    status: Type.Enum(['held', 'captured', 'released', 'expired'], {
      description:
        '`held`: the session or invocation is running. `captured`: it ended, the used part was captured and the rest was given back. `released`: everything was given back. `expired`: everything was given back because the outcome stayed unknown.',
    }),
    createdAt: Time('When the credit was held.'),
    expiresAt: Type.Optional(Time('When the credit is given back if the outcome is still unknown.')),
  },
  { description: 'Credit that is held for a session or an invocation.' },
);
export type Reservation = Static<typeof Reservation>;

export const CreditRates = Type.Object(
  {
    browserSecond: Amount('For each started second of a session, from RUNNING to its end.'),
    egressMegabyte: Amount('For each megabyte (1,000,000 bytes) to and from the network.'),
  },
  { description: 'Prices of usage. With a rate of 0, usage is metered but not charged.' },
);

export const Credits = Type.Object(
  {
    unit: Type.Enum(['microcredit'], { description: `1 credit is ${MICROCREDITS_PER_CREDIT} micro-credits.` }),
    balance: Amount('Available and reserved credit of the account, which all of its applications share.'),
    reserved: Amount('Credit that is held for all applications of the account.'),
    available: Amount('Credit that is available for new sessions and calls.'),
    thisApplication: Type.Object(
      {
        reserved: Amount('Credit that is held for this application.'),
        capturedThisMonth: Amount('Credit that this application has used since the month began (UTC).'),
      },
      { description: 'Credit that is held for this application, and credit that it has used.' },
    ),
    reservations: Type.Array(Reservation, {
      description: `Reservations that are held for this application now, newest first, at most ${RESERVATIONS_SHOWN_MAX}.`,
    }),
    rates: CreditRates,
    metering: Type.Boolean({ description: 'Whether usage is metered. Always true.' }),
    enforced: Type.Boolean({ description: 'Whether sessions and calls require credit. True if a rate is above 0.' }),
  },
  { description: 'The credit of the account that the application bills.' },
);
export type Credits = Static<typeof Credits>;

export const ENTRY_TYPES = ['fund', 'grant', 'hold', 'extend', 'capture', 'release', 'expire'] as const;

export const CreditEntry = Type.Object(
  {
    id: Uuid('Id of the entry.'),
    type: Type.Enum([...ENTRY_TYPES], {
      description:
        '`fund`: credit was paid for. `grant`: the operator gave credit. `hold` and `extend`: credit was held. `capture`: use was charged, and at the end of the work the rest was given back. `release`: everything was given back. `expire`: everything was given back because the outcome stayed unknown.',
    }),
    legs: Type.Object(
      {
        funding: Leg('Where paid credit comes from.'),
        available: Leg('Credit that is available for new sessions and calls.'),
        reserved: Leg('Credit that is held.'),
        revenue: Leg('Credit that was used.'),
        promo: Leg('Where granted credit comes from.'),
      },
      { description: 'The amount that the entry adds to each book. The amounts of an entry add up to 0.' },
    ),
    reservationId: Type.Optional(Uuid('The reservation that the entry is about.')),
    checkoutId: Type.Optional(Uuid('The checkout that was paid.')),
    reason: Type.Optional(Type.String({ description: 'The reason that the operator gave.' })),
    at: Time('When the entry was written.'),
  },
  { description: 'An entry of the ledger. Entries are never changed or removed.' },
);
export type CreditEntry = Static<typeof CreditEntry>;

export const CreditEntryQuery = Type.Object({
  type: Type.Optional(Type.Enum([...ENTRY_TYPES], { description: 'Only entries of this type.' })),
  after: Type.Optional(
    Type.String({ format: 'date-time', description: 'Only entries later than this time. ISO 8601.' }),
  ),
  ...PageQuery.properties,
});
export type CreditEntryQuery = Static<typeof CreditEntryQuery>;
export const CreditEntryPage = Page(CreditEntry);
export type CreditEntryPage = Static<typeof CreditEntryPage>;

export const USAGE_GROUPINGS = ['day', 'operation', 'key'] as const;
export type UsageGrouping = (typeof USAGE_GROUPINGS)[number];

export const CreditUsageQuery = Type.Object({
  from: Type.Optional(
    Time(`Start of the period; its UTC day is the first. Defaults to ${CREDIT_USAGE_DAYS_DEFAULT} days before \`to\`.`),
  ),
  to: Type.Optional(Time('End of the period; its UTC day is the last. Defaults to now.')),
  by: Type.Optional(Type.Enum([...USAGE_GROUPINGS], { default: 'day', description: 'The grouping of the rows.' })),
});
export type CreditUsageQuery = Static<typeof CreditUsageQuery>;

export const CreditUsage = Type.Object(
  {
    from: Time('When the first day begins.'),
    to: Time('When the last day ends. May be in the future.'),
    by: Type.Enum([...USAGE_GROUPINGS]),
    data: Type.Array(
      Type.Object({
        of: Type.String({
          description: 'The day (`2026-11-23`), the id of the operation, or the id of the agent key.',
        }),
        name: Type.Optional(Type.String({ description: 'Name of the agent key. Absent if it was deleted.' })),
        browserSeconds: Type.Number({
          description: 'Time during which sessions were running, or the metered time of the calls.',
        }),
        egressBytes: Type.Integer({ description: 'Network bytes that the ended sessions sent and received.' }),
        calls: Type.Integer({ description: 'Number of invocations.' }),
        cost: Amount('Credit that was captured.'),
      }),
      {
        description: `At most ${CREDIT_USAGE_ROWS_MAX} rows. Rows by day are in chronological order; other rows are ordered by cost, highest first.`,
      },
    ),
  },
  { description: 'The usage of the application and its cost.' },
);
export type CreditUsage = Static<typeof CreditUsage>;
