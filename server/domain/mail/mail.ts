// E-mails to people. Each e-mail is stored as a row first. A clock task sends it, and repeats failed attempts at
// growing intervals for up to a day. Without a mail server, the rows are the operator's outbox: `berth outbox`.
import type { MailSender } from '../../engines/mailer/smtp-sender.ts';
import type { MailRow, Mails } from '../../engines/store/rows/mails.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import { boundedText } from '../../kit/foreign.ts';
import { type MailId, newId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { REST_INTERVAL_MS, type Task } from '../../kit/task.ts';
import { withTimeout } from '../../kit/wait.ts';
import { fault } from '../faults.ts';

const SEND_INTERVAL_MS = 5_000;
const BATCH_MAX = 20;
/** How long an e-mail is reserved for the process that sends it. Longer than an attempt can take. */
const RESERVATION_MS = 60_000;
/** The time limit of an attempt. */
const SEND_TIMEOUT_MS = 45_000;
const FIRST_RETRY_DELAY_MS = 30_000;
const RETRY_DELAY_MAX_MS = 3_600_000;
const GIVE_UP_AFTER_MS = 24 * 3_600_000;
const MAIL_KEPT_MS = 31 * 24 * 3_600_000;
const HOUR_MS = 3_600_000;
const FORGET_INTERVAL_MS = 3_600_000;
const PER_RECIPIENT_PER_HOUR_MAX = 20;
const SUBJECT_CHARACTERS_MAX = 200;
const TEXT_CHARACTERS_MAX = 20_000;
const FAILURE_CHARACTERS_MAX = 300;

export interface NewMail {
  readonly id?: MailId;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /**
   * Whether the e-mail announces items that are waiting for its recipient. It is then sent only if at least one of them
   * is still waiting.
   */
  readonly tellsOfWaiting?: boolean;
}

export interface MailParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly store: Pick<Store, 'mails'>;
  /** Absent if there is no mail server. */
  readonly sender?: MailSender;
  /** Makes the task with this name run soon. */
  readonly trigger: (task: string) => void;
}

export class Mail {
  readonly #parts: MailParts;
  readonly tasks: readonly Task[];

  constructor(parts: MailParts) {
    this.#parts = parts;
    const forgetTask: Task = { name: 'forget_mails', everyMs: FORGET_INTERVAL_MS, run: () => this.#forget() };
    this.tasks = [...(parts.sender ? [this.#sendTask(parts.sender)] : []), forgetTask];
  }

  /**
   * Queues an e-mail. Resolves when the row is durable.
   * @throws Fault `rate_limited` for too many e-mails to one address.
   */
  async queue(newMail: NewMail): Promise<void> {
    await this.write(newMail, this.#parts.store.mails);
    this.send();
  }

  /**
   * Inserts the e-mail with `mails`, which may belong to a transaction. `send` must be called after the commit.
   * @throws Fault `rate_limited`
   */
  async write(
    { id, to, subject, text, tellsOfWaiting }: NewMail,
    mails: Pick<Mails, 'count' | 'insert'>,
  ): Promise<void> {
    const { clock, sender } = this.#parts;
    if (/[\r\n]/.test(to + subject)) throw new Error('the address or the subject of an e-mail contains a line break');
    const now = clock.now();
    if ((await mails.count(to, addMs(now, -HOUR_MS))) >= PER_RECIPIENT_PER_HOUR_MAX) throw tooManyMails();
    await mails.insert({
      ...{ id: id ?? newId<MailId>(now), recipient: to, attempts: 0, createdAt: now },
      subject: boundedText(subject, SUBJECT_CHARACTERS_MAX),
      body: boundedText(text, TEXT_CHARACTERS_MAX),
      ...(sender ? { dueAt: now } : {}),
      ...(tellsOfWaiting ? { tellsOfWaiting } : {}),
    });
  }

  /** Triggers the task that sends the queued e-mails. */
  send(): void {
    if (this.#parts.sender) this.#parts.trigger('send_mails');
  }

  #sendTask(sender: MailSender): Task {
    const run = async (): Promise<Record<string, number>> => {
      const { store, clock } = this.#parts;
      let sent = 0;
      const dueMails = await store.mails.due(clock.now(), BATCH_MAX);
      for (const mail of dueMails) sent += (await this.#send(mail, sender)) ? 1 : 0;
      return { sent, failed: dueMails.length - sent };
    };
    return { name: 'send_mails', everyMs: SEND_INTERVAL_MS, restMs: REST_INTERVAL_MS, run };
  }

  async #send(mail: MailRow, sender: MailSender): Promise<boolean> {
    const { store, clock, log } = this.#parts;
    const now = clock.now();
    if (!(await store.mails.take(mail.id, now, addMs(now, RESERVATION_MS)))) return false;
    try {
      const outgoingMail = { id: mail.id, to: mail.recipient, subject: mail.subject, text: mail.body };
      await withTimeout(SEND_TIMEOUT_MS, 'the mail server', () => sender.send(outgoingMail));
    } catch (error) {
      const failure = boundedText(reason(error), FAILURE_CHARACTERS_MAX);
      log.warn('mail.failed', { mail: mail.id, attempts: mail.attempts + 1, error: failure });
      await store.mails.recordFailure(mail.id, failure, nextAttemptAt(mail, clock.now()));
      return false;
    }
    await store.mails.markSent(mail.id, clock.now());
    return true;
  }

  async #forget(): Promise<Record<string, number>> {
    const { store, clock } = this.#parts;
    return { removed: await store.mails.removeOlder(addMs(clock.now(), -MAIL_KEPT_MS)) };
  }
}

function nextAttemptAt({ createdAt, attempts }: MailRow, now: Date): Date | undefined {
  if (now.getTime() - createdAt.getTime() > GIVE_UP_AFTER_MS) return undefined;
  return addMs(now, Math.min(RETRY_DELAY_MAX_MS, FIRST_RETRY_DELAY_MS * 2 ** attempts));
}

const tooManyMails = (): Error =>
  fault('rate_limited', 'Too many e-mails were sent to this address.', {
    advice: 'Wait an hour.',
    details: {
      ...{ limit: PER_RECIPIENT_PER_HOUR_MAX, used: PER_RECIPIENT_PER_HOUR_MAX },
      retryAfterSeconds: HOUR_MS / 1000,
    },
  });
