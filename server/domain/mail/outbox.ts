// The operator's outbox: e-mails with their text. They can contain sign-in codes, so each reading is recorded in the
// audit log.
import { MAILS_LISTED_MAX, type Mail, type MailList } from '../../../contract/mails.ts';
import type { MailRow } from '../../engines/store/rows/mails.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Audit } from '../audit/audit.ts';
import { byCaller } from '../audit/by-caller.ts';
import { fault } from '../faults.ts';
import type { HumanCaller } from '../identity/caller.ts';

export interface OutboxParts {
  readonly store: Pick<Store, 'accounts' | 'mails'>;
  readonly audit: Pick<Audit, 'record'>;
  readonly hasMailServer: boolean;
}

export class Outbox {
  readonly #parts: OutboxParts;

  constructor(parts: OutboxParts) {
    this.#parts = parts;
  }

  async list(caller: HumanCaller): Promise<MailList> {
    const { store, audit, hasMailServer } = this.#parts;
    const isOperator = (await store.accounts.first())?.id === caller.accountId;
    const outcome = isOperator ? 'success' : 'refused';
    await audit.record({ action: 'outbox.read', accountId: caller.accountId, outcome, ...byCaller(caller) });
    if (!isOperator) throw operatorRequired();
    return { hasMailServer, data: (await store.mails.list(MAILS_LISTED_MAX)).map(viewOf) };
  }
}

const viewOf = ({ id, recipient, subject, body, createdAt, sentAt, dueAt, failure }: MailRow): Mail => ({
  ...{ id, to: recipient, subject, text: body, createdAt: createdAt.toISOString() },
  ...(sentAt ? { sentAt: sentAt.toISOString() } : {}),
  ...(dueAt ? { nextAttemptAt: dueAt.toISOString() } : {}),
  ...(failure === undefined ? {} : { failure }),
});

const operatorRequired = (): Error =>
  fault('permission_denied', 'Only the operator, whose account was set up at the first start, can read the outbox.', {
    advice: 'Sign in with that account, or ask the operator.',
  });
