import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Channel } from './mux.ts';
import { noteOverride, overridesAgain } from './overrides.ts';

const channel = (targetId?: string): Channel => ({
  id: 'CHANNEL',
  owner: { incoming: () => {}, fail: () => {}, rest: () => {} },
  parent: undefined,
  targetId,
  pending: new Map(),
});

function said(to: Channel, name?: string): unknown[] {
  let id = 0;
  return overridesAgain(to, () => --id, name).map(message => JSON.parse(message.toString('utf8')));
}

const note = (to: Channel, method: string, params: object): void =>
  noteOverride(to, method, Buffer.from(JSON.stringify({ id: 7, method, params })));

test('the last of each kind is said again, under other ids, in the order in which they were set', () => {
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
  assert.deepEqual(said(page), [
    { id: -1, ...media },
    { id: -2, ...zone },
  ]);
  assert.deepEqual(said(page, 'Emulation.setEmulatedMedia'), [{ id: -1, ...media }]);
});

test('what was cleared stays cleared', () => {
  const page = channel('PAGE');
  note(page, 'Emulation.setDeviceMetricsOverride', { width: 1 });
  note(page, 'Emulation.clearDeviceMetricsOverride', {});
  assert.deepEqual(said(page), [
    { id: -1, method: 'Emulation.clearDeviceMetricsOverride', params: {}, sessionId: 'CHANNEL' },
  ]);
});

test('nothing is kept of the browser itself, nor what is longer than any override', () => {
  const root = channel();
  note(root, 'Emulation.setEmulatedMedia', { media: 'print' });
  assert.deepEqual(said(root), []);
  const page = channel('PAGE');
  note(page, 'Emulation.setUserAgentOverride', { userAgent: 'x'.repeat(20_000) });
  assert.deepEqual(said(page), []);
});
