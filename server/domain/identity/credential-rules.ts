// Rules that agent keys and tokens share: how they are shown, when they expire, and from which address ranges they can
// be used.
import type { CREDENTIAL_STATUSES } from '../../../contract/agent-keys.ts';
import type { CredentialRow } from '../../engines/store/rows/credentials.ts';
import { invalidRequest } from '../faults.ts';
import { parseRange } from './cidr.ts';

type Status = (typeof CREDENTIAL_STATUSES)[number];

export function statusOf({ revokedAt, expiresAt }: CredentialRow, now: Date): Status {
  if (revokedAt) return 'revoked';
  return expiresAt && expiresAt <= now ? 'expired' : 'active';
}

/** Returns the fields that the views of keys and tokens share. The hash is never included. */
export const credentialView = <Id extends string>(row: CredentialRow & { readonly id: Id }, now: Date) => ({
  id: row.id,
  name: row.name,
  prefix: row.prefix,
  scopes: [...row.scopes],
  cidrAllow: [...row.cidrAllow],
  status: statusOf(row, now),
  createdAt: row.createdAt.toISOString(),
  expiresAt: row.expiresAt?.toISOString(),
  revokedAt: row.revokedAt?.toISOString(),
  lastUsedAt: row.lastUsedAt?.toISOString(),
  lastUsedIp: row.lastUsedIp,
});

/** Parses an expiry time, which must be in the future. */
export function parseFutureExpiry(text: string | undefined, now: Date): Date | undefined {
  if (text === undefined) return undefined;
  const expiryDate = new Date(text);
  if (!(expiryDate > now))
    throw invalidExpiry(`is ${text}, which is not in the future (the time is ${now.toISOString()})`);
  return expiryDate;
}

/** Parses a new expiry time, which must not be later than the current one: a credential cannot be extended. */
export function parseEarlierExpiry(
  text: string | undefined,
  currentExpiry: Date | undefined,
  now: Date,
): Date | undefined {
  const expiryDate = parseFutureExpiry(text, now);
  if (expiryDate && currentExpiry && expiryDate > currentExpiry)
    throw invalidExpiry(
      `is later than ${currentExpiry.toISOString()}; an expiry can only be moved to an earlier time. Issue a new key instead`,
    );
  return expiryDate;
}

export const invalidExpiry = (message: string): Error => invalidRequest([{ path: 'expiresAt', message }]);

export function cleanRanges(ranges: readonly string[] = []): string[] {
  const issues = ranges.flatMap((range, index) =>
    parseRange(range)
      ? []
      : [{ path: `cidrAllow[${index}]`, message: `is ${JSON.stringify(range)}; expected a range like 203.0.113.0/24` }],
  );
  if (issues.length > 0) throw invalidRequest(issues);
  return [...new Set(ranges)];
}
