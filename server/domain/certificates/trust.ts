// Makes one session trust the certificate authorities that its create request names. Other sessions are not affected.
// Chromium reads the authorities from a managed policy at startup. Verification is otherwise unchanged: wrong names,
// wrong dates and unknown issuers still fail.
import { TRUSTED_CERTIFICATE_BYTES_MAX } from '../../../contract/certificates.ts';
import type { CertificateRows } from '../../engines/store/rows/certificates.ts';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import type { ApplicationId, CertificateId } from '../../kit/ids.ts';
import { fault, invalidRequest } from '../faults.ts';
import type { Watcher } from '../sessions/watchers.ts';

const CA_CERTIFICATES_FIELD = 'proxySettings.caCertificates';

export const trustWatcher = (rows: Pick<CertificateRows, 'ders'>): Watcher => ({
  name: 'certificates',

  check: async (caller, { watcherSettings }) => {
    if (!watcherSettings.caCertificates) return undefined;
    await resolveTrusted(rows, caller.applicationId, watcherSettings.caCertificates);
    return { storedSettings: { ids: watcherSettings.caCertificates } };
  },

  prepare: async row => {
    const ids = storedIds(row);
    if (ids.length === 0) return undefined;
    return { policies: { CACertificates: await resolveTrusted(rows, row.applicationId, ids) } };
  },
});

/**
 * Returns the certificates sorted and without duplicates. Equal sets then give equal policies, which allows a matching
 * warm browser to be found.
 */
async function resolveTrusted(
  rows: Pick<CertificateRows, 'ders'>,
  application: ApplicationId,
  ids: readonly string[],
): Promise<readonly string[]> {
  // Returns only certificates of this application, so the id of another application's certificate counts as missing.
  const dersById = await rows.ders(application, ids as readonly CertificateId[]);
  const missingId = ids.find(id => !dersById.has(id as CertificateId));
  if (missingId !== undefined)
    throw fault(
      'unknown_certificate',
      `${CA_CERTIFICATES_FIELD} names the certificate ${missingId}, which does not exist in this application.`,
      {
        advice: 'Upload the certificate first, or correct the id.',
        details: { field: CA_CERTIFICATES_FIELD, id: missingId },
      },
    );
  const ders = new Set([...dersById.values()].flat().map(der => der.toString('base64')));
  assertSize([...ders].reduce((sum, der) => sum + der.length, 0) * (3 / 4));
  return [...ders].sort();
}

function assertSize(bytes: number): void {
  if (bytes > TRUSTED_CERTIFICATE_BYTES_MAX)
    throw invalidRequest([
      {
        path: CA_CERTIFICATES_FIELD,
        message: `names certificates with a total size of ${bytes} bytes; expected at most ${TRUSTED_CERTIFICATE_BYTES_MAX}`,
      },
    ]);
}

/** The ids that `check` stored in the session's settings. */
function storedIds({ settings }: SessionRow): readonly string[] {
  const { ids }: { ids?: unknown } = Object(settings.certificates);
  return Array.isArray(ids) ? ids.map(String) : [];
}
