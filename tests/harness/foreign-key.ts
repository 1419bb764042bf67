// A key of another application of the same installation.
import type { TestServer } from './server.ts';

export async function keyOfOtherApplication(server: TestServer, fields: object = {}): Promise<string> {
  const { stdout } = await server.operate('tokens', 'create', '--json');
  const { token }: { token: string } = JSON.parse(stdout);
  const application = await server.api<{ id: string }>('POST', '/v1/applications', {
    body: { name: `Other ${crypto.randomUUID()}` },
    key: token,
  });
  const issued = await server.api<{ key: string }>('POST', `/v1/applications/${application.body.id}/agent-keys`, {
    body: { name: 'other', ...fields },
    key: token,
  });
  return issued.body.key;
}
