// What keys and tokens have in common: which rows are valid, which are listed, and how a revocation is announced.
import { type ExpressionBuilder, type RawBuilder, sql } from 'kysely';
import { plus } from '../../../kit/clock.ts';
import type { Tables } from '../schema.ts';
import type { Channel } from '../store.ts';

type Credentials = 'keys' | 'tokens';

const DAY_MS = 24 * 60 * 60 * 1000;
/** Credentials that have ended are still listed for this long. */
const LISTED_AFTER_END_MS = 90 * DAY_MS;

export const isAlive = (now: Date) => (eb: ExpressionBuilder<Tables, Credentials>) =>
  eb.and([eb('revokedAt', 'is', null), eb.or([eb('expiresAt', 'is', null), eb('expiresAt', '>', now)])]);

export const isListed = (now: Date): RawBuilder<boolean> => {
  const since = plus(now, -LISTED_AFTER_END_MS);
  return sql<boolean>`coalesce(least(revoked_at, expires_at), 'infinity') > ${since}`;
};

const REVOKED: Channel = 'credential_revoked';

/** A column for the statement that revokes, so that the notification is sent only when the revocation is committed. */
export const announced = sql<string>`pg_notify(${sql.lit(REVOKED)}, encode(hash, 'hex'))`;

/** As `announced`, but open connections of the key stay open. */
export const announcedKeepingConnections = sql<string>`pg_notify(${sql.lit(REVOKED)}, encode(hash, 'hex') || ' keep')`;

/** An earlier use that is written late does not replace a later one. */
export const isLaterUse = (at: Date) => (eb: ExpressionBuilder<Tables, Credentials>) =>
  eb.or([eb('lastUsedAt', 'is', null), eb('lastUsedAt', '<', at)]);
