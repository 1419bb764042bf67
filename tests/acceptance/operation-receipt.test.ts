// Runs the guide docs/guides/operation-receipt.md as it is written: takes a screenshot over MCP and verifies its
// receipt without a network. Then checks the cost against the duration of the session, to within a second, and that a
// receipt with one flipped bit is refused.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { CreditEntryPage } from '../../contract/credits.ts';
import type { Invocation } from '../../contract/invocations.ts';
import { verifyReceipt } from '../../sdk/index.ts';
import { Guide } from '../harness/guide.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { openPages } from '../harness/pages.ts';
import { decodePng } from '../harness/png.ts';
import { startServer } from '../harness/server.ts';

const GUIDE_URLS = { url: 'http://127.0.0.1:8080', page: 'http://127.0.0.1:8000/' } as const;
/** Allows for the fact that the start and end of a session are not read at exactly the same time as the meter. */
const METER_TOLERANCE_SECONDS = 1;
const RATE = 1000;

const pages = await openPages({ '/': '<!doctype html><title>Red</title><body style="background:#f00">' });
const server = await startServer({ pages, env: { BERTH_RATE_BROWSER_SECOND: String(RATE) } });
const guide = new Guide('operation-receipt', { [GUIDE_URLS.url]: server.url, [GUIDE_URLS.page]: `${pages.url}/` });
assert.match(guide.text, new RegExp(`^export BERTH_RATE_BROWSER_SECOND=${RATE}$`, 'm'));

test('the commands of docs/guides/operation-receipt.md take a screenshot over MCP, and verify its receipt without a network', async () => {
  const { code, stdout: printed, stderr: said } = await guide.run(server);
  assert.equal(code, 0, `${printed}\n${said}`);
  assert.match(said, /^browser_screenshot$/m, 'one grant, one tool');
  assert.match(printed, /^1: lo\b[^\n]*\bstate DOWN\b[^\n]*$/m, 'no network');
  assert.doesNotMatch(printed, /^2: /m, 'no second interface');
  assert.equal(printed.match(/The receipt is valid/g)?.length, 1);
  assert.match(said, /signature|not a receipt|not valid|cannot be read/i);
  assert.equal(decodePng(readFileSync(join(guide.folder, 'page.png'))).colourAt(10, 10), '#ff0000');
});

test('the amount captured for a call matches the duration of its session and the amount in the ledger', async () => {
  const { sessionId = '', cost }: Invocation = JSON.parse(guide.read('invocation.json'));
  const { startedAt = '', endedAt = '' } = await server.waitUntilEnded(sessionId);
  const sessionSeconds = (Date.parse(endedAt) - Date.parse(startedAt)) / 1000;
  assert.ok(
    Math.abs(cost.meters.browserSeconds - sessionSeconds) <= METER_TOLERANCE_SECONDS,
    `${cost.meters.browserSeconds} of ${sessionSeconds}`,
  );
  assert.equal(cost.captured, cost.meters.browserSeconds * RATE);
  const path = `/v1/applications/${server.applicationId}/credits/entries`;
  const { body } = await server.api<CreditEntryPage>('GET', path, { key: await createOwnerToken(server) });
  const captures = body.data.filter(({ type }) => type === 'capture');
  assert.deepEqual(
    captures.map(({ legs }) => legs.revenue),
    [cost.captured],
  );
});

test('a receipt is refused if one bit of any byte is flipped', () => {
  const receipt = guide.read('receipt.jws').trim();
  const keys: Parameters<typeof verifyReceipt>[1]['keys'] = JSON.parse(guide.read('keys.json'));
  assert.ok(verifyReceipt(receipt, { keys }));
  for (let at = 0; at < receipt.length; at += 1) {
    const bytes = Buffer.from(receipt);
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    assert.throws(() => verifyReceipt(bytes.toString('latin1'), { keys }), `byte ${at}`);
  }
});
