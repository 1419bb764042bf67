// The wiring of the inbox: what waits for members, and the mails that tell them.
import { Following } from '../domain/following.ts';
import { Inbox } from '../domain/inbox/inbox.ts';
import { InboxMails } from '../domain/inbox/mails.ts';
import type { Mail } from '../domain/mail/mail.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';
import type { openInvocations } from './invocations.ts';

export interface InboxDeps {
  readonly mail: Mail;
  readonly catalogue: ReturnType<typeof openInvocations>['catalogue'];
}

export async function openInbox(runtime: Runtime, { store, config }: Foundation, { mail, catalogue }: InboxDeps) {
  const { clock } = runtime;
  const following = await Following.open('inbox_changed', { store, clock });
  const mails = new InboxMails({
    ...{ ...runtime, store, mail, publicUrl: config.publicUrl },
    titleOf: async (application, operationId, revision) =>
      (await catalogue.exact(application, operationId, revision))?.title ?? operationId,
  });
  return {
    service: new Inbox({ store, following, clock }),
    tasks: mails.tasks,
    close: () => following.close(),
  };
}
