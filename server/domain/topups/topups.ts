// Manual purchases of credit: quotes, checkouts, and the operator's confirmation. Only the confirmation adds the
// credit.
import { randomInt } from 'node:crypto';
import { PAGE_LIMIT_DEFAULT } from '../../../contract/common.ts';
import { MICROCREDITS_PER_CREDIT } from '../../../contract/credits.ts';
import { hasRight } from '../../../contract/roles.ts';
import {
  type AutoTopUp,
  CHECKOUT_LIFETIME_DAYS,
  type Checkout,
  type CheckoutListQuery,
  type CheckoutPage,
  type CheckoutQuery,
  OPEN_CHECKOUTS_MAX,
  type OpenCheckout,
  PAYMENT_PROVIDERS,
  QUOTE_LIFETIME_MINUTES,
  type Quote,
} from '../../../contract/topups.ts';
import type { CheckoutRow } from '../../engines/store/rows/checkouts.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import type { Pack } from '../../kit/credit-packs.ts';
import { type CheckoutId, isUuid, newId } from '../../kit/ids.ts';
import type { Secret } from '../../kit/secret.ts';
import type { Audit } from '../audit/audit.ts';
import { BY_OPERATOR, byCaller } from '../audit/by-caller.ts';
import { fault, invalidRequest, limitReached, notFound } from '../faults.ts';
import type { Applications, MemberApplication } from '../identity/applications.ts';
import type { AccountCaller } from '../identity/caller.ts';
import { type Cursors, type ListName, listPageOf } from '../identity/cursors.ts';
import { assertSteppedUp } from '../identity/step-up.ts';
import { isQuoteValid, quoteIdOf } from './packs.ts';

const [PROVIDER] = PAYMENT_PROVIDERS;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 3_600_000;
/**
 * How often a checkout is read for a caller who waits for it. Polling is needed because the operator confirms the
 * checkout in another process.
 */
const POLL_INTERVAL_MS = 150;
/** Without letters and digits that look alike. */
const REFERENCE_ALPHABET = '23456789ABCDEFGHJKMNPQRSTVWXYZ';
const REFERENCE_CHARACTERS = 10;

export interface TopUpsParts {
  readonly store: Pick<Store, 'atomically' | 'checkouts'>;
  readonly applications: Pick<Applications, 'require' | 'canAccess'>;
  readonly audit: Pick<Audit, 'record'>;
  readonly cursors: Cursors;
  readonly secret: Secret;
  readonly packs: readonly Pack[];
  readonly paymentText: string;
  readonly clock: Clock;
}

export class TopUps {
  readonly #parts: TopUpsParts;

  constructor(parts: TopUpsParts) {
    this.#parts = parts;
  }

  async quote(caller: AccountCaller, appId: string): Promise<Quote> {
    const { applications, packs, secret, clock } = this.#parts;
    const { id, role } = await applications.require(caller, appId, 'read');
    const validUntil = addMs(clock.now(), QUOTE_LIFETIME_MINUTES * MINUTE_MS);
    const [first] = packs;
    return {
      ...(first ? { available: true, currency: first.currency } : { available: false, reason: 'no_packs' }),
      packs: packs.map(({ price, currency, ...pack }) => ({
        ...{ ...pack, price: { amount: price, currency }, providers: [...PAYMENT_PROVIDERS] },
      })),
      providers: PAYMENT_PROVIDERS.map(provider => ({ id: provider, auto: false })),
      mayBuy: hasRight(role, 'topUps'),
      ...{ validUntil: validUntil.toISOString(), quoteId: quoteIdOf(secret, id, packs, validUntil) },
    };
  }

