// Runs the guide docs/guides/first-steps.md from an empty data folder. A person opens the printed link in a real
// browser, sets a password, adds a passkey of a virtual authenticator, and approves `berth login` in the console. The
// guide then creates an application and a key, and Playwright drives a session.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { chromium } from 'playwright-core';
import { DESKTOP, ensureConsoleBuilt, openWatchedPage, type WatchedPage } from '../harness/console.ts';
import { PASSWORD } from '../harness/person.ts';
import { CHECKOUT, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const GUIDE_URL = 'http://127.0.0.1:8080';
const GUIDE = readFileSync(join(CHECKOUT, 'docs/guides/first-steps.md'), 'utf8');

await ensureConsoleBuilt();
const dataDir = mkdtempSync(join(tmpdir(), 'berth-first-steps-'));
const home = mkdtempSync(join(tmpdir(), 'berth-first-steps-home-'));
const server = await startServer({ dataDir });
after(() => {
  for (const folder of [dataDir, home]) rmSync(folder, { recursive: true });
});

/** The commands of the guide as one script. `berth` is the program of this checkout. */
const SCRIPT = [
  `berth() { '${process.execPath}' '${join(CHECKOUT, 'cli/berth.ts')}' "$@"; }`,
  ...[...GUIDE.matchAll(/^```sh story\n([\s\S]*?)^```$/gm)].map(([, block = '']) =>
    block.replaceAll(GUIDE_URL, server.url),
  ),
].join('\n');

test('a new user can follow the guide from the link printed at the first start to a running browser', async () => {
  const base = server.url.replace('127.0.0.1', 'localhost');
  const watchedPage = await openWatchedPage(DESKTOP, base);
  const { page } = watchedPage;
  await watchedPage.addAuthenticator();
  await page.goto(findSetupLink());
  await page.getByLabel('Your name').fill('Ada');
  await page.getByLabel('E-mail address').fill('ada@example.com');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Create the account' }).click();
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor();

  const script = spawn('bash', ['-euo', 'pipefail', '-c', SCRIPT], {
    env: { PATH: process.env.PATH ?? '', HOME: home, XDG_CONFIG_HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errorOutput = '';
  script.stderr.on('data', chunk => {
    errorOutput += chunk;
  });
  const output = text(script.stdout);
  const exitCode = new Promise<number | null>(resolve => script.once('exit', resolve));
  const approvalAddress = await eventually(
    'the address for the approval',
    () => /http\S+\/device#\S+/.exec(errorOutput)?.[0],
    Boolean,
  );
  await approve(watchedPage, String(approvalAddress));

  assert.equal(await exitCode, 0, errorOutput);
  const connectUrl = /ws\S+\/connect\?\S+/.exec(await output)?.[0];
  assert.ok(connectUrl, await output);
  const browser = await chromium.connectOverCDP(connectUrl);
  const visitedPage = await browser.newPage();
  await visitedPage.goto('data:text/html,<title>Here</title>');
  assert.equal(await visitedPage.title(), 'Here');
  await browser.close();
  // The only request outside of localhost is for the printed address. It redirects to localhost, where the passkey is
  // valid.
  assert.deepEqual(watchedPage.violations, [`asked ${server.url}/device`]);
  await watchedPage.close();
});

async function approve(watchedPage: WatchedPage, address: string): Promise<void> {
  const { page } = watchedPage;
  await page.goto(address);
  const code = address.split('#')[1] ?? '';
  await page.getByText(code, { exact: true }).waitFor();
  assert.ok(!page.url().includes(code), 'the code stays in the address');
  assert.deepEqual(await watchedPage.runAxe(), []);
  await page.getByRole('button', { name: 'Yes, it shows this code' }).click();
  await page.getByText('berth-cli').waitFor();
  await page.getByText('(not verified)').waitFor();
  await page.getByLabel('In one application that it creates').check();
  await watchedPage.assertAccessible();
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByRole('heading', { name: 'Approved' }).waitFor();
}

function findSetupLink(): string {
  const link = server.log().find(line => line.includes('/signin#setup='));
  return /http\S+/.exec(link ?? '')?.[0] ?? assert.fail('the first start printed no link for an account');
}
