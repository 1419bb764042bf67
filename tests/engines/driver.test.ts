// The driver, connected to the sessions of a server. One driver has a short time limit, for a command that hangs.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type CommandResult, DriveFailed } from '../../server/engines/driver/command.ts';
import { Driver } from '../../server/engines/driver/driver.ts';
import { silentLog } from '../../server/kit/log.ts';
import { CdpClient } from '../harness/cdp.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const COMMAND_TIMEOUT_MS = 6_000;
const pages = await openPages({ '/': '<!doctype html><title>Page</title><button>Go</button>' });
const server = await startServer({ pages, env: { BERTH_ENGINE: LIGHT_ENGINE, BERTH_SLOTS: '2' } });
const driver = new Driver(silentLog, { threads: 1 });
const shortTimeoutDriver = new Driver(silentLog, { threads: 1, commandMs: COMMAND_TIMEOUT_MS });
after(() => Promise.all([driver.close(), shortTimeoutDriver.close()]));

const refOf = ({ page }: CommandResult): string => /button "Go" \[ref=(\w+)\]/.exec(page?.snapshot ?? '')?.[1] ?? '';

test('a command that hangs closes the connection of its own session, but not of other sessions on the same thread', async () => {
  const sessions = await Promise.all([1, 2].map(() => server.createSession({ keepAlive: true })));
  const [hangingTarget, otherTarget] = sessions.map(({ id, connectUrl }) => ({ session: id, address: connectUrl }));
  assert.ok(hangingTarget && otherTarget);
  await shortTimeoutDriver.run(otherTarget, { do: 'navigate', url: `${pages.url}/` });
  const ref = refOf(await shortTimeoutDriver.run(otherTarget, { do: 'snapshot' }));
  const pendingCommand = shortTimeoutDriver.run(hangingTarget, { do: 'evaluate', code: '() => new Promise(() => {})' });
  await assert.rejects(pendingCommand, error => error instanceof DriveFailed && error.why === 'too_long');
  await shortTimeoutDriver.run(otherTarget, { do: 'click', ref, double: false, button: 'left', modifiers: [] });
  assert.match((await shortTimeoutDriver.run(hangingTarget, { do: 'evaluate', code: '1 + 1' })).text ?? '', /^2$/);
  for (const { id } of sessions) await server.release(id);
});

test('a dialog that another client answers, or whose tab is closed, does not block later commands', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const target = { session: id, address: connectUrl };
  const client = await CdpClient.connect(connectUrl);
  const page = await client.attachToPage();
  await client.send('Page.enable', {}, page);
  await driver.run(target, { do: 'navigate', url: `${pages.url}/` });
  const openDialog = async (): Promise<void> => {
    const { blockedBy } = await driver.run(target, { do: 'evaluate', code: "alert('Sure?')" });
    assert.equal(blockedBy, 'A dialog is open (alert): "Sure?".');
  };
  const acceptDialog = () => client.send('Page.handleJavaScriptDialog', { accept: true }, page);
  const canRunCommands = async (): Promise<boolean> => {
    try {
      await driver.run(target, { do: 'snapshot' });
      return true;
    } catch {
      return false;
    }
  };

  await openDialog();
  await acceptDialog();
  await eventually('commands to be possible after the answer', canRunCommands);

  await openDialog();
  await acceptDialog();
  const { captured } = await driver.run(target, {
    do: 'capture',
    capture: { waitUntil: 'load', timeoutMs: 30_000, acceptStatus: [], wanted: { kind: 'text' } },
  });
  assert.match(captured?.text ?? '', /Go/);

  const { targetId } = await client.send('Target.createTarget', { url: 'about:blank' });
  const countTabs = async () => (await driver.run(target, { do: 'tabs', action: 'list' })).tabs.length;
  await eventually('the tab to be listed', countTabs, count => count === 2);
  await driver.run(target, { do: 'tabs', action: 'select', index: 1 });
  await openDialog();
  await client.send('Target.closeTarget', { targetId });
  await eventually('commands to be possible after the tab was closed', canRunCommands);
  await client.close();
  await server.release(id);
});

test('a value that JSON cannot express is refused, and the error contains the reason', async () => {
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const target = { session: id, address: connectUrl };
  for (const code of ['10n', '() => { const value = {}; value.self = value; return value; }'])
    await assert.rejects(driver.run(target, { do: 'evaluate', code }), /cannot be expressed as JSON/);
  await server.release(id);
});
