// Uploads, lists, reads and deletes the certificate authorities of an application.
import { CERTIFICATES_PER_APPLICATION_MAX, type Certificate } from '../../../contract/certificates.ts';
import type { Warning } from '../../../contract/common.ts';
import type { CertificateRow, CertificateRows } from '../../engines/store/rows/certificates.ts';
import type { Clock } from '../../kit/clock.ts';
import { type CertificateId, isUuid, newId } from '../../kit/ids.ts';
import type { Workers } from '../../kit/worker-pool.ts';
import { fault, limitReached, notFound } from '../faults.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { ParsedCertificate } from './pem.ts';
import { READ_CERTIFICATES } from './read-job.ts';

export interface CertificatesParts {
  readonly rows: CertificateRows;
  readonly workers: Workers;
  readonly clock: Clock;
}

export class Certificates {
  readonly #parts: CertificatesParts;

  constructor(parts: CertificatesParts) {
    this.#parts = parts;
  }

  async upload(caller: AgentCaller, file: Buffer): Promise<Certificate> {
    const certificates = await this.#read(caller, file);
    const now = this.#parts.clock.now();
    const row: CertificateRow = {
      id: newId<CertificateId>(now),
      applicationId: caller.applicationId,
      subjects: certificates.map(({ subject }) => subject),
      fingerprints: certificates.map(({ fingerprint }) => fingerprint),
      notAfter: new Date(Math.min(...certificates.map(({ notAfter }) => notAfter.getTime()))),
      createdAt: now,
    };
    await this.#insert(row, certificates);
    const warnings = warningsFor(certificates, now);
    return { ...viewOf(row), ...(warnings.length > 0 ? { warnings } : {}) };
  }

  async list(caller: AgentCaller): Promise<Certificate[]> {
    return (await this.#parts.rows.list(caller.applicationId)).map(viewOf);
  }

  async read(caller: AgentCaller, id: string): Promise<Certificate> {
    const row = isUuid(id) ? await this.#parts.rows.get(caller.applicationId, id as CertificateId) : undefined;
    if (!row) throw notFound('Certificate', id);
    return viewOf(row);
  }

  /** Deletes uploaded certificates. Running sessions still trust them. New sessions cannot use them. */
  async remove(caller: AgentCaller, id: string): Promise<void> {
    const isRemoved = isUuid(id) && (await this.#parts.rows.remove(caller.applicationId, id as CertificateId));
    if (!isRemoved) throw notFound('Certificate', id);
  }

  async #read(caller: AgentCaller, file: Buffer): Promise<readonly ParsedCertificate[]> {
    const output = await this.#parts.workers.run(READ_CERTIFICATES, file, { owner: caller.applicationId });
    if ('refused' in output) throw fault('invalid_file', output.refused);
    return output.certificates;
  }

  async #insert(row: CertificateRow, certificates: readonly ParsedCertificate[]): Promise<void> {
    const ders = certificates.map(({ der }) => Buffer.from(der));
    const outcome = await this.#parts.rows.insert(row, ders, CERTIFICATES_PER_APPLICATION_MAX);
    if (outcome === 'limit_reached')
      throw limitReached('certificate uploads in this application', CERTIFICATES_PER_APPLICATION_MAX);
  }
}

const viewOf = (row: CertificateRow): Certificate => ({
  id: row.id,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.createdAt.toISOString(),
  projectId: row.applicationId,
  subjects: [...row.subjects],
  fingerprints: [...row.fingerprints],
  notAfter: row.notAfter.toISOString(),
});

function warningsFor(certificates: readonly ParsedCertificate[], now: Date): Warning[] {
  const warn = (code: string, message: string, applies: (certificate: ParsedCertificate) => boolean): Warning[] => {
    const subjects = certificates.filter(applies).map(({ subject }) => subject);
    return subjects.length === 0 ? [] : [{ code, path: 'file', message: `${message}: ${subjects.join('; ')}.` }];
  };
  return [
    ...warn(
      'not_a_ca',
      'Not a certificate authority, so certificates that it signed are not trusted',
      it => !it.isAuthority,
    ),
    ...warn('expired', 'Expired, so certificates that it signed are not trusted', it => it.notAfter <= now),
    ...warn('not_yet_valid', 'Not valid yet', it => it.notBefore > now),
  ];
}
