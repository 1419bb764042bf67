// Secrets for single-use links with which a person sets up an account: the account created at the first start, or one
// whose password was lost. The secret is in the fragment of the link, which browsers never send to a server.
import { createHash, randomBytes } from 'node:crypto';
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { type AccountId, newId, type TicketId } from '../../kit/ids.ts';
import { Secret } from '../../kit/secret.ts';

const SET_UP_LINK_HOURS = 24;
const LINK_LIFETIME_MS = SET_UP_LINK_HOURS * 3_600_000;
const SECRET_BYTES = 32;

/** Creates the secret of a new link. Called at the first start and by the command line, so no caller is checked. */
export async function newSetUpSecret(
  store: Pick<Store, 'signInTickets'>,
  clock: Clock,
  accountId: AccountId,
): Promise<Secret> {
  const now = clock.now();
  const text = `bsl_${randomBytes(SECRET_BYTES).toString('base64url')}`;
  const ticket = { id: newId<TicketId>(now), kind: 'setup', accountId, hash: digestOf(text) } as const;
  await store.signInTickets.insert({ ...ticket, createdAt: now, expiresAt: addMs(now, LINK_LIFETIME_MS) });
  return new Secret(text);
}

export const digestOf = (secret: string): Buffer => createHash('sha256').update(secret).digest();
