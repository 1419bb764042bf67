// How agent keys and tokens are listed: the same fields and columns for both, and never the secret.
import { type Terminal, table } from '../terminal.ts';

interface Credential {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly scopes: readonly string[];
  readonly createdAt: Date;
  readonly expiresAt?: Date;
  readonly revokedAt?: Date;
  readonly lastUsedAt?: Date;
}

export type ListedCredential = ReturnType<typeof toListItem>;

/** The form that is printed with `--json`. */
export const toListItem = (row: Credential, now: Date) => ({
  id: row.id,
  name: row.name,
  prefix: row.prefix,
  scopes: row.scopes,
  status: row.revokedAt ? 'revoked' : row.expiresAt && row.expiresAt <= now ? 'expired' : 'active',
  createdAt: row.createdAt.toISOString(),
  ...(row.expiresAt ? { expiresAt: row.expiresAt.toISOString() } : {}),
  ...(row.revokedAt ? { revokedAt: row.revokedAt.toISOString() } : {}),
  ...(row.lastUsedAt ? { lastUsedAt: row.lastUsedAt.toISOString() } : {}),
});

const HEADING = ['ID', 'NAME', 'PREFIX', 'STATUS', 'CREATED', 'LAST USED', 'SCOPES'];

export function printCredentials(terminal: Terminal, credentials: readonly ListedCredential[]): void {
  const tableRows = credentials.map(({ id, name, prefix, status, createdAt, lastUsedAt = 'never', scopes }) => [
    ...[id, name, prefix, status, createdAt, lastUsedAt],
    scopes.join(' '),
  ]);
  terminal.print(table([HEADING, ...tableRows]));
}
