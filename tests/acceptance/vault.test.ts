// The vault and the signing keys, as seen by the operator and by verifiers.
import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Context } from '../../contract/contexts.ts';
import type { JsonWebKeySet } from '../../contract/signing-keys.ts';
import { startServer } from '../harness/server.ts';

const server = await startServer({ clock: 'test' });
const DAY_MS = 24 * 3600_000;

const runBerth = async <Result>(...args: string[]): Promise<Result> => {
  const { code, stdout, stderr } = await server.berth(...args, '--json');
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
};
const masterKeyFile = join(server.dataDir, 'master-key');
const readMasterKey = (): string => readFileSync(masterKeyFile, 'utf8').trim();

const STATE = { cookies: [], origins: [{ origin: 'https://a.test', localStorage: [{ name: 'a', value: 'kept' }] }] };
const readState = async (id: string) => (await server.api('GET', `/v1/browsers/contexts/${id}/storage-state`)).text;

async function createContext(): Promise<string> {
  const { body, text, status } = await server.api<Context>('POST', '/v1/browsers/contexts', { body: {} });
  assert.equal(status, 201, text);
  const stateResponse = await server.api('POST', `/v1/browsers/contexts/${body.id}/storage-state`, { body: STATE });
  assert.equal(stateResponse.status, 200, stateResponse.text);
  return body.id;
}

test('the master key file is readable only by its owner, and contexts can still be read after the key is replaced while the server is running', async () => {
  assert.equal(statSync(masterKeyFile).mode & 0o777, 0o600);
  const [keyBefore, context] = [readMasterKey(), await createContext()];
  assert.ok((await runBerth<{ rewrapped: number }>('vault', 'rotate')).rewrapped >= 2);
  assert.match(readMasterKey(), /^[0-9a-f]{64}$/);
  assert.notEqual(readMasterKey(), keyBefore);
  assert.match(await readState(context), /kept/);
  await server.restart('SIGTERM');
  assert.match(await readState(context), /kept/);
  assert.match(await readState(await createContext()), /kept/);
});

test('anyone can read the public signing keys, and a retired key is listed until it is removed after 400 days', async () => {
  const read = async () => (await server.api<JsonWebKeySet>('GET', '/.well-known/jwks.json', { key: null })).body.keys;
  const { headers } = await server.api('GET', '/.well-known/jwks.json', { key: null });
  assert.equal(headers['cache-control'], 'public, max-age=300');
  assert.equal(headers['access-control-allow-origin'], '*');
  const [first, ...none] = await read();
  assert.ok(first);
  assert.deepEqual(none, []);
  assert.deepEqual(Object.keys(first).sort(), ['alg', 'crv', 'kid', 'kty', 'use', 'x']);
  const { kid } = await runBerth<{ kid: string }>('keys', 'rotate-signing');
  const [second, retired] = await read();
  assert.equal(second?.kid, kid);
  assert.equal(retired?.kid, first.kid);
  assert.ok(retired.berth_retired_at);
  await server.advance(401 * DAY_MS);
  assert.deepEqual(
    (await read()).map(key => key.kid),
    [kid],
  );
});
