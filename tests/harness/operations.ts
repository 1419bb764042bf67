// Sends requests about operations and invocations, with keys that have grants.
import assert from 'node:assert/strict';
import type { Invocation } from '../../contract/invocations.ts';
import { createOwnerToken } from './limits.ts';
import type { ApiOptions, TestServer } from './server.ts';

export interface GrantedKey {
  readonly id: string;
  readonly key: string;
}

/**
 * Issues a key of the first application. By default it has every scope that operations need, and a grant for every
 * read.
 */
export async function issueAgentKey(server: TestServer, fields: object = {}): Promise<GrantedKey> {
  const response = await server.api<GrantedKey>('POST', `/v1/applications/${server.applicationId}/agent-keys`, {
    key: await createOwnerToken(server),
    body: {
      name: 'operations',
      scopes: ['operations:discover', 'operations:invoke', 'invocations:read'],
      grants: [{ operationId: '*', effect: 'read' }],
      ...fields,
    },
  });
  assert.equal(response.status, 201, response.text);
  return response.body;
}

export const agentPath = (server: TestServer, path: string): string =>
  `/v1/agent/applications/${server.applicationId}/${path}`;

export const invoke = (
  server: TestServer,
  key: string,
  operationId: string,
  input: object,
  options: ApiOptions & { extraFields?: object } = {},
) => {
  const { extraFields: more = {}, ...rest } = options;
  return server.api<Invocation & { code: string; message: string }>(
    'POST',
    agentPath(server, `operations/${operationId}/invoke`),
    {
      ...{ key, body: { input, ...more }, ...rest },
    },
  );
};
