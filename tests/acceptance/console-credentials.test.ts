// Credentials in the console, in a real browser: added, rotated, restored and deleted, without their values anywhere in
// the page.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import {
  DESKTOP,
  type DisplaySettings,
  ensureConsoleBuilt,
  PHONE_DARK,
  signInByHand,
  visit,
} from '../harness/console.ts';
import { liftLimits } from '../harness/limits.ts';
import { joinApplication } from '../harness/members.ts';
import { invoke, issueAgentKey } from '../harness/operations.ts';
import { PASSWORD, Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { openUpstream } from '../harness/upstream.ts';

const OWNER_EMAIL = 'ada@example.com';
const DEVELOPER_EMAIL = 'dev@example.com';
const VIEWER_EMAIL = 'vic@example.com';
const SECRET = 'first-key-of-the-shop-81f3';
const NEXT = 'second-key-of-the-shop-27c9';

await ensureConsoleBuilt();
const upstream = await openUpstream();
const server = await startServer({ env: upstream.settings });
const person = await Person.setUpOwner(server, OWNER_EMAIL);
await joinApplication(server, person, VIEWER_EMAIL, 'viewer');
await joinApplication(server, person, DEVELOPER_EMAIL, 'developer');
await liftLimits(server);
const owner = await Owner.open(server);
const credentialsPath = `/console/a/${server.applicationId}/credentials`;
const visitAs = (email: string, look: DisplaySettings, work: Parameters<typeof visit>[3]): Promise<void> =>
  visit(server.url, look, credentialsPath, async (page, watched) => {
    await signInByHand(page, email, PASSWORD);
    await work(page, watched);
  });

/**
 * Returns everything that the page keeps: its visible text, its fields, its storage, and every string of its scripts
 * after a garbage collection.
 */
async function readPageMemory(page: Page): Promise<string> {
  const shownText = await page.evaluate<string>(
    `document.documentElement.outerHTML + [...document.querySelectorAll('input, textarea')].map(it => it.value).join() + JSON.stringify(sessionStorage) + JSON.stringify(localStorage)`,
  );
  const cdp = await page.context().newCDPSession(page);
  const chunks: string[] = [];
  cdp.on('HeapProfiler.addHeapSnapshotChunk', ({ chunk }) => void chunks.push(chunk));
  await cdp.send('HeapProfiler.enable');
  await cdp.send('HeapProfiler.collectGarbage');
  await cdp.send('HeapProfiler.takeHeapSnapshot', { reportProgress: false });
  await cdp.detach();
  return shownText + chunks.join('');
}

test('a credential can be added after an API error, and the page does not keep the value of the credential', () =>
  visitAs(OWNER_EMAIL, DESKTOP, async (page, watched) => {
    await page.getByText('No credentials').waitFor();
    await watched.assertAccessible();
    await page.getByRole('button', { name: 'Add a credential' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Id', { exact: true }).fill('shop-api');
    await dialog.getByLabel('Key', { exact: true }).fill(SECRET);
    await dialog.getByLabel('Hosts').fill('https://api.shop.example/v1');
    await watched.assertAccessible();
    await dialog.getByRole('button', { name: 'Add' }).click();
    await dialog.getByRole('alert').getByText(/hosts/).waitFor();
    await dialog.getByLabel('Hosts').fill(upstream.host);
    await dialog.getByLabel('Display name').fill('The shop');
    assert.match(await readPageMemory(page), new RegExp(SECRET), 'the search finds a value that is still in its field');
    await dialog.getByRole('button', { name: 'Add' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByText(upstream.host).waitFor();
    await page.getByText('Never used').waitFor();
    await watched.assertAccessible();
    assert.doesNotMatch(await readPageMemory(page), new RegExp(SECRET));
  }));

test('a developer rotates a credential of an operation, an owner restores the previous value, and each call sends the current value', async () => {
  upstream.respondTo('/orders', (_, response) => void response.writeHead(200).end('{}'));
  await owner.publish(
    'orders.read',
    cancelOrderOperation(upstream, { effect: 'read', binding: { auth: { credentialId: 'shop-api', as: 'bearer' } } }),
  );
  const { key } = await issueAgentKey(server);
  const readSentHeader = async (): Promise<string | undefined> => {
    const { status, text } = await invoke(server, key, 'orders.read', { orderId: 'A-1' });
    assert.equal(status, 200, text);
    return upstream.receivedRequests('/orders').at(-1)?.headers.authorization;
  };
  assert.equal(await readSentHeader(), `Bearer ${SECRET}`);
  await visitAs(DEVELOPER_EMAIL, PHONE_DARK, async (page, watched) => {
    await page.getByRole('link', { name: 'orders.read' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Delete shop-api' }).count(), 0);
    await page.getByRole('button', { name: 'Rotate shop-api' }).click();
    const dialog = page.getByRole('dialog');
    assert.equal(await dialog.getByLabel('Key', { exact: true }).inputValue(), '');
    await dialog.getByLabel('Key', { exact: true }).fill(NEXT);
    await watched.assertAccessible();
    await dialog.getByRole('button', { name: 'Rotate' }).click();
    await page.getByText(/Version 2, written/).waitFor();
    await watched.assertAccessible();
    assert.equal(await page.getByRole('button', { name: /^Restore/ }).count(), 0);
    assert.doesNotMatch(await readPageMemory(page), new RegExp(NEXT));
  });
  assert.equal(await readSentHeader(), `Bearer ${NEXT}`);
  await visitAs(OWNER_EMAIL, DESKTOP, async (page, watched) => {
    await page.getByRole('button', { name: 'Restore the previous value of shop-api' }).click();
    await watched.assertAccessible();
    await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
    await page.getByText(/Version 3, written/).waitFor();
  });
  assert.equal(await readSentHeader(), `Bearer ${SECRET}`);
});

test('a rotation is refused if the credential has changed since the page was loaded, and the page shows the reason', () =>
  visitAs(OWNER_EMAIL, DESKTOP, async page => {
    await page.getByRole('button', { name: 'Rotate shop-api' }).click();
    const body = { type: 'api_key', value: { key: 'changed elsewhere' }, hosts: [upstream.host] };
    assert.equal((await owner.writeCredential('shop-api', body, '*')).status, 200);
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Key', { exact: true }).fill(NEXT);
    await dialog.getByRole('button', { name: 'Rotate' }).click();
    await dialog.getByText('The resource has changed since you read it.').waitFor();
  }));

test('a member with the viewer role sees the hosts of a credential, but no buttons for changes', () =>
  visitAs(VIEWER_EMAIL, DESKTOP, async (page, watched) => {
    await page.getByText(upstream.host).waitFor();
    for (const name of [/^Add/, /^Rotate/, /^Restore/, /^Delete/])
      assert.equal(await page.getByRole('button', { name }).count(), 0, String(name));
    await watched.assertAccessible();
  }));

test('the form for a website sign-in asks for origins instead of hosts', () =>
  visitAs(OWNER_EMAIL, DESKTOP, async (page, watched) => {
    await page.getByRole('button', { name: 'Add a credential' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Id', { exact: true }).fill('bank');
    await dialog.getByLabel('Type').selectOption('Sign-in for a website');
    await dialog.getByLabel('User name').fill('ada');
    await dialog.getByLabel('Password').fill(SECRET);
    await dialog.getByLabel('Origins').fill('https://bank.example');
    assert.equal(await dialog.getByLabel('Hosts').count(), 0);
    await watched.assertAccessible();
    await dialog.getByRole('button', { name: 'Add' }).click();
    await page.getByText('https://bank.example').waitFor();
    await page.getByText('May be typed at').waitFor();
  }));

test('a credential in use can be deleted only by force, and the page names the operation that uses the credential', () =>
  visitAs(OWNER_EMAIL, DESKTOP, async (page, watched) => {
    await page.getByRole('button', { name: 'Delete shop-api' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByText('Published operations use the credential shop-api: orders.read.').waitFor();
    await watched.assertAccessible();
    await dialog.getByLabel('Delete it even though operations use it').check();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Delete shop-api' }).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Delete bank' }).waitFor();
  }));
