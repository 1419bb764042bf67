// Authorities that sessions trust.
import type { ApplicationId, CertificateId } from '../../../kit/ids.ts';

export interface CertificateRow {
  readonly id: CertificateId;
  readonly applicationId: ApplicationId;
  readonly subjects: readonly string[];
  readonly fingerprints: readonly string[];
  /** The first of them to expire. */
  readonly notAfter: Date;
  readonly createdAt: Date;
}

export interface CertificateRows {
  /** `limit` = most uploads of the application. */
  insert(row: CertificateRow, ders: readonly Buffer[], limit: number): Promise<'inserted' | 'limit_reached'>;
  /** Newest first. */
  list(application: ApplicationId): Promise<CertificateRow[]>;
  get(application: ApplicationId, id: CertificateId): Promise<CertificateRow | undefined>;
  /** The certificates of those uploads that there are, as DER. */
  ders(
    application: ApplicationId,
    ids: readonly CertificateId[],
  ): Promise<ReadonlyMap<CertificateId, readonly Buffer[]>>;
  remove(application: ApplicationId, id: CertificateId): Promise<boolean>;
}
