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
      'Stores certificate authorities for sessions that name the upload in `proxySettings.caCertificates`. Certificates that are not authorities, or that have expired, are accepted with a warning. A file that contains a private key is refused. At most 1000 uploads per application. Uploads are stored until they are deleted.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'both',
    upload: {
      maxBytes: CERTIFICATE_UPLOAD_BYTES_MAX,
      example: 'ca.pem',
      description: 'A PEM file with one or more certificates, or a DER file with one certificate. At most 1 MB.',
    },
    responses: { 200: { description: 'The certificates that the file contains.', schema: Certificate } },
    errors: ['missing_file', 'invalid_file', 'limit_reached'],
  },
  listCertificates: {
    tag: 'Certificates',
    method: 'GET',
    path: '/v1/browsers/certificates',
    summary: 'List certificates',
    description:
      'Returns all uploads of the application, newest first, as a JSON array. The certificates themselves are never returned.',
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
    description: 'Returns one upload.',
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
    description: 'Running sessions keep trusting the certificates. New sessions that name the upload are refused.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'both',
    params: CertificateParams,
    responses: { 204: { description: 'The upload was deleted.' } },
    errors: ['not_found'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