  /**
   * Opens a checkout. `hasIdempotencyKey` is whether the request has an Idempotency-Key. A token is always refused,
   * because a checkout requires a step-up.
   */
  async open(caller: AccountCaller, request: OpenCheckout, hasIdempotencyKey: boolean): Promise<Checkout> {
    const { store, audit, clock, packs, secret } = this.#parts;
    const application = await this.#requireOwned(caller, request.applicationId);
    assertSteppedUp(caller, clock.now());
    if (!hasIdempotencyKey) throw idempotencyKeyRequired();
    const now = clock.now();
    const pack = packs.find(({ id }) => id === request.packId);
    if (!isQuoteValid(secret, application.id, packs, request.quoteId, now)) throw quoteExpired();
    if (!pack) throw invalidRequest([{ path: 'packId', message: 'is not the id of a pack in the quote' }]);
    const row = newCheckout(application, caller, pack, now);
    await store.atomically(async trx => {
      if ((await trx.checkouts.insert(row, OPEN_CHECKOUTS_MAX)) === 'limit_reached')
        throw limitReached(
          'open checkouts',
          OPEN_CHECKOUTS_MAX,
          'Cancel one that is no longer needed, or wait until one expires.',
        );
      await audit.record({ ...byCaller(caller), ...auditEventOf('topup.opened', row) }, trx);
    });
    return this.#view(row);
  }

  async list(caller: AccountCaller, query: CheckoutListQuery): Promise<CheckoutPage> {
    const { store, cursors } = this.#parts;
    const { id } = await this.#requireOwned(caller, query.applicationId);
    const { limit = PAGE_LIMIT_DEFAULT, cursor } = query;
    const name: ListName = { list: 'checkouts', owner: id };
    const before = cursor === undefined ? undefined : cursors.read<CheckoutId>(name, cursor);
    const rows = await store.checkouts.list(id, { limit: limit + 1, ...(before ? { before } : {}) });
    return listPageOf(
      rows,
      limit,
      row => this.#view(row),
      last => cursors.after(name, last),
    );
  }

  /** Reads a checkout. Waits up to `wait` seconds for its status to differ from `since`. */
  async read(
    caller: AccountCaller,
    id: string,
    { wait = 0, since = 'open' }: CheckoutQuery,
    signal: AbortSignal,
  ): Promise<Checkout> {
    const { clock } = this.#parts;
    const deadlineMs = clock.monotonicMs() + 1000 * wait;
    for (;;) {
      const checkout = this.#view(await this.#find(caller, id));
      const remainingMs = deadlineMs - clock.monotonicMs();
      if (checkout.status !== since || remainingMs <= 0 || signal.aborted) return checkout;
      await clock.sleep(Math.min(remainingMs, POLL_INTERVAL_MS), signal).catch(() => {}); // Rejects when the caller disconnects.
    }
  }

  async cancel(caller: AccountCaller, id: string): Promise<Checkout> {
    const { store, audit, clock } = this.#parts;
    const { id: checkout } = await this.#find(caller, id);
    const row = await store.atomically(async trx => {
      const row = await trx.checkouts.end(checkout, 'cancelled', clock.now());
      if (row) await audit.record({ ...byCaller(caller), ...auditEventOf('topup.cancelled', row) }, trx);
      return row;
    });
    if (!row) throw checkoutEnded(id);
    return this.#view(row);
  }

  /** Always refused, because the operator is paid manually. */
  async replaceAutoTopUp(caller: AccountCaller, { applicationId }: AutoTopUp): Promise<AutoTopUp> {
    await this.#requireOwned(caller, applicationId);
    throw fault('feature_unavailable', 'The payment provider `manual` does not support automatic payment.', {
      advice: 'To buy a pack, open a checkout.',
    });
  }

  async #find(caller: AccountCaller, id: string): Promise<CheckoutRow> {
    const row = isUuid(id) ? await this.#parts.store.checkouts.get(id as CheckoutId) : undefined; // Checked by isUuid.
    if (!row) throw notFound('Checkout', id);
    if (!(await this.#parts.applications.canAccess(caller, row.applicationId))) throw notFound('Checkout', id);
    await this.#requireOwned(caller, row.applicationId);
    return row;
  }

  #requireOwned(caller: AccountCaller, appId: string): Promise<MemberApplication> {
    return this.#parts.applications.require(caller, appId.toLowerCase(), 'topUps');
  }

