// Mails to members about what waits for them: one mail about everything that came since the last, and never more often than that.
// What was decided before the mail leaves is in none. A mail has the words of the application, and none of an agent.
import type { InboxRows, TellWhen, WaitingRow } from '../../engines/store/rows/inbox.ts';
import type { Atomic, Store } from '../../engines/store/store.ts';
import { plus } from '../../kit/clock.ts';
import { isFault } from '../../kit/fault.ts';
import { type AccountId, type MailId, newId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Task } from '../../kit/task.ts';
import { Catalogue } from '../configured-operations/callable.ts';
import type { Mail } from '../mail/mail.ts';
import { INBOX_ROLES } from './inbox.ts';

const EVERY_MS = 5_000;
/** Things that come together are told together, and what is decided at once is not told. */
const GATHER_MS = 10_000;
/** The least time between two mails to a member. */
export const PAUSE_MS = 300_000;
const ACCOUNTS_AT_ONCE = 100;
/** The most that one mail tells of. */
const TOLD_MAX = 1_000;
/** The most that it names. */
const NAMED_MAX = 10;

interface Line {
  readonly what: string;
  readonly application: string;
  readonly until: string;
  readonly url: string;
}

export interface InboxMailsParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly store: Pick<Store, 'atomically' | 'mails'> & { readonly inbox: Pick<InboxRows, 'untold' | 'pause'> };
  readonly mail: Pick<Mail, 'write' | 'send'>;
  readonly publicUrl: string;
}

export class InboxMails {
  readonly #parts: InboxMailsParts;
  readonly tasks: readonly Task[];

  constructor(parts: InboxMailsParts) {
    this.#parts = parts;
    this.tasks = [{ name: 'tell_members', everyMs: EVERY_MS, run: () => this.#run() }];
  }

  async #run(): Promise<Record<string, number>> {
    const { store, clock, mail } = this.#parts;
    const withdrawn = await store.mails.withdraw();
    const now = clock.now();
    const when = { now, waitsSince: plus(now, -GATHER_MS), toldBefore: plus(now, -PAUSE_MS) };
    let told = 0;
    for (const account of await store.inbox.untold(INBOX_ROLES, when, ACCOUNTS_AT_ONCE))
      told += (await this.#tell(account, when)) ? 1 : 0;
    if (told > 0) mail.send();
    return { told, withdrawn };
  }

  /** False if there is nothing to tell any more, or too many mails went to the address. */
  async #tell(account: AccountId, when: TellWhen): Promise<boolean> {
    try {
      return await this.#parts.store.atomically(within => this.#write(within, account, when));
    } catch (error) {
      if (!isFault(error, 'rate_limited')) throw error;
      await this.#parts.store.inbox.pause(account, when.now);
      this.#parts.log.info('inbox.not_told', { accountId: account });
      return false;
    }
  }

  async #write(
    within: Pick<Atomic, 'inbox' | 'mails' | 'configuredOperations'>,
    account: AccountId,
    when: TellWhen,
  ): Promise<boolean> {
    const id = newId<MailId>(when.now);
    const told = await within.inbox.tell(account, id, INBOX_ROLES, when, TOLD_MAX);
    if (!told) return false;
    const { address, waiting } = told;
    // On the connection of the transaction: decisions that wait for it may hold all others.
    const catalogue = new Catalogue(within.configuredOperations);
    const named: Line[] = [];
    for (const item of waiting.slice(0, NAMED_MAX)) named.push(await this.#lineOf(item, catalogue));
    const [only] = waiting.length === 1 ? named : [];
    const subject = only ? `${only.what} (${only.application})` : `${waiting.length} requests of agents wait for you`;
    const text = [
      ...(only ? ['An agent waits for you.'] : ['Agents wait for you.']),
      ...named.map(({ what, application, until, url }) => `${what}\n${application}, until ${until}\n${url}`),
      ...(waiting.length > NAMED_MAX ? [`And ${waiting.length - NAMED_MAX} more.`] : []),
      `Everything that waits for you:\n${this.#parts.publicUrl}/console/inbox`,
      `Nothing happens without you. Turn these mails off in your account:\n${this.#parts.publicUrl}/console/account\n`,
    ].join('\n\n');
    await this.#parts.mail.write({ id, to: address, subject, text, tellsOfWaiting: true }, within.mails);
    return true;
  }

  async #lineOf(item: WaitingRow, catalogue: Catalogue): Promise<Line> {
    const { publicUrl } = this.#parts;
    const application = oneLine(item.applicationName);
    const until = item.expiresAt.toISOString();
    if (item.kind === 'handoff') {
      const url = `${publicUrl}/handoffs/${item.id}?app=${item.applicationId}`;
      return { what: `Take control: ${REASONS[item.reason]}`, application, until, url };
    }
    const operation = await catalogue.exact(item.applicationId, item.operationId, item.operationRevision);
    return {
      what: `To approve: ${oneLine(operation?.title ?? item.operationId)}`,
      application,
      until,
      url: `${publicUrl}/approve/${item.id}`,
    };
  }
}

const REASONS: Readonly<Record<Extract<WaitingRow, { kind: 'handoff' }>['reason'], string>> = {
  login: 'a page asks to sign in',
  otp: 'a page asks for a code',
  captcha: 'a page asks for proof of a human',
  payment: 'a page asks for a payment',
  consent: 'a page asks for consent',
  review: 'something is to be looked over',
  other: 'an agent needs help in its browser',
};

const oneLine = (text: string): string => text.replace(/\s+/gu, ' ');
