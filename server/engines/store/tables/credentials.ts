// Query parts that keys and tokens share: which rows are valid, which are listed, and how a revocation is announced.
import { type ExpressionBuilder, type RawBuilder, sql } from 'kysely';
import { addMs } from '../../../kit/clock.ts';
import type { Tables } from '../schema.ts';
import type { Channel } from '../store.ts';

type CredentialTable = 'keys' | 'tokens';

const DAY_MS = 24 * 60 * 60 * 1000;
/** How long credentials are still listed after they have expired or been revoked. */
const LISTED_AFTER_END_MS = 90 * DAY_MS;

export const isValid = (now: Date) => (eb: ExpressionBuilder<Tables, CredentialTable>) =>
  eb.and([eb('revokedAt', 'is', null), eb.or([eb('expiresAt', 'is', null), eb('expiresAt', '>', now)])]);

export const isListed = (now: Date): RawBuilder<boolean> => {
  const since = addMs(now, -LISTED_AFTER_END_MS);
  return sql<boolean>`coalesce(least(revoked_at, expires_at), 'infinity') > ${since}`;
};

const REVOCATION_CHANNEL: Channel = 'credential_revoked';

/**
 * A column to return from the statement that revokes a credential. It sends the notification, which is delivered only
 * if the revocation is committed.
 */
export const revocationAnnouncement = sql<string>`pg_notify(${sql.lit(REVOCATION_CHANNEL)}, encode(hash, 'hex'))`;

/** Like `revocationAnnouncement`, but connections that were opened with the key stay open. */
export const revocationKeepingConnections = sql<string>`pg_notify(${sql.lit(REVOCATION_CHANNEL)}, encode(hash, 'hex') || ' keep')`;

/** Whether this use is later than the stored one. Uses are not always written in the order in which they happened. */
export const isLaterUse = (at: Date) => (eb: ExpressionBuilder<Tables, CredentialTable>) =>
  eb.or([eb('lastUsedAt', 'is', null), eb('lastUsedAt', '<', at)]);
