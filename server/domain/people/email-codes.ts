// Six-digit codes sent by e-mail, to sign in and to verify an address. Each ticket has one code, allows five attempts
// and expires after ten minutes.
import { createHash, randomInt, timingSafeEqual } from 'node:crypto';
import { CODE_LIFETIME_MINUTES } from '../../../contract/sign-in.ts';
import type { TicketRow } from '../../engines/store/rows/sign-in-tickets.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { type AccountId, isUuid, newId, type TicketId } from '../../kit/ids.ts';
import { fault } from '../faults.ts';
import { signInFailed } from './faults.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const CODES_PER_HOUR_MAX = 5;
export const TRIES_MAX = 5;
const POSSIBLE_CODES = 1_000_000;

export interface Mail {
  /** Resolves when the e-mail is durably queued. */
  queue(mail: { readonly to: string; readonly subject: string; readonly text: string }): Promise<unknown>;
}

export interface EmailCodesParts {
  readonly store: Pick<Store, 'signInTickets'>;
  readonly clock: Clock;
  readonly mail: Mail;
}

export class EmailCodes {
  readonly #parts: EmailCodesParts;

  constructor(parts: EmailCodesParts) {
    this.#parts = parts;
  }

  /** Sends a code. If there is no account, no e-mail is sent, but the response is the same. */
  async send(email: string, accountId: AccountId | undefined): Promise<TicketId> {
    const { store, clock, mail } = this.#parts;
    const now = clock.now();
    if ((await store.signInTickets.count('email_code', { email }, addMs(now, -HOUR_MS))) >= CODES_PER_HOUR_MAX)
      throw tooManyCodes();
    const id = newId<TicketId>(now);
    const code = randomInt(POSSIBLE_CODES).toString().padStart(6, '0');
    await store.signInTickets.insert({
      ...{ id, kind: 'email_code', email, hash: hashOf(id, code) },
      ...(accountId ? { accountId } : {}),
      ...{ createdAt: now, expiresAt: addMs(now, CODE_LIFETIME_MINUTES * MINUTE_MS) },
    });
    if (accountId) await mail.queue({ to: email, subject: `${code} is your code for Berth`, text: textOf(code) });
    return id;
  }

  /**
   * Verifies the code and consumes the ticket.
   * @throws Fault `sign_in_failed`.
   */
  async accept(ticket: string, code: string): Promise<TicketRow & { readonly accountId: AccountId }> {
    const { store, clock } = this.#parts;
    const now = clock.now();
    const id = ticket as TicketId; // Checked by isUuid on the next line.
    const row = isUuid(ticket) ? await store.signInTickets.attempt(id, 'email_code', now, TRIES_MAX) : undefined;
    const isCodeCorrect = timingSafeEqual(hashOf(id, code), row?.hash ?? hashOf(id, ''));
    const { accountId } = row ?? {};
    if (!row || !accountId || !isCodeCorrect || !(await store.signInTickets.use(id, now))) throw signInFailed('code');
    return { ...row, accountId };
  }
}

const hashOf = (ticket: string, code: string): Buffer => createHash('sha256').update(`${ticket} ${code}`).digest();

const textOf = (code: string): string =>
  `Your code is ${code}.\n\nIt is valid for ${CODE_LIFETIME_MINUTES} minutes. Do not give it to anyone: nobody from Berth will ask for it.\n\nIf you did not ask for a code, you can ignore this message.\n`;

const tooManyCodes = (): Error =>
  fault('rate_limited', 'Too many codes were requested for this address.', {
    advice: 'Use the newest code, or wait an hour.',
    details: { limit: CODES_PER_HOUR_MAX, used: CODES_PER_HOUR_MAX, retryAfterSeconds: HOUR_MS / 1000 },
  });
