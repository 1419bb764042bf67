// E-mails to members about requests that wait for them: one e-mail about all requests that have arrived since the last
// e-mail, with a minimum time between two e-mails. Requests that are decided before the e-mail is sent are not
// included. An e-mail contains text from the application, but none from an agent.
import type { InboxRows, NotifyConditions, WaitingRow } from '../../engines/store/rows/inbox.ts';
import type { AtomicTables, Store } from '../../engines/store/store.ts';
import { addMs } from '../../kit/clock.ts';
import { isFault, reason } from '../../kit/fault.ts';
import { type AccountId, type MailId, newId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { REST_INTERVAL_MS, type Task } from '../../kit/task.ts';
import { Catalogue } from '../configured-operations/callable.ts';
import type { Mail } from '../mail/mail.ts';
import { INBOX_ROLES } from './inbox.ts';

const RUN_INTERVAL_MS = 5_000;
/**
 * Time that a request waits before it is reported, so that requests that arrive together are reported in one e-mail.
 * Requests that are decided within this time are not reported.
 */
const GATHER_DELAY_MS = 10_000;
/** Minimum time between two e-mails to a member. */
const MAIL_INTERVAL_MIN_MS = 300_000;
const ACCOUNTS_PER_RUN_MAX = 100;
/** Maximum number of requests that one e-mail reports. */
const REPORTED_REQUESTS_MAX = 1_000;
/** Maximum number of requests that one e-mail lists by name. */
const LISTED_REQUESTS_MAX = 10;

interface MailLine {
  readonly label: string;
  readonly application: string;
  readonly until: string;
  readonly url: string;
}

export interface InboxMailsParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly store: Pick<Store, 'atomically' | 'mails'> & {
    readonly inbox: Pick<InboxRows, 'accountsToNotify' | 'postponeNotification'>;
  };
  readonly mail: Pick<Mail, 'write' | 'send'>;
  readonly publicUrl: string;
}

export class InboxMails {
  readonly #parts: InboxMailsParts;
  readonly tasks: readonly Task[];

  constructor(parts: InboxMailsParts) {
    this.#parts = parts;
    this.tasks = [
      { name: 'tell_members', everyMs: RUN_INTERVAL_MS, quietMs: REST_INTERVAL_MS, run: () => this.#run() },
    ];
  }

  async #run(): Promise<Record<string, number>> {
    const { store, clock, mail } = this.#parts;
    const withdrawnCount = await store.mails.withdraw();
    const now = clock.now();
    const notifyConditions = {
      now,
      waitingSince: addMs(now, -GATHER_DELAY_MS),
      notifiedBefore: addMs(now, -MAIL_INTERVAL_MIN_MS),
    };
    let sentCount = 0;
    try {
      for (const account of await store.inbox.accountsToNotify(INBOX_ROLES, notifyConditions, ACCOUNTS_PER_RUN_MAX))
        sentCount += (await this.#notify(account, notifyConditions)) ? 1 : 0;
    } finally {
      if (sentCount > 0) mail.send();
    }
    return { told: sentCount, withdrawn: withdrawnCount };
  }

  /**
   * Returns false if there is nothing to report, if too many e-mails have been sent to the address, or if the e-mail
   * could not be written.
   */
  async #notify(account: AccountId, conditions: NotifyConditions): Promise<boolean> {
    const { store, log } = this.#parts;
    try {
      return await store.atomically(trx => this.#write(trx, account, conditions));
    } catch (error) {
      if (isFault(error, 'rate_limited')) log.info('inbox.not_told', { accountId: account });
      else log.error('inbox.not_told', { accountId: account, reason: reason(error) });
      // Without the delay, the next run would select this account again, and might not reach the accounts after it.
      await store.inbox.postponeNotification(account, conditions.now);
      return false;
    }
  }

  async #write(
    trx: Pick<AtomicTables, 'inbox' | 'mails' | 'configuredOperations'>,
    account: AccountId,
    conditions: NotifyConditions,
  ): Promise<boolean> {
    const id = newId<MailId>(conditions.now);
    const notice = await trx.inbox.recordNotification(account, id, INBOX_ROLES, conditions, REPORTED_REQUESTS_MAX);
    if (!notice) return false;
    const { address, waiting } = notice;
    // Uses the connection of the transaction, because decisions that wait for this transaction may hold all other
    // connections.
    const catalogue = new Catalogue(trx.configuredOperations);
    const mailLines: MailLine[] = [];
    for (const item of waiting.slice(0, LISTED_REQUESTS_MAX)) mailLines.push(await this.#composeLine(item, catalogue));
    const [onlyLine] = waiting.length === 1 ? mailLines : [];
    const subject = onlyLine
      ? `${onlyLine.label} (${onlyLine.application})`
      : `${waiting.length} requests from agents are waiting for you`;
    const text = [
      ...(onlyLine ? ['An agent is waiting for you.'] : ['Agents are waiting for you.']),
      ...mailLines.map(({ label: what, application, until, url }) => `${what}\n${application}, until ${until}\n${url}`),
      ...(waiting.length > LISTED_REQUESTS_MAX ? [`And ${waiting.length - LISTED_REQUESTS_MAX} more.`] : []),
      `Everything that is waiting for you:\n${this.#parts.publicUrl}/console/inbox`,
      `Nothing is done until you decide. Turn these e-mails off in your account:\n${this.#parts.publicUrl}/console/account\n`,
    ].join('\n\n');
    await this.#parts.mail.write({ id, to: address, subject, text, tellsOfWaiting: true }, trx.mails);
    return true;
  }

  async #composeLine(item: WaitingRow, catalogue: Catalogue): Promise<MailLine> {
    const { publicUrl } = this.#parts;
    const application = toOneLine(item.applicationName);
    const until = item.expiresAt.toISOString();
    if (item.kind === 'handoff') {
      const url = `${publicUrl}/handoffs/${item.id}?app=${item.applicationId}`;
      return { label: `Take control: ${REASONS[item.reason]}`, application, until, url };
    }
    const operation = await catalogue.findRevision(item.applicationId, item.operationId, item.operationRevision);
    return {
      label: `Approve: ${toOneLine(operation?.title ?? item.operationId)}`,
      application,
      until,
      url: `${publicUrl}/approve/${item.id}`,
    };
  }
}

const REASONS: Readonly<Record<Extract<WaitingRow, { kind: 'handoff' }>['reason'], string>> = {
  login: 'a page asks to sign in',
  otp: 'a page asks for a code',
  captcha: 'a page asks for proof that you are human',
  payment: 'a page asks for a payment',
  consent: 'a page asks for consent',
  review: 'something needs to be reviewed',
  other: 'an agent needs help in its browser',
};

const toOneLine = (text: string): string => text.replace(/\s+/gu, ' ');
