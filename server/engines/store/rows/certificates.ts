// Certificate authorities that sessions trust.
import type { ApplicationId, CertificateId } from '../../../kit/ids.ts';

export interface CertificateRow {
  readonly id: CertificateId;
  readonly applicationId: ApplicationId;
  readonly subjects: readonly string[];
  readonly fingerprints: readonly string[];
  /** The expiry of the certificate that expires first. */
  readonly notAfter: Date;
  readonly createdAt: Date;
}

export interface CertificateRows {
  /** `limit`: the maximum number of uploads per application. */
  insert(row: CertificateRow, ders: readonly Buffer[], limit: number): Promise<'inserted' | 'limit_reached'>;
  /** Newest first. */
  list(application: ApplicationId): Promise<CertificateRow[]>;
  get(application: ApplicationId, id: CertificateId): Promise<CertificateRow | undefined>;
  /** Returns the certificates of the uploads with these ids, DER-encoded. Uploads that do not exist are left out. */
  ders(
    application: ApplicationId,
    ids: readonly CertificateId[],
  ): Promise<ReadonlyMap<CertificateId, readonly Buffer[]>>;
  remove(application: ApplicationId, id: CertificateId): Promise<boolean>;
}
