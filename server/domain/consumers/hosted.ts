// The provider `hosted`: consumers sign in on a page of Berth with a password, a code by e-mail or a passkey. A
// consumer is created only after a person has proved control of the e-mail address, so nobody can reserve the address
// of another person.
import { createHash, randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
import { HOSTED_PROVIDER, type HostedSignInResult } from '../../../contract/consumers.ts';
import { CODE_LIFETIME_MINUTES, type SIGN_IN_METHODS } from '../../../contract/sign-in.ts';
import type { Passwords } from '../../engines/authenticators/passwords.ts';
import type { ConsumerRow, ConsumerTicketRow } from '../../engines/store/rows/consumers.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { type ConsumerId, type ConsumerTicketId, isUuid, newId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import { WorkLimitReached } from '../../kit/work-limiter.ts';
import type { Audit } from '../audit/audit.ts';
import { fault } from '../faults.ts';
import type { RequestSource } from '../identity/caller.ts';
import { cleanName } from '../identity/names.ts';
import { type SharedTallies, type SharedTally, takeAll } from '../limits/shared-tally.ts';
import { cleanEmail } from '../people/email.ts';
import { type Mail, TRIES_MAX } from '../people/email-codes.ts';
import { signInFailed, wrongPassword } from '../people/faults.ts';
import type { ConsumerChallenge, ConsumerPasskeys } from './consumer-passkeys.ts';
import type { ConsumerSessions } from './consumer-sessions.ts';
import { methodDisabled } from './faults.ts';
import { methodsOf } from './identities.ts';
import type { OpenSignIn, SignIns } from './sign-ins.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const POSSIBLE_CODES = 1_000_000;
const CODES_PER_HOUR_MAX = 5;
const SUBJECT_BYTES = 16;
/** Limit on failed sign-ins per consumer and IP address. */
const CONSUMER_FAILURE_LIMIT = {
  name: 'consumers.account',
  what: 'failed sign-ins',
  max: 10,
  withinMs: 10 * MINUTE_MS,
  scope: 'account',
} as const;
/** Limit on failed sign-ins per IP address, for all consumers together. */
const ADDRESS_FAILURE_LIMIT = {
  name: 'consumers.address',
  what: 'failed sign-ins',
  max: 50,
  withinMs: 10 * MINUTE_MS,
  scope: 'address',
} as const;
/** Limit on the codes, challenges and pages that may be requested from one IP address. */
const ADDRESS_REQUEST_LIMIT = {
  name: 'consumers.requests',
  what: 'requests for codes, challenges and pages',
  max: 60,
  withinMs: 10 * MINUTE_MS,
  scope: 'address',
} as const;

export interface HostedParts {
  readonly store: Pick<Store, 'consumers' | 'consumerTickets'>;
  readonly signIns: SignIns;
  readonly sessions: ConsumerSessions;
  readonly passkeys: ConsumerPasskeys;
  readonly passwords: Pick<Passwords, 'hash' | 'matches'>;
  readonly mail: Mail;
  readonly audit: Pick<Audit, 'record'>;
  readonly clock: Clock;
  readonly tallies: Pick<SharedTallies, 'of'>;
}

/** The sign-in that a page belongs to. */
export interface HostedPage {
  readonly appId: string;
  readonly signIn: string;
}

export class HostedSignIns {
  readonly #parts: HostedParts;
  readonly #failuresByConsumer: SharedTally;
  readonly #failuresByAddress: SharedTally;
  readonly #requestTally: SharedTally;

  constructor(parts: HostedParts) {
    this.#parts = parts;
    this.#failuresByConsumer = parts.tallies.of(CONSUMER_FAILURE_LIMIT);
    this.#failuresByAddress = parts.tallies.of(ADDRESS_FAILURE_LIMIT);
    this.#requestTally = parts.tallies.of(ADDRESS_REQUEST_LIMIT);
  }

  describe({ appId, signIn }: HostedPage) {
    return this.#parts.signIns.describe(appId, HOSTED_PROVIDER, signIn);
  }

  async withPassword(
    page: HostedPage,
    request: { readonly email: string; readonly password: string },
    source: RequestSource,
  ): Promise<HostedSignInResult> {
    const openSignIn = await this.#open(page, 'password');
    const email = cleanEmail(request.email);
    const consumer = await this.#limitFailures(openSignIn, email, source, async () => {
      const foundConsumer = await this.#parts.store.consumers.byEmail(
        openSignIn.application.id,
        HOSTED_PROVIDER,
        email,
      );
      const isPasswordCorrect = await this.#parts.passwords.matches(request.password, foundConsumer?.passwordHash);
      if (!foundConsumer || !isPasswordCorrect) throw wrongPassword();
      return foundConsumer;
    });
    return this.#complete(openSignIn, consumer, 'berth:1', source);
  }

  async sendCode(
    page: HostedPage,
    request: { readonly email: string },
    source: RequestSource,
  ): Promise<{ ticket: string }> {
    const openSignIn = await this.#open(page, 'email_code');
    await this.#requestTally.take(source.ip);
    return this.#send(openSignIn, cleanEmail(request.email), {});
  }

  /** Sends a code. When the code is entered, the password in this request becomes the password of the consumer. */
  async register(
    page: HostedPage,
    request: { readonly email: string; readonly password: string; readonly displayName?: string },
    source: RequestSource,
  ): Promise<{ ticket: string }> {
    const openSignIn = await this.#open(page, 'password');
    await this.#requestTally.take(source.ip);
    const email = cleanEmail(request.email);
    const name = request.displayName === undefined ? {} : { displayName: cleanName(request.displayName) };
    return this.#send(openSignIn, email, { passwordHash: await this.#parts.passwords.hash(request.password), ...name });
  }

  async verify(
    page: HostedPage,
    request: { readonly ticket: string; readonly code: string },
    source: RequestSource,
  ): Promise<HostedSignInResult> {
    const openSignIn = await this.#parts.signIns.open(page.appId, HOSTED_PROVIDER, page.signIn);
    const ticket = await this.#limitFailures(openSignIn, 'code', source, () => this.#acceptCode(openSignIn, request));
    const consumer = await this.#findOrCreateConsumer(openSignIn, ticket);
    if (!consumer) throw signInFailed('code');
    if (ticket.passwordHash !== undefined) await this.#setPassword(consumer, ticket.passwordHash, source);
    return this.#complete(openSignIn, consumer, 'berth:1', source);
  }

  async passkeyOptions(page: HostedPage, origin: URL, source: RequestSource): Promise<ConsumerChallenge> {
    const { application, row } = await this.#open(page, 'passkey');
    await this.#requestTally.take(source.ip);
    return this.#parts.passkeys.challenge(application.id, origin, { signInId: row.id });
  }

  async withPasskey(
    page: HostedPage,
    request: { readonly ticket: string; readonly response: JsonObject },
    origin: URL,
    source: RequestSource,
  ): Promise<HostedSignInResult> {
    const openSignIn = await this.#open(page, 'passkey');
    const { id } = openSignIn.application;
    const consumer = await this.#limitFailures(openSignIn, 'passkey', source, async () => {
      const owner = { signInId: openSignIn.row.id };
      const consumerId = await this.#parts.passkeys.verify(id, origin, request.ticket, request.response, owner);
      const foundConsumer = await this.#parts.store.consumers.get(id, consumerId);
      const names = await this.#parts.store.consumers.namesOf(id, consumerId);
      if (!foundConsumer || !names.some(({ providerId }) => providerId === HOSTED_PROVIDER))
        throw signInFailed('passkey');
      return foundConsumer;
    });
    return this.#complete(openSignIn, consumer, 'phr', source);
  }

  async #open({ appId, signIn }: HostedPage, method: (typeof SIGN_IN_METHODS)[number]): Promise<OpenSignIn> {
    const openSignIn = await this.#parts.signIns.open(appId, HOSTED_PROVIDER, signIn);
    if (!methodsOf(openSignIn.identity).includes(method)) throw methodDisabled(method);
    return openSignIn;
  }

  #complete(openSignIn: OpenSignIn, consumer: ConsumerRow, acr: 'berth:1' | 'phr', source: RequestSource) {
    return this.#parts.signIns.complete(openSignIn, consumer, { acr, authTime: this.#parts.clock.now() }, source);
  }

  /** Sends a code. No e-mail is sent to an address that cannot be used to sign in, but the response is the same. */
  async #send(
    { application, identity, row }: OpenSignIn,
    email: string,
    registration: Pick<ConsumerTicketRow, 'passwordHash' | 'displayName'>,
  ): Promise<{ ticket: string }> {
    const { store, clock, mail } = this.#parts;
    const now = clock.now();
    const sentCount = await store.consumerTickets.countMailed(application.id, email, addMs(now, -HOUR_MS));
    if (sentCount >= CODES_PER_HOUR_MAX) throw tooManyCodes();
    const consumer = await store.consumers.byEmail(application.id, HOSTED_PROVIDER, email);
    const id = newId<ConsumerTicketId>(now);
    const code = randomInt(POSSIBLE_CODES).toString().padStart(6, '0');
    await store.consumerTickets.insert({
      ...{ id, kind: 'email_code', applicationId: application.id, signInId: row.id, email },
      ...registration,
      ...{ hash: hashOf(id, code), createdAt: now, expiresAt: addMs(now, CODE_LIFETIME_MINUTES * MINUTE_MS) },
      ...(consumer ? { consumerId: consumer.id } : {}),
    });
    if (consumer || identity.hostedRegistration === 'open')
      await mail.queue({ to: email, ...mailOf(code, application.name) });
    return { ticket: id };
  }

  async #acceptCode(
    { application, row }: OpenSignIn,
    { ticket, code }: { readonly ticket: string; readonly code: string },
  ): Promise<ConsumerTicketRow & { readonly email: string }> {
    const { store, clock } = this.#parts;
    const now = clock.now();
    const id = ticket.toLowerCase() as ConsumerTicketId; // Checked by isUuid.
    const foundTicket = isUuid(id)
      ? await store.consumerTickets.attempt(application.id, id, 'email_code', now, TRIES_MAX)
      : undefined;
    const isCodeCorrect = timingSafeEqual(hashOf(id, code.replace(/[\s-]/g, '')), foundTicket?.hash ?? hashOf(id, ''));
    const { email } = foundTicket ?? {};
    if (!foundTicket || email === undefined || !isCodeCorrect || foundTicket.signInId !== row.id)
      throw signInFailed('code');
    if (!(await store.consumerTickets.use(id, now))) throw signInFailed('code');
    return { ...foundTicket, email };
  }

  /**
   * Returns the consumer with the verified e-mail address. If there is none and registration is open, creates the
   * consumer.
   */
  async #findOrCreateConsumer(
    { application, identity }: OpenSignIn,
    { email, displayName }: ConsumerTicketRow & { readonly email: string },
  ): Promise<ConsumerRow | undefined> {
    const { store, clock } = this.#parts;
    const existingConsumer = await store.consumers.byEmail(application.id, HOSTED_PROVIDER, email);
    if (existingConsumer || identity.hostedRegistration === 'closed') return existingConsumer;
    const now = clock.now();
    const insertResult = await store.consumers.insertOrFind({
      ...{
        id: newId<ConsumerId>(now),
        applicationId: application.id,
        providerId: HOSTED_PROVIDER,
        email,
        createdAt: now,
      },
      subject: `u_${randomBytes(SUBJECT_BYTES).toString('base64url')}`,
      ...(displayName === undefined ? {} : { displayName }),
    });
    return insertResult?.row;
  }

  async #setPassword(
    { applicationId, id, linkedTo }: ConsumerRow,
    passwordHash: string,
    source: RequestSource,
  ): Promise<void> {
    const { store, sessions, audit } = this.#parts;
    await store.consumers.change(applicationId, id, { passwordHash });
    await sessions.endAllOf(linkedTo ?? id);
    const actor = { kind: 'consumer', id: linkedTo ?? id } as const;
    const entry = { action: 'consumer.password_changed', applicationId, outcome: 'success' } as const;
    await audit.record({ ...entry, actor, ...source });
  }

  /**
   * Limits the failed sign-ins for one consumer from one IP address, and for all consumers from that address. An
   * attempt counts as a failure while it is running. An attempt that was refused with `WorkLimitReached` has had no
   * effect, and does not count.
   */
  async #limitFailures<T>(
    { application, row }: OpenSignIn,
    name: string,
    source: RequestSource,
    attempt: () => Promise<T>,
  ): Promise<T> {
    const undoAttempts = await takeAll(
      [this.#failuresByAddress, source.ip],
      [this.#failuresByConsumer, `${application.id}\n${name}\n${source.ip}`],
    );
    try {
      const result = await attempt();
      await undoAttempts();
      return result;
    } catch (error) {
      if (error instanceof WorkLimitReached) {
        await undoAttempts();
        throw error;
      }
      const actor = { kind: 'anonymous' } as const;
      const entry = { action: 'consumer.session.failed', applicationId: application.id, outcome: 'refused' } as const;
      await this.#parts.audit.record({ ...entry, actor, details: { provider: row.providerId }, ...source });
      throw error;
    }
  }
}

const hashOf = (ticket: string, code: string): Buffer => createHash('sha256').update(`${ticket} ${code}`).digest();

const mailOf = (code: string, application: string) => ({
  subject: `${code} is your code for ${application}`,
  text: `Your code is ${code}.\n\nIt signs you in to ${application}, and is valid for ${CODE_LIFETIME_MINUTES} minutes. Do not give it to anyone.\n\nIf you did not ask for a code, you can ignore this message.\n`,
});

const tooManyCodes = (): Error =>
  fault('rate_limited', 'Too many sign-in codes were requested for this email address.', {
    advice: 'Use the newest code, or wait an hour.',
    details: { limit: CODES_PER_HOUR_MAX, used: CODES_PER_HOUR_MAX, retryAfterSeconds: HOUR_MS / 1000 },
  });
