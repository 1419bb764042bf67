// Browser extensions that sessions load.
import { EXTENSION_UPLOAD_BYTES_MAX, Extension, ExtensionParams } from '../extensions.ts';
import type { Operation } from '../operation.ts';

export const EXTENSION_OPERATIONS = {
  uploadExtension: {
    tag: 'Extensions',
    method: 'POST',
    path: '/v1/browsers/extensions',
    summary: 'Upload an extension',
    description:
      'Stores an extension for sessions that name it in `extensionIds`. The file is a zip archive with `manifest.json` at its root, or a CRX3 file with a valid signature. The manifest version must be 3. The whole archive is checked before it is stored; if it is refused, `details.reason` is a stable code for what is wrong. At most 1000 extensions per application. An extension that no session has named for 90 days is deleted, unless the operator configured another period.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'both',
    upload: {
      maxBytes: EXTENSION_UPLOAD_BYTES_MAX,
      example: 'extension.zip',
      description:
        'A .zip or .crx file of at most 100 MB, with at most 10,000 entries and an unpacked size of at most 500 MB.',
    },
    responses: { 200: { description: 'The extension.', schema: Extension } },
    errors: ['missing_file', 'invalid_file', 'limit_reached'],
  },
  readExtension: {
    tag: 'Extensions',
    method: 'GET',
    path: '/v1/browsers/extensions/{id}',
    summary: 'Read an extension',
    description: 'Returns one extension, without its files.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'both',
    params: ExtensionParams,
    responses: { 200: { description: 'The extension.', schema: Extension } },
    errors: ['not_found'],
  },
  deleteExtension: {
    tag: 'Extensions',
    method: 'DELETE',
    path: '/v1/browsers/extensions/{id}',
    summary: 'Delete an extension',
    description: 'Running sessions keep their copy. New sessions that name the extension are refused.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'both',
    params: ExtensionParams,
    responses: { 204: { description: 'The extension was deleted.' } },
    errors: ['not_found'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
