// A rotation of the master key that is killed at any moment leaves a vault that can be opened.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from '../../contract/contexts.ts';
import { CHECKOUT, startServer } from '../harness/server.ts';

const server = await startServer();
const STORAGE_STATE = {
  cookies: [],
  origins: [{ origin: 'https://a.test', localStorage: [{ name: 'a', value: 'kept' }] }],
};

const spawnRotation = () =>
  spawn(process.execPath, [join(CHECKOUT, 'cli/berth.ts'), 'vault', 'rotate'], { env: server.env, stdio: 'ignore' });

const MOMENT_COUNT = 12;

test('stored data remains readable if the process that rotates the master key is killed at various moments', async () => {
  const { body } = await server.api<Context>('POST', '/v1/browsers/contexts', { body: {} });
  const path = `/v1/browsers/contexts/${body.id}/storage-state`;
  assert.equal((await server.api('POST', path, { body: STORAGE_STATE })).status, 200);
  const startedAt = performance.now();
  const [code] = await once(spawnRotation(), 'exit');
  assert.equal(code, 0);
  const rotationMs = performance.now() - startedAt;
  for (let moment = 0; moment < MOMENT_COUNT; moment += 1) {
    const child = spawnRotation();
    const exit = once(child, 'exit');
    // The rotation itself happens in the last third of the command.
    await sleep(rotationMs * (0.67 + (0.33 * moment) / MOMENT_COUNT));
    child.kill('SIGKILL');
    await exit;
    if (moment % 3 === 2) await server.restart();
    const stateResponse = await server.api('GET', path);
    assert.equal(stateResponse.status, 200, `${moment}: ${stateResponse.text}`);
  }
  const [lastCode] = await once(spawnRotation(), 'exit');
  assert.equal(lastCode, 0);
  assert.match(readFileSync(join(server.dataDir, 'master-key'), 'utf8'), /^[0-9a-f]{64}\n$/);
  await server.restart();
  assert.equal((await server.api('GET', path)).status, 200);
});
