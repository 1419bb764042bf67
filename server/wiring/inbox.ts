// The wiring of the inbox: the items that wait for members, and the e-mails that notify them.
import { ChangeFollower } from '../domain/change-follower.ts';
import { Inbox } from '../domain/inbox/inbox.ts';
import { InboxMails } from '../domain/inbox/mails.ts';
import type { Mail } from '../domain/mail/mail.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';

export interface InboxDeps {
  readonly mail: Mail;
}

export async function openInbox(runtime: Runtime, { store, config }: Foundation, { mail }: InboxDeps) {
  const { clock } = runtime;
  const changeFollower = await ChangeFollower.open('inbox_changed', { store, clock });
  const mails = new InboxMails({
    ...{ ...runtime, store, mail, publicUrl: config.publicUrl },
  });
  return {
    service: new Inbox({ store, changeFollower, clock }),
    tasks: mails.tasks,
    close: () => changeFollower.close(),
  };
}
