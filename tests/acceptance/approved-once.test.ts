// Runs the guide docs/guides/approved-once.md as it is written. While the shell of the agent runs, a customer with a
// phone signs in to the shop, adds a passkey and approves the request with the passkey.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { verifyReceipt } from '../../sdk/index.ts';
import { type DisplaySettings, ensureConsoleBuilt, openWatchedPage, type WatchedPage } from '../harness/console.ts';
import { readMailedCode } from '../harness/consumers.ts';
import { claimFreePort } from '../harness/free-port.ts';
import { Guide } from '../harness/guide.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const PHONE: DisplaySettings = { width: 360, height: 740, colours: 'light' };
const STEP_MS_MAX = 120_000;

await ensureConsoleBuilt();
const shop = `127.0.0.1:${await claimFreePort()}`;
const server = await startServer({ env: { BERTH_EGRESS_ALLOW: shop, BERTH_WARM: '0' } });
const operator = await Person.setUpOwner(server);
const localUrl = server.url.replace('127.0.0.1', 'localhost');
const guide = new Guide('approved-once', {
  ...{ 'http://127.0.0.1:8080': server.url, '127.0.0.1:8001': shop },
  "listen(8001, '127.0.0.1')": `listen(${shop.split(':')[1]}, '127.0.0.1')`,
});

const waitForFile = (name: string): Promise<string> =>
  eventually(
    `the file ${name}`,
    () => (existsSync(join(guide.folder, name)) ? guide.read(name) : ''),
    text => text !== '',
    STEP_MS_MAX,
  );

/** Performs the steps of the customer on a phone. */
async function actAsCustomer({ page }: WatchedPage): Promise<void> {
  await eventually(
    'the sign-in page of the shop to be available',
    async () => (await page.goto(`http://${shop}/sign-in`).catch(() => undefined))?.status() ?? 0,
    status => status === 200,
    STEP_MS_MAX,
  );
  await signIn(page);
  await page.getByText('You are signed in to the shop.').waitFor();
  await page.goto(`${localUrl}/consumer/${server.applicationId}/account`);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await signIn(page);
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByRole('button', { name: 'Remove the passkey' }).waitFor();
  const { approvalUrl } = JSON.parse(await waitForFile('prepared.json'));
  await page.goto(approvalUrl.replace(server.url, localUrl));
  await page.getByRole('heading', { name: 'Cancel order A-1007' }).waitFor();
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByText('You have approved this.').waitFor();
}

async function signIn(page: WatchedPage['page']): Promise<void> {
  await page.waitForURL('**/consumer/signin/**');
  await page.getByLabel('E-mail address').fill('kim@example.com');
  await page.getByRole('button', { name: 'Send me a code' }).click();
  await page.getByText('a six-digit code is on its way').waitFor();
  await page.getByLabel('Code').fill(await readMailedCode(operator, 'kim@example.com'));
  await page.getByRole('button', { name: 'Sign in' }).click();
}

test("a customer approves the agent's request with a passkey, the request is executed once, and its receipt is verified offline", async () => {
  const watched = await openWatchedPage(PHONE, localUrl);
  try {
    await watched.addAuthenticator();
    const [{ code, stdout: printed, stderr: said }] = await Promise.all([guide.run(server), actAsCustomer(watched)]);
    assert.equal(code, 0, `${printed}\n${said}`);
    assert.equal(printed.match(/The receipt is valid/g)?.length, 1, printed);
  } finally {
    await watched.close();
  }
});

test('a receipt with one flipped bit at any position, including in the approval, is refused', () => {
  const receipt = guide.read('receipt.jws').trim();
  const keys: Parameters<typeof verifyReceipt>[1]['keys'] = JSON.parse(guide.read('keys.json'));
  const action = JSON.parse(guide.read('action.json'));
  const { approval } =
    verifyReceipt(receipt, { keys, action }).berth.action ?? assert.fail('the receipt names no Action');
  assert.deepEqual([approval.by.kind, approval.method], ['end_user', 'passkey']);
  for (let at = 0; at < receipt.length; at += 1) {
    const bytes = Buffer.from(receipt);
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    assert.throws(() => verifyReceipt(bytes.toString('latin1'), { keys, action }), `byte ${at}`);
  }
});
