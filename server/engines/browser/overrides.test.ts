import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Channel } from './mux.ts';
import { noteOverride, overrideCommands } from './overrides.ts';

const channel = (targetId?: string): Channel => ({
  id: 'CHANNEL',
  owner: { handleMessage: () => {}, fail: () => {}, batchEnd: () => {} },
  parent: undefined,
  targetId,
  pendingCommands: new Map(),
});

function repeatedCommands(to: Channel, name?: string): unknown[] {
  let id = 0;
  return overrideCommands(to, () => --id, name).map(message => JSON.parse(message.toString('utf8')));
}

const note = (to: Channel, method: string, params: object): void =>
  noteOverride(to, method, Buffer.from(JSON.stringify({ id: 7, method, params })));

test('repeats only the last override command of each method, with new ids, in the order in which these commands were sent', () => {
  const page = channel('PAGE');
  note(page, 'Emulation.setTimezoneOverride', { timezoneId: 'Asia/Tokyo' });
  note(page, 'Emulation.setEmulatedMedia', { media: 'screen' });
  note(page, 'Emulation.setTimezoneOverride', { timezoneId: 'Europe/Berlin' });
  note(page, 'Runtime.evaluate', { expression: '1' });
  const media = { method: 'Emulation.setEmulatedMedia', params: { media: 'screen' }, sessionId: 'CHANNEL' };
  const zone = {
    method: 'Emulation.setTimezoneOverride',
    params: { timezoneId: 'Europe/Berlin' },
    sessionId: 'CHANNEL',
  };
  assert.deepEqual(repeatedCommands(page), [
    { id: -1, ...media },
    { id: -2, ...zone },
  ]);
  assert.deepEqual(repeatedCommands(page, 'Emulation.setEmulatedMedia'), [{ id: -1, ...media }]);
});

test('repeats the clear command of a cleared override', () => {
  const page = channel('PAGE');
  note(page, 'Emulation.setDeviceMetricsOverride', { width: 1 });
  note(page, 'Emulation.clearDeviceMetricsOverride', {});
  assert.deepEqual(repeatedCommands(page), [
    { id: -1, method: 'Emulation.clearDeviceMetricsOverride', params: {}, sessionId: 'CHANNEL' },
  ]);
});

test('ignores commands to the browser itself and commands above the size limit', () => {
  const root = channel();
  note(root, 'Emulation.setEmulatedMedia', { media: 'print' });
  assert.deepEqual(repeatedCommands(root), []);
  const page = channel('PAGE');
  note(page, 'Emulation.setUserAgentOverride', { userAgent: 'x'.repeat(20_000) });
  assert.deepEqual(repeatedCommands(page), []);
});
