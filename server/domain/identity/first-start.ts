// Prepares an empty database: one account, one application, one key for the first request, and one token that signs in
// to the console. Does nothing if an application exists.
import { CONSOLE_LINK_LIFETIME_HOURS, CONSOLE_SCOPES, type CreateToken } from '../../../contract/tokens.ts';
import type { AccountRow, ApplicationRow } from '../../engines/store/rows/accounts.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { type AccountId, newId } from '../../kit/ids.ts';
import type { Secret } from '../../kit/secret.ts';
import { newSetUpSecret } from '../people/set-up-links.ts';
import type { AgentKeys } from './agent-keys.ts';
import type { Applications } from './applications.ts';
import type { Tokens } from './tokens.ts';

const HOUR_MS = 3_600_000;

export interface FirstStart {
  readonly account: AccountRow;
  readonly application?: ApplicationRow;
  /** Present only on the start that created the key, because only the hash of the key is stored. */
  readonly key?: Secret;
  /** Present only with `key`. Signs a person in to the console for a day. */
  readonly consoleToken?: Secret;
  /**
   * Present only with `key`, and only if nobody can sign in yet. Lets a person choose the e-mail address and password
   * of this account, once, within a day.
   */
  readonly setUpSecret?: Secret;
}

export interface FirstStartParts {
  readonly store: Pick<Store, 'accounts' | 'applications' | 'signInTickets'>;
  readonly clock: Clock;
  readonly applications: Applications;
  readonly agentKeys: AgentKeys;
  readonly tokens: Pick<Tokens, 'issue'>;
}

export async function firstStart(parts: FirstStartParts): Promise<FirstStart> {
  const { store, clock, applications, agentKeys, tokens } = parts;
  const account = (await store.accounts.first()) ?? (await createAccount(store, clock));
  const [application] = await store.applications.list(account.id, { limit: 1 });
  if (application) return { account, application };
  const createdApplication = await applications.insert(account.id, { name: 'Default' });
  const { key } = await agentKeys.issue(createdApplication.id, { name: 'First key' });
  const { token: consoleToken } = await tokens.issue(account.id, consoleTokenRequest(clock));
  return {
    ...{ account, application: createdApplication, key, consoleToken },
    ...((await store.accounts.canAnyoneSignIn())
      ? {}
      : { setUpSecret: await newSetUpSecret(store, clock, account.id) }),
  };
}

/** Returns the request that creates the token for a link to the console. */
export const consoleTokenRequest = (clock: Clock): CreateToken => ({
  name: 'Console link',
  scopes: [...CONSOLE_SCOPES],
  expiresAt: addMs(clock.now(), CONSOLE_LINK_LIFETIME_HOURS * HOUR_MS).toISOString(),
});

async function createAccount(store: Pick<Store, 'accounts'>, clock: Clock): Promise<AccountRow> {
  const now = clock.now();
  const account: AccountRow = { id: newId<AccountId>(now), name: 'Operator', createdAt: now };
  await store.accounts.insert(account);
  return account;
}
