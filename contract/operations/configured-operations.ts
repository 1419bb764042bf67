// Operations that an application configures.
import { ApplicationParams } from '../applications.ts';
import { IfMatchHeader } from '../common.ts';
import {
  ConfiguredOperation,
  ConfiguredOperationListQuery,
  ConfiguredOperationPage,
  ConfiguredOperationParams,
  ConfiguredOperationQuery,
  ConfigureOperation,
} from '../configured-operations.ts';
import type { Operation } from '../operation.ts';
import { ETAG, READ_APPLICATIONS_SCOPES } from './shared.ts';

const OPERATIONS_PATH = '/v1/applications/{appId}/operations';
const WRITE_SCOPES = ['operations:write'] as const;
const READ = [...READ_APPLICATIONS_SCOPES, ...WRITE_SCOPES] as const;

export const CONFIGURED_OPERATIONS = {
  listConfiguredOperations: {
    tag: 'Operations',
    method: 'GET',
    path: OPERATIONS_PATH,
    summary: 'List configured operations',
    description: 'Returns the built-in operations and those of the application, with their newest revisions.',
    credential: 'account',
    scopes: READ,
    isWrite: false,
    mount: 'native',
    params: ApplicationParams,
    query: ConfiguredOperationListQuery,
    responses: { 200: { description: 'A page of operations.', schema: ConfiguredOperationPage } },
    errors: ['not_found'],
  },
  readConfiguredOperation: {
    tag: 'Operations',
    method: 'GET',
    path: `${OPERATIONS_PATH}/{id}`,
    summary: 'Read a configured operation',
    description: 'Returns the newest revision of the operation, or the one in `revision`.',
    credential: 'account',
    scopes: READ,
    isWrite: false,
    mount: 'native',
    params: ConfiguredOperationParams,
    query: ConfiguredOperationQuery,
    responses: { 200: { description: 'The operation.', schema: ConfiguredOperation, headers: ETAG } },
    errors: ['not_found'],
  },
  configureOperation: {
    tag: 'Operations',
    method: 'PUT',
    path: `${OPERATIONS_PATH}/{id}`,
    summary: 'Create or change an operation',
    description:
      'Writes the whole operation. A change to the content creates a new revision; agents keep calling the published revision until the next publish. For a built-in operation, only `enabled`, `approval` and `price` can be set; they take effect at once. `If-Match` is required if the operation already exists. Requires the role developer; raising the price or requiring a weaker approval requires the role admin.',
    credential: 'account',
    scopes: WRITE_SCOPES,
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: ConfiguredOperationParams,
    headers: IfMatchHeader,
    body: ConfigureOperation,
    bodyExample: {
      title: 'Cancel an order',
      description: 'Cancels an order that has not shipped.',
      kind: 'http',
      effect: 'write',
      inputSchema: {
        type: 'object',
        required: ['orderId'],
        properties: { orderId: { type: 'string', pattern: '^A-[0-9]{1,9}$' } },
        additionalProperties: false,
      },
      binding: {
        method: 'POST',
        url: 'https://api.shop.example/orders/{orderId}/cancel',
        auth: { credentialId: 'shop-api', as: 'bearer' },
        idempotencyHeader: 'Idempotency-Key',
      },
    },
    responses: {
      200: { description: 'The operation was changed.', schema: ConfiguredOperation, headers: ETAG },
      201: { description: 'The operation was created, as a draft.', schema: ConfiguredOperation, headers: ETAG },
    },
    errors: [
      'not_found',
      'invalid_schema',
      'precondition_failed',
      'precondition_required',
      'limit_reached',
      'name_taken',
      'feature_unavailable',
      'busy',
    ],
  },
  publishOperation: {
    tag: 'Operations',
    method: 'POST',
    path: `${OPERATIONS_PATH}/{id}/publish`,
    summary: 'Publish an operation',
    description: 'Lets agents that have a grant call the newest revision. Requires the role developer.',
    credential: 'account',
    scopes: WRITE_SCOPES,
    isWrite: true,
    mount: 'native',
    params: ConfiguredOperationParams,
    responses: { 200: { description: 'The operation.', schema: ConfiguredOperation, headers: ETAG } },
    errors: ['not_found'],
  },
  withdrawOperation: {
    tag: 'Operations',
    method: 'POST',
    path: `${OPERATIONS_PATH}/{id}/withdraw`,
    summary: 'Withdraw an operation',
    description:
      'Agents can no longer call the operation. Running invocations are not stopped. Requires the role developer.',
    credential: 'account',
    scopes: WRITE_SCOPES,
    isWrite: true,
    mount: 'native',
    params: ConfiguredOperationParams,
    responses: { 200: { description: 'The operation.', schema: ConfiguredOperation, headers: ETAG } },
    errors: ['not_found', 'not_ready'],
  },
  deleteOperation: {
    tag: 'Operations',
    method: 'DELETE',
    path: `${OPERATIONS_PATH}/{id}`,
    summary: 'Delete an operation',
    description:
      'Deletes an operation that is not published. Its id can be used again; the new operation then has higher revision numbers. Requires the role admin.',
    credential: 'account',
    scopes: WRITE_SCOPES,
    isWrite: true,
    mount: 'native',
    params: ConfiguredOperationParams,
    headers: IfMatchHeader,
    responses: { 204: { description: 'The operation was deleted.' } },
    errors: ['not_found', 'not_ready', 'precondition_failed', 'precondition_required'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
