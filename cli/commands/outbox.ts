// `berth outbox`: prints e-mails, for installations without a mail server and for operators who look for an e-mail that
// did not arrive.
import { printJson, type Terminal } from '../terminal.ts';
import { withLocal } from './keys.ts';
import type { JsonOption } from './tokens.ts';

export function printOutbox(terminal: Terminal, options: JsonOption): Promise<void> {
  return withLocal(terminal, async local => {
    const mails = (await local.listMails()).map(
      ({ id, recipient, subject, body, createdAt, sentAt, dueAt, failure }) => ({
        ...{ id, to: recipient, subject, text: body, createdAt: createdAt.toISOString() },
        ...(sentAt ? { sentAt: sentAt.toISOString() } : {}),
        ...(dueAt ? { nextAttemptAt: dueAt.toISOString() } : {}),
        ...(failure === undefined ? {} : { failure }),
      }),
    );
    if (options.json) return printJson(terminal, mails);
    for (const { to, subject, text, createdAt, sentAt, failure } of mails) {
      const state = sentAt ? `sent ${sentAt}` : failure === undefined ? 'not sent' : `failed: ${failure}`;
      terminal.print(
        `To: ${to}\nSubject: ${subject}\nWritten: ${createdAt}, ${state}\n${text === '' ? '' : `\n${text}`}\n`,
      );
    }
    if (mails.length === 0) terminal.say('There are no e-mails.\n');
  });
}