  #view(row: CheckoutRow): Checkout {
    const { id, applicationId, packId, amount, bonus, price, currency, reference, createdAt, expiresAt, endedAt } = row;
    const isExpired = row.status === 'open' && expiresAt <= this.#parts.clock.now();
    const status = isExpired ? 'expired' : row.status;
    return {
      ...{ id, applicationId, provider: PROVIDER, packId, status, reference },
      ...{ credits: amount / MICROCREDITS_PER_CREDIT, bonus: bonus / MICROCREDITS_PER_CREDIT },
      price: { amount: price, currency },
      ...(status === 'open' ? { paymentText: this.#parts.paymentText } : {}),
      ...{ createdAt: createdAt.toISOString(), expiresAt: expiresAt.toISOString() },
      ...(endedAt ? { endedAt: endedAt.toISOString() } : isExpired ? { endedAt: expiresAt.toISOString() } : {}),
    };
  }
}

export interface ConfirmCheckoutParts {
  readonly store: Pick<Store, 'atomically' | 'checkouts'>;
  readonly audit: Pick<Audit, 'record'>;
  readonly clock: Clock;
}

/** Adds the credit of a checkout to the account, exactly once. Called when the operator has received the payment. */
export async function confirmCheckout(
  { store, audit, clock }: ConfirmCheckoutParts,
  id: string,
  reason: string | undefined,
): Promise<CheckoutRow> {
  const checkoutRow = isUuid(id) ? await store.checkouts.get(id as CheckoutId) : undefined; // Checked by isUuid.
  if (!checkoutRow) throw notFound('Checkout', id);
  const now = clock.now();
  if (checkoutRow.status !== 'open' || checkoutRow.expiresAt <= now) throw checkoutEnded(id);
  return store.atomically(async trx => {
    const { accountId, applicationId, amount, bonus } = checkoutRow;
    await trx.credits.add(accountId, 'fund', amount, { at: now, applicationId, checkoutId: checkoutRow.id }, bonus);
    const row = await trx.checkouts.end(checkoutRow.id, 'credited', now);
    if (!row) throw checkoutEnded(id);
    const auditEvent = auditEventOf('topup.credited', row);
    const details = { ...auditEvent.details, ...(reason === undefined ? {} : { reason }) };
    await audit.record({ ...BY_OPERATOR, ...auditEvent, details }, trx);
    return row;
  });
}

const auditEventOf = (action: 'topup.opened' | 'topup.cancelled' | 'topup.credited', row: CheckoutRow) => ({
  ...({ action, applicationId: row.applicationId, outcome: 'success' } as const),
  target: { kind: 'checkout', id: row.id },
  details: {
    ...{ provider: row.provider, packId: row.packId, amount: row.amount, bonus: row.bonus },
    ...{ price: row.price, currency: row.currency, reference: row.reference },
  },
});

function newCheckout(
  { id: applicationId, billingAccountId }: MemberApplication,
  { accountId }: AccountCaller,
  pack: Pack,
  now: Date,
): CheckoutRow {
  const characters = Array.from({ length: REFERENCE_CHARACTERS }, () =>
    REFERENCE_ALPHABET.charAt(randomInt(REFERENCE_ALPHABET.length)),
  );
  return {
    ...{
      id: newId<CheckoutId>(now),
      accountId: billingAccountId,
      applicationId,
      openedBy: accountId,
      provider: PROVIDER,
    },
    ...{ packId: pack.id, amount: pack.credits * MICROCREDITS_PER_CREDIT, bonus: pack.bonus * MICROCREDITS_PER_CREDIT },
    ...{ price: pack.price, currency: pack.currency, reference: characters.join(''), status: 'open' },
    ...{ createdAt: now, expiresAt: addMs(now, CHECKOUT_LIFETIME_DAYS * DAY_MS) },
  };
}

const idempotencyKeyRequired = () =>
  fault('idempotency_key_required', 'The header Idempotency-Key is missing. Nothing was ordered.', {
    advice: 'Send a new key for each order. To repeat an order, send the same key.',
  });

const quoteExpired = () =>
  fault(
    'not_ready',
    'The quoteId is not valid: the quote has expired, packs or prices have changed, or it is not a quote for this application.',
    {
      advice: 'Read the quote again, and send its quoteId.',
    },
  );

const checkoutEnded = (id: string) =>
  fault('already_decided', `The checkout ${id} is no longer open.`, {
    advice: 'Read the checkout to see its status. If the payment was late, the operator can grant the credit.',
  });
