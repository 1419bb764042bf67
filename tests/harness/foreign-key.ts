// A key of another application of the same installation.
import type { TestServer } from './server.ts';

export async function createForeignKey(server: TestServer, fields: object = {}): Promise<string> {
  const { stdout } = await server.operate('tokens', 'create', '--json');
  const { token }: { token: string } = JSON.parse(stdout);
  const createResponse = await server.api<{ id: string }>('POST', '/v1/applications', {
    body: { name: `Other ${crypto.randomUUID()}` },
    key: token,
  });
  const issueResponse = await server.api<{ key: string }>(
    'POST',
    `/v1/applications/${createResponse.body.id}/agent-keys`,
    {
      body: { name: 'other', ...fields },
      key: token,
    },
  );
  return issueResponse.body.key;
}
