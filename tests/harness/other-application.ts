// A second application on the same installation, and its agent key.
import type { TestServer } from './server.ts';

/**
 * Creates an application, and returns an agent key for it. `fields` are additional fields of the request that issues
 * the key.
 */
export async function createOtherApplicationKey(server: TestServer, fields: object = {}): Promise<string> {
  const { token } = JSON.parse((await server.operate('tokens', 'create', '--json')).stdout);
  const name = `Other ${crypto.randomUUID()}`;
  const createResponse = await server.api<{ id: string }>('POST', '/v1/applications', { key: token, body: { name } });
  const path = `/v1/applications/${createResponse.body.id}/agent-keys`;
  const body = { name: 'other', ...fields };
  const issueResponse = await server.api<{ key: string }>('POST', path, { key: token, body });
  if (issueResponse.status !== 201)
    throw new Error(`the key was not issued: ${issueResponse.status} ${issueResponse.text}`);
  return issueResponse.body.key;
}
