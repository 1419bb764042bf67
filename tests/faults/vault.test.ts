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
const STATE = { cookies: [], origins: [{ origin: 'https://a.test', localStorage: [{ name: 'a', value: 'kept' }] }] };

const rotate = () =>
  spawn(process.execPath, [join(CHECKOUT, 'cli/berth.ts'), 'vault', 'rotate'], { env: server.env, stdio: 'ignore' });

const MOMENTS = 12;

test('stored data can still be read after a rotation of the master key was killed at various moments', async () => {
  const { body } = await server.api<Context>('POST', '/v1/browsers/contexts', { body: {} });
  const path = `/v1/browsers/contexts/${body.id}/storage-state`;
  assert.equal((await server.api('POST', path, { body: STATE })).status, 200);
  const began = performance.now();
  const [code] = await once(rotate(), 'exit');
  assert.equal(code, 0);
  const wholeMs = performance.now() - began;
  for (let moment = 0; moment < MOMENTS; moment += 1) {
    const child = rotate();
    const exited = once(child, 'exit');
    // The rotation itself happens in the last third of the command.
    await sleep(wholeMs * (0.67 + (0.33 * moment) / MOMENTS));
    child.kill('SIGKILL');
    await exited;
    if (moment % 3 === 2) await server.restart();
    const read = await server.api('GET', path);
    assert.equal(read.status, 200, `${moment}: ${read.text}`);
  }
  const [last] = await once(rotate(), 'exit');
  assert.equal(last, 0);
  assert.match(readFileSync(join(server.dataDir, 'master-key'), 'utf8'), /^[0-9a-f]{64}\n$/);
  await server.restart();
  assert.equal((await server.api('GET', path)).status, 200);
});
