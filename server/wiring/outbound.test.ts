// The server's own requests: the setting that adds certificate authorities, and the addresses that are refused.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readConfig } from '../config.ts';
import { systemClock } from '../kit/clock.ts';
import { openOutbound } from './outbound.ts';

const opened = (file: string) => openOutbound(readConfig({ BERTH_OUTBOUND_CA_FILE: file }), systemClock);

function fileWith(t: TestContext, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'berth-authorities-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'ca.pem'), text);
  return join(folder, 'ca.pem');
}

test('refuses a certificate authority file that is missing or is not PEM, and names the setting', t => {
  assert.throws(() => opened('/nonexistent/ca.pem'), /BERTH_OUTBOUND_CA_FILE is .* expected a file that can be read/);
  assert.throws(() => opened(fileWith(t, 'no certificate')), /BERTH_OUTBOUND_CA_FILE is .* expected a file with cert/);
});

test('refuses an address of this machine, by the same rules as for sessions', async () => {
  const outbound = openOutbound(readConfig({}), systemClock);
  const refusal = await outbound.check('https://127.0.0.1/');
  assert.deepEqual([refusal?.phase, refusal?.rule], ['refused', 'loopback']);
});
