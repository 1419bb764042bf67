// Certificate authorities that sessions trust.

import { Type } from 'typebox';
import { CERTIFICATE_UPLOAD_BYTES_MAX, Certificate, CertificateParams } from '../certificates.ts';
import type { Operation } from '../operation.ts';

export const CERTIFICATE_OPERATIONS = {
  uploadCertificate: {
    tag: 'Certificates',
    method: 'POST',
    path: '/v1/browsers/certificates',
    summary: 'Upload certificates',
    description:
      'Keeps certificate authorities for sessions that name the upload in `proxySettings.caCertificates`. Certificates that are no authority, or have expired, are taken with a warning. A file with a private key in it is refused. At most 1000 uploads per application; kept until deleted.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'both',
    upload: {
      maxBytes: CERTIFICATE_UPLOAD_BYTES_MAX,
      example: 'ca.pem',
      description: 'PEM with one or more certificates, or one certificate in DER form, at most 1 MB.',
    },
    responses: { 200: { description: 'The certificates that were read.', schema: Certificate } },
    errors: ['missing_file', 'invalid_file', 'limit_reached'],
  },
  listCertificates: {
    tag: 'Certificates',
    method: 'GET',
    path: '/v1/browsers/certificates',
    summary: 'List certificates',
    description: 'All uploads of the application, newest first; never the certificates themselves. A bare array.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'both',
    responses: { 200: { description: 'The uploads.', schema: Type.Array(Certificate) } },
    errors: [],
  },
  readCertificate: {
    tag: 'Certificates',
    method: 'GET',
    path: '/v1/browsers/certificates/{id}',
    summary: 'Read certificates',
    description: 'One upload.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'both',
    params: CertificateParams,
    responses: { 200: { description: 'The upload.', schema: Certificate } },
    errors: ['not_found'],
  },
  deleteCertificate: {
    tag: 'Certificates',
    method: 'DELETE',
    path: '/v1/browsers/certificates/{id}',
    summary: 'Delete certificates',
    description: 'Sessions that run go on trusting them; a create that names them is refused from now on.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'both',
    params: CertificateParams,
    responses: { 204: { description: 'Deleted.' } },
    errors: ['not_found'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
