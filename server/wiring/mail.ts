// The e-mail family, which queues the e-mails of other families.
import { Mail } from '../domain/mail/mail.ts';
import { Outbox } from '../domain/mail/outbox.ts';
import { smtpSender } from '../engines/mailer/smtp-sender.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';

export function openMail(runtime: Runtime, { store, config, trigger, audit }: Foundation) {
  const { smtp } = config;
  const service = new Mail({ ...runtime, store, trigger, ...(smtp ? { sender: smtpSender(smtp) } : {}) });
  const outbox = new Outbox({ store, audit, hasMailServer: smtp !== undefined });
  return { service, outbox, tasks: service.tasks };
}
