// On an empty database: one account, one application, one key, so that the first curl works. Otherwise nothing.
import type { AccountRow, ApplicationRow, Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { type AccountId, newId } from '../../kit/ids.ts';
import type { Secret } from '../../kit/secret.ts';
import type { AgentKeys } from './agent-keys.ts';
import type { Applications } from './applications.ts';

export interface FirstStart {
  readonly account: AccountRow;
  readonly application?: ApplicationRow;
  /** Only from the start that made it: it is stored as a hash. */
  readonly key?: Secret;
}

export interface FirstStartParts {
  readonly store: Pick<Store, 'accounts' | 'applications'>;
  readonly clock: Clock;
  readonly applications: Applications;
  readonly agentKeys: AgentKeys;
}

export async function firstStart({ store, clock, applications, agentKeys }: FirstStartParts): Promise<FirstStart> {
  const account = (await store.accounts.first()) ?? (await openAccount(store, clock));
  const [application] = await store.applications.list(account.id, { limit: 1 });
  if (application) return { account, application };
  const made = await applications.insert(account.id, { name: 'Default' });
  const { key } = await agentKeys.issue(made.id, { name: 'First key' });
  return { account, application: made, key };
}

async function openAccount(store: Pick<Store, 'accounts'>, clock: Clock): Promise<AccountRow> {
  const now = clock.now();
  const account: AccountRow = { id: newId<AccountId>(now), name: 'Operator', createdAt: now };
  await store.accounts.insert(account);
  return account;
}
