// Certificate authorities that sessions can be told to trust. What was uploaded is never shown again, only what it says.
import { type Static, Type } from 'typebox';
import { Time, Uuid, Warning } from './common.ts';

export const CERTIFICATES_PER_SESSION_MAX = 50;
export const CERTIFICATES_PER_APPLICATION_MAX = 1000;
/** A PEM bundle of every public root is far below this. */
export const CERTIFICATE_UPLOAD_BYTES_MAX = 1_000_000;
/** What one session may trust, all its uploads together. */
export const TRUSTED_BYTES_MAX = 2_000_000;

export const Certificate = Type.Object(
  {
    id: Uuid('The upload: name it in `proxySettings.caCertificates`.'),
    createdAt: Time('When it was uploaded.'),
    updatedAt: Time('The same: an upload does not change.'),
    projectId: Uuid('The application it belongs to.'),
    subjects: Type.Array(Type.String(), { description: 'Who each certificate in it names, in the order of the file.' }),
    fingerprints: Type.Array(Type.String(), {
      description: 'Of each certificate: `sha256:` and 64 hexadecimal digits.',
    }),
    notAfter: Time('When the first of them expires.'),
    warnings: Type.Optional(
      Type.Array(Warning, {
        description: 'At the upload only: `not_a_ca`, `expired` or `not_yet_valid`, with what it means.',
      }),
    ),
  },
  { description: 'One or more certificates that were uploaded together.' },
);
export type Certificate = Static<typeof Certificate>;

export const CertificateParams = Type.Object({ id: Uuid('The certificate.') });
