// The driver with a short time limit for commands, connected to the sessions of a server.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type CommandResult, DriveFailed } from '../../server/engines/driver/command.ts';
import { Driver } from '../../server/engines/driver/driver.ts';
import { silentLog } from '../../server/kit/log.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';

const COMMAND_MS = 6_000;
const pages = await openPages({ '/': '<!doctype html><title>Page</title><button>Go</button>' });
const server = await startServer({ pages, env: { BERTH_ENGINE: LIGHT_ENGINE, BERTH_SLOTS: '2' } });
const driver = new Driver(silentLog, { threads: 1, commandMs: COMMAND_MS });
after(() => driver.close());

const refOf = ({ page }: CommandResult): string => /button "Go" \[ref=(\w+)\]/.exec(page?.snapshot ?? '')?.[1] ?? '';

test('a command that hangs costs its session the connection, and no other session on the thread', async () => {
  const sessions = await Promise.all([1, 2].map(() => server.createSession({ keepAlive: true })));
  const [hanging, other] = sessions.map(({ id, connectUrl }) => ({ session: id, address: connectUrl }));
  assert.ok(hanging && other);
  await driver.run(other, { do: 'navigate', url: `${pages.url}/` });
  const ref = refOf(await driver.run(other, { do: 'snapshot' }));
  const hang = driver.run(hanging, { do: 'evaluate', code: '() => new Promise(() => {})' });
  await assert.rejects(hang, error => error instanceof DriveFailed && error.why === 'too_long');
  await driver.run(other, { do: 'click', ref, double: false, button: 'left', modifiers: [] });
  assert.match((await driver.run(hanging, { do: 'evaluate', code: '1 + 1' })).text ?? '', /^2$/);
  for (const { id } of sessions) await server.release(id);
});
