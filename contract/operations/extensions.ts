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
      'Keeps an extension for sessions that name it in `extensionIds`. A zip with `manifest.json` at its root, or a .crx of version 3 whose signature is right; manifest version 3. The whole archive is read first: `details.reason` of a refusal is a word for each thing that can be wrong. At most 1000 per application; one that no session names for 90 days is deleted, unless the operator says otherwise.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'both',
    upload: {
      maxBytes: EXTENSION_UPLOAD_BYTES_MAX,
      example: 'extension.zip',
      description: 'A .zip or .crx of at most 100 MB, with at most 10,000 entries, that unpacks to at most 500 MB.',
    },
    responses: { 200: { description: 'The extension.', schema: Extension } },
    errors: ['missing_file', 'invalid_file', 'limit_reached'],
  },
  readExtension: {
    tag: 'Extensions',
    method: 'GET',
    path: '/v1/browsers/extensions/{id}',
    summary: 'Read an extension',
    description: 'One extension; never its files.',
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
    description: 'Sessions that run keep their copy; a create that names it is refused from now on.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'both',
    params: ExtensionParams,
    responses: { 204: { description: 'Deleted.' } },
    errors: ['not_found'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
