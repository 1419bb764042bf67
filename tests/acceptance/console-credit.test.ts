// Credit in the console, in a real browser: the remaining and the held credit, the usage, the ledger, and an order for
// more credit.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import {
  DESKTOP,
  DESKTOP_DARK,
  type DisplaySettings,
  ensureConsoleBuilt,
  PHONE,
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
const VIEWER_EMAIL = 'vic@example.com';
const PACKS = [
  { id: 'p50', credits: 50, price: 4500, currency: 'EUR' },
  { id: 'p100', credits: 100, bonus: 10, price: 8000, currency: 'EUR' },
];

await ensureConsoleBuilt();
const upstream = await openUpstream();
const server = await startServer({
  env: {
    ...upstream.settings,
    BERTH_RATE_BROWSER_SECOND: '1000',
    BERTH_CREDIT_PACKS: JSON.stringify(PACKS),
    BERTH_PAYMENT_TEXT: 'Transfer to DE00 0000 with the reference.',
  },
});
const person = await Person.setUpOwner(server, OWNER_EMAIL);
await joinApplication(server, person, VIEWER_EMAIL, 'viewer');
await liftLimits(server);
const owner = await Owner.open(server);
const creditPath = `/console/a/${server.applicationId}/credit`;
const visitAs = (email: string, look: DisplaySettings, work: Parameters<typeof visit>[3], rest = ''): Promise<void> =>
  visit(server.url, look, `${creditPath}${rest}`, async (page, watched) => {
    await signInByHand(page, email, PASSWORD);
    await work(page, watched);
  });
const operate = async (...words: string[]): Promise<void> => {
  const { code, stdout, stderr } = await server.operate(...words);
  assert.equal(code, 0, stdout + stderr);
};

test('the credit page of an application without credit states that new work is refused', () =>
  visitAs(VIEWER_EMAIL, PHONE, async (page, watched) => {
    await page.getByText('New work is refused until credit is added.').waitFor();
    await page.getByText('No entries yet').waitFor();
    await page.getByText('Only an owner of the application can order.').waitFor();
    assert.equal(await page.getByRole('button', { name: /^Order/ }).count(), 0);
    await watched.assertAccessible();
  }));

test('an owner orders a pack, sees how to pay, and sees the credit after the operator has confirmed the payment', () =>
  visitAs(OWNER_EMAIL, DESKTOP, async (page, watched) => {
    await page.getByText('plus 10 bonus credits').waitFor();
    await page.getByRole('button', { name: 'Order 50 credits' }).click();
    await watched.assertAccessible();
    await page.getByRole('dialog').getByRole('button', { name: 'Order' }).click();
    await page.getByText('Transfer to DE00 0000 with the reference.').waitFor();
    await page.getByText('Waiting for payment').waitFor();
    await watched.assertAccessible();
    const { body } = await owner.send<never>('GET', 'credits');
    assert.equal(Object(body).available, 0);
    const { data } = (
      await person.get<{ data: Array<{ id: string }> }>(
        `/v1/topups/manual/checkouts?applicationId=${server.applicationId}`,
      )
    ).body;
    await operate('credits', 'confirm', data[0]?.id ?? '', '--reason', 'statement 7');
    await page.getByText('Credited', { exact: true }).waitFor();
    await page.reload();
    await page.getByText('50 credits', { exact: true }).first().waitFor();
    await page.getByRole('button', { name: 'Order 100 credits' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Order' }).click();
    await page.getByRole('button', { name: /^Cancel the order/ }).click();
    await page.getByText('Cancelled', { exact: true }).waitFor();
  }));

test('the credit page shows the usage by day, by key and by operation in tables, and keeps the chosen view after a reload', async () => {
  const price = { microCredits: 250_000 };
  await owner.publish('orders.read', cancelOrderOperation(upstream, { effect: 'read', price }));
  const { key } = await issueAgentKey(server, { name: 'nightly shop' });
  for (const orderId of ['A-1', 'A-2']) {
    const { body, text } = await invoke(server, key, 'orders.read', { orderId });
    assert.equal(body.status, 'succeeded', text);
  }
  await visitAs(VIEWER_EMAIL, DESKTOP_DARK, async (page, watched) => {
    await page.getByText('0.5 credits used in the last 7 days.').waitFor();
    await page.getByText('Show as table').click();
    assert.equal(await page.getByRole('table').getByRole('row').count(), 8);
    await page.getByRole('cell', { name: '0.5 credits' }).waitFor();
    await watched.assertAccessible();
    await page.getByRole('button', { name: 'By agent key' }).click();
    await page.getByRole('row', { name: /nightly shop 0\.5 credits 2/ }).waitFor();
    await watched.assertAccessible();
    await page.getByRole('button', { name: 'By operation' }).click();
    await page.getByRole('row', { name: /orders\.read 0\.5 credits 2/ }).waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'By operation', pressed: true }).waitFor();
    await page.getByRole('row', { name: /orders\.read/ }).waitFor();
  });
});

test('the ledger can be filtered by entry type', () =>
  visitAs(VIEWER_EMAIL, PHONE, async (page, watched) => {
    await page.getByText('0.25 credits used', { exact: true }).first().waitFor();
    await page.getByLabel('Entry').selectOption('Bought');
    await page.getByText('0.25 credits used', { exact: true }).first().waitFor({ state: 'detached' });
    await page.getByText('available +50 credits').waitFor();
    await watched.assertAccessible();
    await page.getByLabel('Entry').selectOption('Granted by the operator');
    await page.getByText('No matching entries').waitFor();
  }));

test('the credit page of an installation without charges states that nothing is charged, and still shows the usage', async () => {
  const free = await startServer();
  const ada = await Person.setUpOwner(free, OWNER_EMAIL);
  assert.ok(ada);
  await visit(free.url, DESKTOP, `/console/a/${free.applicationId}/credit`, async (page, watched) => {
    await signInByHand(page, OWNER_EMAIL, PASSWORD);
    await page.getByRole('heading', { name: 'This installation does not charge' }).waitFor();
    await page.getByText('0 s of browser time in the last 7 days.').waitFor();
    await page.getByText('This installation does not sell credit.').waitFor();
    await watched.assertAccessible();
  });
});
