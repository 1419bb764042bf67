// Stored credentials for other services.
import { ApplicationParams } from '../applications.ts';
import { IfMatchHeader, PageQuery } from '../common.ts';
import type { Operation } from '../operation.ts';
import {
  DeleteStoredCredentialQuery,
  StoredCredential,
  StoredCredentialPage,
  StoredCredentialParams,
  WriteStoredCredential,
} from '../stored-credentials.ts';
import { ETAG, READ_APPLICATIONS_SCOPES } from './shared.ts';

const CREDENTIALS_PATH = '/v1/applications/{appId}/credentials';
const WRITE_SCOPES = ['credentials:write'] as const;
const READ = [...READ_APPLICATIONS_SCOPES, ...WRITE_SCOPES] as const;

export const STORED_CREDENTIAL_OPERATIONS = {
  listStoredCredentials: {
    tag: 'Credentials',
    method: 'GET',
    path: CREDENTIALS_PATH,
    summary: 'List credentials',
    description: 'Returns the credentials of the application, without their values.',
    credential: 'account',
    scopes: READ,
    isWrite: false,
    mount: 'native',
    params: ApplicationParams,
    query: PageQuery,
    responses: { 200: { description: 'A page of credentials.', schema: StoredCredentialPage } },
    errors: ['not_found'],
  },
  readStoredCredential: {
    tag: 'Credentials',
    method: 'GET',
    path: `${CREDENTIALS_PATH}/{id}`,
    summary: 'Read a credential',
    description: 'Returns a credential without its value, which is never returned.',
    credential: 'account',
    scopes: READ,
    isWrite: false,
    mount: 'native',
    params: StoredCredentialParams,
    responses: { 200: { description: 'The credential.', schema: StoredCredential, headers: ETAG } },
    errors: ['not_found'],
  },
  writeStoredCredential: {
    tag: 'Credentials',
    method: 'PUT',
    path: `${CREDENTIALS_PATH}/{id}`,
    summary: 'Write or rotate a credential',
    description:
      'Writes the value with its hosts or origins. If the credential already exists, `If-Match` is required and the write is a rotation: new calls use the new value at once, and the earlier one can be restored for 24 hours. The value is sealed, and never returned. Requires the role developer.',
    credential: 'account',
    scopes: WRITE_SCOPES,
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: StoredCredentialParams,
    headers: IfMatchHeader,
    body: WriteStoredCredential,
    bodyExample: { type: 'api_key', value: { key: 'key-of-the-shop' }, hosts: ['api.shop.example'] },
    responses: {
      200: { description: 'The credential was rotated.', schema: StoredCredential, headers: ETAG },
      201: { description: 'The credential was created.', schema: StoredCredential, headers: ETAG },
    },
    errors: ['not_found', 'precondition_failed', 'precondition_required', 'limit_reached'],
  },
  rollBackStoredCredential: {
    tag: 'Credentials',
    method: 'POST',
    path: `${CREDENTIALS_PATH}/{id}/rollback`,
    summary: 'Restore the previous value of a credential',
    description:
      'Restores the previous version with its hosts or origins, as a new version. Possible for 24 hours after a rotation. Requires the role admin.',
    credential: 'account',
    scopes: WRITE_SCOPES,
    isWrite: true,
    mount: 'native',
    params: StoredCredentialParams,
    responses: { 200: { description: 'The credential.', schema: StoredCredential, headers: ETAG } },
    errors: ['not_found', 'gone'],
  },
  deleteStoredCredential: {
    tag: 'Credentials',
    method: 'DELETE',
    path: `${CREDENTIALS_PATH}/{id}`,
    summary: 'Delete a credential',
    description:
      'Destroys the value and its earlier versions at once. Refused while a published operation names the credential, unless `force` is set. Requires the role admin.',
    credential: 'account',
    scopes: WRITE_SCOPES,
    isWrite: true,
    mount: 'native',
    params: StoredCredentialParams,
    query: DeleteStoredCredentialQuery,
    headers: IfMatchHeader,
    responses: { 204: { description: 'The credential was deleted.' } },
    errors: ['not_found', 'not_ready', 'precondition_failed', 'precondition_required'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
