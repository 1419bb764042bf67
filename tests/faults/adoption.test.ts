// A session whose adoption crashed the server is not adopted a second time. The fault is injected into the server,
// because there is no known way for a browser to cause such a crash.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { CdpClient } from '../harness/cdp.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { assertEnded } from './aftermath.ts';
import { isResponsive } from './clients.ts';

const POISON = 'the words that end a server';

const folder = mkdtempSync(join(tmpdir(), 'berth-poison-'));
after(() => rmSync(folder, { recursive: true }));
/**
 * While this file exists, a server that reads a console event with the text POISON from a browser exits with an
 * uncaught exception.
 */
const poisonFile = join(folder, 'poisonous');
const faultModule = join(folder, 'fault.mjs');
writeFileSync(
  faultModule,
  `import { existsSync } from 'node:fs';
const { parse } = JSON;
JSON.parse = (text, ...rest) => {
  if (typeof text === 'string' && text.includes('consoleAPICalled') && text.includes('${POISON}') && existsSync('${poisonFile}'))
    setImmediate(() => { throw new Error('poisoned'); });
  return parse(text, ...rest);
};`,
);
const server = await startServer({ env: { BERTH_SLOTS: '4', NODE_OPTIONS: `--import=${faultModule}` } });

async function openSession(expression = 'void 0'): Promise<CreatedSession> {
  const session = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(session.connectUrl);
  await client.evaluate(expression, await client.attachToPage());
  client.cut();
  return session;
}

test('a session whose adoption crashed the server is ended, and the other sessions are kept', async () => {
  const neighbours = [await openSession(), await openSession()];
  const poisonedSession = await openSession(`console.log('${POISON}')`);
  writeFileSync(poisonFile, '');
  await server.kill();
  await assert.rejects(server.start(), /before it was ready/, 'Chromium repeats its console');
  await server.start();
  const { endReason, status } = await assertEnded(server, poisonedSession.id, 'ERROR', 'service_restart');
  assert.deepEqual([status, endReason], ['ERROR', 'service_restart']);
  for (const neighbour of neighbours) assert.ok(await isResponsive(neighbour), 'the other session was adopted');
  const events = await server.api('GET', `/v1/browsers/sessions/${poisonedSession.id}/events`);
  assert.match(events.text, /the service ended because of an error while it adopted the browser: poisoned/);
  rmSync(poisonFile);
  for (const { id } of neighbours) await server.release(id);
  await server.waitUntilSettled();
});
