// Certificate authorities that sessions can trust. Only the details of an upload are shown later, never its content.
import { type Static, Type } from 'typebox';
import { Time, Uuid, Warning } from './common.ts';

export const CERTIFICATES_PER_SESSION_MAX = 50;
export const CERTIFICATES_PER_APPLICATION_MAX = 1000;
/** Larger than a PEM bundle of all public root certificates. */
export const CERTIFICATE_UPLOAD_BYTES_MAX = 1_000_000;
/** Maximum total size of the certificates that one session trusts, in bytes. */
export const TRUSTED_CERTIFICATE_BYTES_MAX = 2_000_000;

export const Certificate = Type.Object(
  {
    id: Uuid('Id of the upload, for use in `proxySettings.caCertificates`.'),
    createdAt: Time('When the file was uploaded.'),
    updatedAt: Time('Equal to `createdAt`: uploads do not change.'),
    projectId: Uuid('Id of the application that the upload belongs to.'),
    subjects: Type.Array(Type.String(), { description: 'Subject of each certificate, in the order of the file.' }),
    fingerprints: Type.Array(Type.String(), {
      description: 'Fingerprint of each certificate: `sha256:` followed by 64 hexadecimal digits.',
    }),
    notAfter: Time('When the first of the certificates expires.'),
    warnings: Type.Optional(
      Type.Array(Warning, {
        description: 'Returned by the upload only: `not_a_ca`, `expired` or `not_yet_valid`, with an explanation.',
      }),
    ),
  },
  { description: 'One or more certificates that were uploaded together.' },
);
export type Certificate = Static<typeof Certificate>;

export const CertificateParams = Type.Object({ id: Uuid('Id of the upload.') });
