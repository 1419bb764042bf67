// Creates an owner's token for a server under test, and sets limits with it.
import assert from 'node:assert/strict';
import type { Limits, ReplaceLimits } from '../../contract/limits.ts';
import type { TestServer } from './server.ts';

/** Creates a token with every scope in the server's data folder. */
export async function createOwnerToken(server: TestServer): Promise<string> {
  const { code, stdout, stderr } = await server.operate('tokens', 'create', '--name', 'owner', '--json');
  assert.equal(code, 0, stderr);
  const made: { token: string } = JSON.parse(stdout);
  return made.token;
}

export async function readLimits(server: TestServer, token: string): Promise<Limits> {
  const readResponse = await server.api<Limits>('GET', `/v1/applications/${server.applicationId}/limits`, {
    key: token,
  });
  assert.equal(readResponse.status, 200, readResponse.text);
  return readResponse.body;
}

/** Replaces the configured limits. */
export async function setLimits(
  server: TestServer,
  token: string,
  browsers: NonNullable<ReplaceLimits['browsers']>,
): Promise<Limits> {
  const { revision } = await readLimits(server, token);
  const replaceResponse = await server.api<Limits>('PUT', `/v1/applications/${server.applicationId}/limits`, {
    key: token,
    headers: { 'if-match': `"${revision}"` },
    body: { browsers },
  });
  assert.equal(replaceResponse.status, 200, replaceResponse.text);
  return replaceResponse.body;
}

/** Raises the limits, for tests that exceed the default limits of an application. */
export async function liftLimits(server: TestServer): Promise<void> {
  const token = await createOwnerToken(server);
  const { maxConcurrent = 100 } = (await readLimits(server, token)).ceiling.browsers;
  await setLimits(server, token, { maxConcurrent, maxCreatesPerMinute: 6000 });
}
