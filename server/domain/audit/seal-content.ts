// The content of a seal, and the digests that bind a seal to its entries. A seal is a compact JWS over the canonical
// JSON of the content.
import type { AuditRow } from '../../engines/store/rows/audit.ts';
import { digestOf, sha256 } from '../../kit/canonical-json.ts';

export const SEAL_TYPE = 'berth-audit-seal+jwt';

export interface SealContent {
  /** Id of the application, or the nil id for entries that belong to no application. */
  readonly chain: string;
  readonly number: number;
  /** Digest of the previous seal. Absent in the first seal of a chain. */
  readonly previous?: string;
  readonly first: number;
  readonly firstId: string;
  readonly last: number;
  readonly lastId: string;
  readonly count: number;
  /** Digest of the list of entry digests. */
  readonly entries: string;
  /** ISO 8601. */
  readonly at: string;
}

export const entryDigest = (row: AuditRow): string => digestOf({ ...row, at: row.at.toISOString() });

export const sealDigest = (jws: string): string => sha256(jws);

export const listDigest = (digests: readonly string[]): string => digestOf(digests);
