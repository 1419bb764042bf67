// The guide docs/guides/operation-receipt.md, run as it is written: a screenshot over MCP, its credit to the second, its receipt
// where there is no network, and receipts of which one byte was flipped.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import type { CreditEntryPage } from '../../contract/credits.ts';
import type { Invocation } from '../../contract/invocations.ts';
import { verifyReceipt } from '../../sdk/index.ts';
import { ownerToken } from '../harness/limits.ts';
import { openPages } from '../harness/pages.ts';
import { decodePng } from '../harness/png.ts';
import { CHECKOUT, startServer } from '../harness/server.ts';

const WRITTEN = { url: 'http://127.0.0.1:8080', page: 'http://127.0.0.1:8000/' } as const;
const SCRIPT_MS_MAX = 300_000;
/** The clocks that take the two ends of a session are read a little apart from the meter. */
const METER_SECONDS = 1;
const GUIDE = readFileSync(join(CHECKOUT, 'docs/guides/operation-receipt.md'), 'utf8');
const RATE = Number(/^export BERTH_RATE_BROWSER_SECOND=(\d+)$/m.exec(GUIDE)?.[1]);

const pages = await openPages({ '/': '<!doctype html><title>Red</title><body style="background:#f00">' });
const server = await startServer({ pages, env: { BERTH_RATE_BROWSER_SECOND: String(RATE) } });
const folder = mkdtempSync(join(tmpdir(), 'berth-operation-receipt-'));
after(() => rmSync(folder, { recursive: true }));

const here = (block: string): string =>
  block.replaceAll(WRITTEN.url, server.url).replaceAll(WRITTEN.page, `${pages.url}/`);

const saved = (name: string): string => readFileSync(join(folder, name), 'utf8');

test('a screenshot over MCP is charged to the second, and its receipt is verified without a network', async () => {
  layOut();
  const { code, printed, said } = await runStory();
  assert.equal(code, 0, `${printed}\n${said}`);
  assert.match(said, /^browser_screenshot$/m, 'one grant, one tool');
  assert.match(printed, /^1: lo\b[^\n]*\bstate DOWN\b[^\n]*$/m, 'no network');
  assert.doesNotMatch(printed, /^2: /m, 'no second interface');
  assert.equal(printed.match(/The receipt is valid/g)?.length, 1);
  assert.match(said, /signature|not a receipt|not valid|cannot be read/i);
  assert.equal(decodePng(readFileSync(join(folder, 'page.png'))).colourAt(10, 10), '#ff0000');
});

test('what was captured is the life of the session in started seconds, and the ledger has the same amount', async () => {
  const { sessionId = '', cost }: Invocation = JSON.parse(saved('invocation.json'));
  const { startedAt = '', endedAt = '' } = await server.ended(sessionId);
  const lived = (Date.parse(endedAt) - Date.parse(startedAt)) / 1000;
  assert.ok(Math.abs(cost.meters.browserSeconds - lived) <= METER_SECONDS, `${cost.meters.browserSeconds} of ${lived}`);
  assert.equal(cost.captured, cost.meters.browserSeconds * RATE);
  const path = `/v1/applications/${server.applicationId}/credits/entries`;
  const { body } = await server.api<CreditEntryPage>('GET', path, { key: await ownerToken(server) });
  const captures = body.data.filter(({ type }) => type === 'capture');
  assert.deepEqual(
    captures.map(({ legs }) => legs.revenue),
    [cost.captured],
  );
});

test('a receipt of which any one byte was flipped is refused', () => {
  const receipt = saved('receipt.jws').trim();
  const keys: Parameters<typeof verifyReceipt>[1]['keys'] = JSON.parse(saved('keys.json'));
  assert.ok(verifyReceipt(receipt, { keys }));
  for (let at = 0; at < receipt.length; at += 1) {
    const bytes = Buffer.from(receipt);
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    assert.throws(() => verifyReceipt(bytes.toString('latin1'), { keys }), `byte ${at}`);
  }
});

/** The files of the guide, and the programs `berth` and `node` of this checkout. */
function layOut(): void {
  const programs = join(folder, 'bin');
  mkdirSync(programs);
  writeFileSync(join(programs, 'berth'), `#!/bin/sh\nexec '${process.execPath}' '${CHECKOUT}/cli/berth.ts' "$@"\n`);
  chmodSync(join(programs, 'berth'), 0o755);
  symlinkSync(process.execPath, join(programs, 'node'));
  symlinkSync(join(CHECKOUT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  for (const [, name = '', block = ''] of GUIDE.matchAll(/^```ts story (\S+)\n([\s\S]*?)^```$/gm))
    writeFileSync(join(folder, name), here(block));
}

async function runStory(): Promise<{ code: number | null; printed: string; said: string }> {
  const script = [...GUIDE.matchAll(/^```sh story\n([\s\S]*?)^```$/gm)].map(([, block = '']) => here(block)).join('\n');
  const path = `${join(folder, 'bin')}:${server.env.PATH}`;
  const child = spawn('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: folder,
    env: { ...server.env, PATH: path },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: SCRIPT_MS_MAX,
  });
  const ended = new Promise<number | null>(resolve => child.once('close', resolve));
  const [printed, said] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await ended, printed, said };
}
