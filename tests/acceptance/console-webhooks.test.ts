// Webhooks in the console, in a real browser. A webhook is created, tested, changed and disabled, and a delivery is
// sent again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DESKTOP, ensureConsoleBuilt, PHONE_DARK, signInByHand, visit } from '../harness/console.ts';
import { joinApplication } from '../harness/members.ts';
import { PASSWORD, Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { Receiver } from '../harness/webhooks.ts';

const OWNER_EMAIL = 'ada@example.com';
const VIEWER_EMAIL = 'vic@example.com';

await ensureConsoleBuilt();
const receiver = await Receiver.open();
const server = await startServer({ env: receiver.settings });
const owner = await Person.setUpOwner(server, OWNER_EMAIL);
await joinApplication(server, owner, VIEWER_EMAIL, 'viewer');
const webhooksPath = `/console/a/${server.applicationId}/webhooks`;

test('a webhook can be created and tested, and the delivery of the test event is shown and can be sent again', async () => {
  await visit(server.url, DESKTOP, webhooksPath, async (page, watched) => {
    await signInByHand(page, OWNER_EMAIL, PASSWORD);
    await page.getByText('No webhooks').waitFor();
    await watched.assertAccessible();
    await page.getByRole('button', { name: 'Create a webhook' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('billing');
    await dialog.getByLabel('Address').fill('https://10.0.0.1/');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await dialog.getByText(/rule private/).waitFor();
    await watched.assertAccessible();
    await dialog.getByLabel('Address').fill(receiver.url('/console'));
    await dialog.getByLabel('Event types').fill('session.started, session.ended');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await page.getByText('session.started, session.ended').waitFor();
    await page.getByRole('button', { name: 'Copy the public key of billing' }).click();
    assert.match(await page.evaluate('navigator.clipboard.readText()'), /^whpk_/);

    await page.getByRole('button', { name: 'Send a test to billing' }).click();
    await page.getByRole('heading', { name: 'Deliveries of billing' }).waitFor();
    await page.getByText('Delivered', { exact: true }).waitFor();
    const [received] = await receiver.waitForCount('/console', 1);
    await watched.assertAccessible();
    await page.getByRole('button', { name: /^Send again: webhook\.test/ }).click();
    const [, again] = await receiver.waitForCount('/console', 2);
    assert.equal(again?.headers['webhook-id'], received?.headers['webhook-id']);
  });
});

test('the webhook page shows why a delivery failed, and that a webhook is disabled', async () => {
  receiver.respondTo('/console', response => void response.writeHead(503).end());
  await visit(server.url, PHONE_DARK, webhooksPath, async (page, watched) => {
    await signInByHand(page, OWNER_EMAIL, PASSWORD);
    await page.getByRole('button', { name: 'Send a test to billing' }).click();
    await page.getByText('The endpoint responded with the status 503; expected 2xx.').waitFor();
    await page.getByText('Failing since').waitFor();
    await watched.assertAccessible();
    await page.getByRole('button', { name: 'Disable billing' }).click();
    await page.getByRole('button', { name: 'Enable billing' }).waitFor();
    await page.getByText(/^Disabled/).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Send a test to billing' }).count(), 0);
    await watched.assertAccessible();
  });
});

test('a member with the viewer role sees webhooks and deliveries, but no buttons for changes', async () => {
  await visit(server.url, DESKTOP, webhooksPath, async (page, watched) => {
    await signInByHand(page, VIEWER_EMAIL, PASSWORD);
    await page.getByRole('button', { name: 'Deliveries of billing' }).click();
    await page.getByText('Given up').first().waitFor();
    for (const name of ['Create a webhook', 'Change billing', 'Delete billing', 'Enable billing'])
      assert.equal(await page.getByRole('button', { name }).count(), 0, name);
    await watched.assertAccessible();
  });
});

test('a webhook can be changed and deleted', async () => {
  await visit(server.url, DESKTOP, webhooksPath, async page => {
    await signInByHand(page, OWNER_EMAIL, PASSWORD);
    await page.getByRole('button', { name: 'Change billing' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('invoices');
    await page.getByRole('dialog').getByLabel('Event types').fill('');
    await page.getByRole('dialog').getByRole('button', { name: 'Change' }).click();
    await page.getByText('All events').waitFor();
    await page.getByRole('button', { name: 'Delete invoices' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No webhooks').waitFor();
  });
});
