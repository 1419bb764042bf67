// Schemas for buying credit: packs, checkouts, and the catalog of what credit can be used for.
import { type Static, Type } from 'typebox';
import { AnyObject, Page, PageQuery, Time, Uuid } from './common.ts';
import { OPERATION_EFFECTS } from './invocations.ts';

export const QUOTE_LIFETIME_MINUTES = 15;
export const CHECKOUT_LIFETIME_DAYS = 14;
export const OPEN_CHECKOUTS_MAX = 20;
export const CHECKOUT_WAIT_SECONDS_MAX = 55;

/** Implemented payment providers. Their names are part of the paths. */
export const PAYMENT_PROVIDERS = ['manual'] as const;

const Price = Type.Object(
  {
    amount: Type.Integer({ minimum: 0, description: 'In the smallest unit of the currency, for example cents.' }),
    currency: Type.String({ description: 'ISO 4217.' }),
  },
  { description: 'The price of the pack.' },
);

const PackId = Type.String({ pattern: '^[a-z0-9][a-z0-9_-]{0,31}$', description: 'Id of the pack.' });

export const CreditPack = Type.Object({
  id: PackId,
  credits: Type.Integer({ minimum: 1, description: 'Credits that are paid for.' }),
  bonus: Type.Integer({ minimum: 0, description: 'Additional free credits.' }),
  price: Price,
  providers: Type.Array(Type.Enum([...PAYMENT_PROVIDERS]), {
    description: 'The providers with which the pack can be paid.',
  }),
});

export const Quote = Type.Object(
  {
    available: Type.Boolean({ description: 'Whether credit can be bought.' }),
    reason: Type.Optional(
      Type.Enum(['no_packs'], { description: 'Why credit cannot be bought: the operator sells no packs.' }),
    ),
    currency: Type.Optional(Type.String({ description: 'Currency of all packs.' })),
    packs: Type.Array(CreditPack, { description: 'The packs, in the order that the operator has set.' }),
    providers: Type.Array(
      Type.Object({
        id: Type.Enum([...PAYMENT_PROVIDERS]),
        auto: Type.Boolean({ description: 'Whether the provider supports automatic top-ups.' }),
      }),
    ),
    mayBuy: Type.Boolean({ description: 'Whether the caller is an owner of the application.' }),
    validUntil: Time('Time until which a checkout can name this quote.'),
    quoteId: Type.String({
      description: 'Id of the quote, to be passed with a checkout. It identifies these packs and prices.',
    }),
  },
  { description: 'The current prices of credit.' },
);
export type Quote = Static<typeof Quote>;

export const CheckoutParams = Type.Object({ id: Uuid('Id of the checkout.') });

export const OpenCheckout = Type.Object(
  {
    applicationId: Uuid('The application whose account gets the credit.'),
    packId: PackId,
    quoteId: Type.String({ minLength: 1, maxLength: 200, description: 'Id of the quote that contains the price.' }),
  },
  { additionalProperties: false },
);
export type OpenCheckout = Static<typeof OpenCheckout>;

export const CHECKOUT_STATUSES = ['open', 'credited', 'cancelled', 'expired'] as const;
const CheckoutStatus = Type.Enum([...CHECKOUT_STATUSES], {
  description: '`open`: the operator has not confirmed the payment. `credited`: the account has the credit.',
});

export const Checkout = Type.Object(
  {
    id: Uuid('Id of the checkout.'),
    applicationId: Uuid('Id of the application.'),
    provider: Type.Enum([...PAYMENT_PROVIDERS]),
    packId: PackId,
    status: CheckoutStatus,
    credits: Type.Integer({ description: 'Credits that are paid for.' }),
    bonus: Type.Integer({ description: 'Additional free credits.' }),
    price: Price,
    reference: Type.String({ description: 'Reference that the payment must contain.' }),
    paymentText: Type.Optional(
      Type.String({ description: 'How to pay, as written by the operator. Present while the status is `open`.' }),
    ),
    createdAt: Time('When the checkout was opened.'),
    expiresAt: Time('When the checkout expires unless the payment is confirmed.'),
    endedAt: Type.Optional(Time('When the checkout was credited or cancelled, or expired.')),
  },
  { description: 'An order for credit.' },
);
export type Checkout = Static<typeof Checkout>;
export const CheckoutPage = Page(Checkout);
export type CheckoutPage = Static<typeof CheckoutPage>;

export const CheckoutListQuery = Type.Object({
  applicationId: Uuid('The application whose checkouts are listed.'),
  ...PageQuery.properties,
});
export type CheckoutListQuery = Static<typeof CheckoutListQuery>;

export const CheckoutQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: CHECKOUT_WAIT_SECONDS_MAX,
      description: 'Seconds to wait for a status other than `since`.',
    }),
  ),
  since: Type.Optional(
    Type.Enum([...CHECKOUT_STATUSES], { default: 'open', description: 'The status that you last read.' }),
  ),
});
export type CheckoutQuery = Static<typeof CheckoutQuery>;

export const AutoTopUp = Type.Object(
  {
    applicationId: Uuid('Id of the application.'),
    enabled: Type.Boolean(),
    threshold: Type.Integer({
      minimum: 0,
      description: 'Credit is bought when the balance falls below this number of micro-credits.',
    }),
    packId: PackId,
    monthlyCap: Type.Integer({ minimum: 0, description: 'Maximum amount that is paid in a month.' }),
  },
  { additionalProperties: false },
);
export type AutoTopUp = Static<typeof AutoTopUp>;

export const METERS = ['browserSecond', 'egressMegabyte'] as const;

export const Catalog = Type.Object(
  {
    data: Type.Array(
      Type.Object({
        id: Type.String({ description: 'Id of the operation.' }),
        kind: Type.Enum(['operation']),
        title: Type.String(),
        effect: Type.Enum([...OPERATION_EFFECTS]),
        inputSchema: AnyObject('JSON Schema (2020-12) of the input.'),
        meters: Type.Array(Type.Enum([...METERS]), { description: 'The meters by which a call is charged.' }),
        price: Type.Object({
          microCredits: Type.Integer({ description: 'Price of each call, in addition to the meters.' }),
        }),
      }),
      { description: 'Ordered by id.' },
    ),
    digest: Type.String({ description: '`sha256:` followed by the digest of `data`.' }),
  },
  { description: 'The operations that agents can call on this service.' },
);
export type Catalog = Static<typeof Catalog>;
