// Finding and reading invocations in the console, and verifying their receipts, in a real browser.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import type { Invocation } from '../../contract/invocations.ts';
import { verifyReceipt } from '../../sdk/index.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import {
  DESKTOP,
  DESKTOP_DARK,
  type DisplaySettings,
  ensureConsoleBuilt,
  PHONE,
  PHONE_DARK,
  signInByHand,
  visit,
} from '../harness/console.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { walkByKeyboard } from '../harness/keyboard.ts';
import { liftLimits } from '../harness/limits.ts';
import { joinApplication } from '../harness/members.ts';
import { invoke, issueAgentKey } from '../harness/operations.ts';
import { openPages } from '../harness/pages.ts';
import { PASSWORD, Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { openUpstream } from '../harness/upstream.ts';

const OWNER_EMAIL = 'ada@example.com';
const VIEWER_EMAIL = 'vic@example.com';

await ensureConsoleBuilt();
const pages = await openPages({ '/': '<!doctype html><title>Red</title><body style="background:#f00">' });
const upstream = await openUpstream();
const allowedAddresses = [new URL(pages.url).host, upstream.host].map(host => `127.0.0.1/32:${host.split(':')[1]}`);
const server = await startServer({
  pages,
  env: { BERTH_ENGINE: LIGHT_ENGINE, BERTH_EGRESS_ALLOW: allowedAddresses.join(',') },
});
const person = await Person.setUpOwner(server, OWNER_EMAIL);
await joinApplication(server, person, VIEWER_EMAIL, 'viewer');
await liftLimits(server);
const owner = await Owner.open(server);
const list = `/console/a/${server.applicationId}/invocations`;
const visitAs = (
  email: string,
  look: DisplaySettings,
  path: string,
  work: Parameters<typeof visit>[3],
): Promise<void> =>
  visit(server.url, look, path, async (page, watched) => {
    await signInByHand(page, email, PASSWORD);
    await work(page, watched);
  });

test('the list of invocations states that an application has no invocations yet', () =>
  visitAs(OWNER_EMAIL, DESKTOP, list, async (page, watched) => {
    await page.getByText('No invocations yet').waitFor();
    await watched.assertAccessible();
  }));

const agent = await issueAgentKey(server, { name: 'nightly shop' });
const RETENTION = { input: 'full', output: 'full', days: 3 };
const invocations: Record<string, Invocation> = {};

test('a member can find an invocation by state and operation', async () => {
  await owner.publish('orders.read', cancelOrderOperation(upstream, { effect: 'read', retention: RETENTION }));
  for (const [name, operationId, input] of [
    ['order', 'orders.read', { orderId: 'A-1007', reason: 'a mistake' }],
    ['screenshot', 'browser.screenshot', { url: `${pages.url}/` }],
    ['failure', 'browser.content', { url: 'http://127.0.0.1:1/' }],
  ] as const) {
    const { status, body, text } = await invoke(server, agent.key, operationId, input);
    assert.equal(status, 200, text);
    invocations[name] = body;
  }
  await visitAs(VIEWER_EMAIL, DESKTOP, list, async (page, watched) => {
    const rows = page.getByRole('listitem').filter({ has: page.locator('a[href*="/invocations/"]') });
    await page.getByRole('link', { name: 'browser.screenshot' }).waitFor();
    assert.equal(await rows.count(), 3);
    await rows.first().getByText('nightly shop').waitFor();
    await watched.assertAccessible();
    await page.getByLabel('State').selectOption('Failed');
    await page.getByText('page_failed').waitFor();
    await page.getByRole('link', { name: 'browser.screenshot' }).waitFor({ state: 'detached' });
    assert.equal(await rows.count(), 1);
    await page.getByLabel('Operation').focus();
    await page.getByLabel('Operation').selectOption('orders.read');
    await page.getByText('No matching invocations').waitFor();
    await watched.assertAccessible();
    await page.getByLabel('State').selectOption('Any state');
    await page.getByRole('link', { name: 'orders.read' }).click();
    await page.getByRole('heading', { name: 'Invocation', exact: true }).waitFor();
    assert.ok(page.url().endsWith(`/invocations/${invocationOf('order').id}`));
    await page.keyboard.press('Control+k');
    await page.keyboard.type('invoc');
    await page.getByRole('option', { name: /Invocations/ }).click();
    await page.getByRole('heading', { name: 'Invocations', exact: true }).waitFor();
  });
});

const invocationOf = (name: string): Invocation => invocations[name] ?? assert.fail(name);
const pathOf = (name: string): string => `${list}/${invocationOf(name).id}`;

for (const look of [DESKTOP, DESKTOP_DARK, { ...DESKTOP, width: 1024 }, PHONE, PHONE_DARK])
  test(`the page of an invocation verifies the receipt at ${look.width} pixels in the ${look.colours} theme`, () =>
    visitAs(OWNER_EMAIL, look, pathOf('order'), async (page, watched) => {
      await page.getByText('Verified in this browser').waitFor();
      await page.getByText('The input on this page matches the digest in the receipt.').waitFor();
      await page.getByText('The output on this page matches the digest in the receipt.').waitFor();
      await page.getByText('A-1007').waitFor();
      await page
        .getByText(/^Kept until/)
        .first()
        .waitFor();
      await watched.assertAccessible();
      await page.getByText('Verify it without this service').click();
      await page.getByText(/^berth receipts verify/).waitFor();
      await watched.assertAccessible();
    }));

test('the receipt of an invocation can be downloaded as a file, and verified outside the console', () =>
  visitAs(VIEWER_EMAIL, DESKTOP, pathOf('order'), async page => {
    const whenDownloaded = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download' }).click();
    const download = await whenDownloaded;
    assert.equal(download.suggestedFilename(), `receipt-${invocationOf('order').id}.jws`);
    const receipt = readFileSync(await download.path(), 'utf8');
    const keys = (await server.api<Parameters<typeof verifyReceipt>[1]['keys']>('GET', '/.well-known/jwks.json')).body;
    assert.equal(verifyReceipt(receipt, { keys }).sub, `invocation:${invocationOf('order').id}`);
  }));

/** Changes the response that the page gets from this URL, which is the URL of the invocation or of the key set. */
async function changed(page: Page, url: string, change: (body: Record<string, unknown>) => object): Promise<void> {
  await page.route(url, async route => {
    const response = await route.fetch();
    await route.fulfill({ response, json: change(Object(await response.json())) });
  });
}

/** Flips one bit of the character in the middle of this part of the receipt. */
function flipBit(receipt: string, part: number): string {
  const parts = receipt.split('.');
  const bytes = Buffer.from(parts[part] ?? '');
  const at = bytes.length >> 1;
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
  parts[part] = bytes.toString();
  return parts.join('.');
}

for (const [part, name] of ['header', 'payload', 'signature'].entries())
  test(`the page of an invocation reports a receipt as invalid if a byte of its ${name} has changed, and shows none of its contents`, () =>
    visit(server.url, DESKTOP, pathOf('order'), async (page, watched) => {
      await changed(page, `**/v1/applications/*/invocations/${invocationOf('order').id}`, ({ receipt, ...rest }) => ({
        ...{ ...rest, receipt: flipBit(String(receipt), part) },
      }));
      await signInByHand(page, OWNER_EMAIL, PASSWORD);
      await page.getByText('This receipt is not valid').waitFor();
      if (part > 0) await page.getByText(/The receipt signature is not valid\./).waitFor();
      assert.equal(await page.getByText('Verified in this browser').count(), 0);
      assert.equal(await page.getByText('Issued by').count(), 0);
      await watched.assertAccessible();
    }));

test('the page of an invocation names the field in which the shown data differs from the receipt', () =>
  visit(server.url, PHONE, pathOf('order'), async page => {
    await changed(page, `**/v1/applications/*/invocations/${invocationOf('order').id}`, body => ({
      ...{ ...body, output: { state: 'other' } },
    }));
    await signInByHand(page, OWNER_EMAIL, PASSWORD);
    await page.getByText(/The output does not match the receipt\./).waitFor();
    await page.unrouteAll({ behavior: 'wait' });
    await changed(page, `**/v1/applications/*/invocations/${invocationOf('order').id}`, body => ({
      ...body,
      status: 'failed',
    }));
    await page.reload();
    await page.getByText('The state in the receipt is succeeded, but this page shows failed.').waitFor();
  }));

test('the page of an invocation reports that the signing key is not in the key set, or that the key set could not be loaded', () =>
  visit(server.url, DESKTOP, pathOf('order'), async (page, watched) => {
    await changed(page, '**/.well-known/jwks.json', () => ({ keys: [] }));
    await signInByHand(page, OWNER_EMAIL, PASSWORD);
    await page.getByText(/signed with a key that is not in the key set/).waitFor();
    await page.unrouteAll({ behavior: 'wait' });
    await page.route('**/.well-known/jwks.json', route =>
      route.fulfill({ status: 404, json: { message: 'No keys here.' } }),
    );
    await page.reload();
    await page.getByText('No keys here.').waitFor();
    await watched.assertAccessible();
    await page.unrouteAll({ behavior: 'wait' });
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('Verified in this browser').waitFor();
  }));

test('the page of an invocation shows a receipt as not verified if the browser has no Web Crypto API', () =>
  visit(server.url, PHONE_DARK, pathOf('order'), async (page, watched) => {
    await page.addInitScript("Object.defineProperty(crypto, 'subtle', { value: undefined })");
    await page.reload();
    await signInByHand(page, OWNER_EMAIL, PASSWORD);
    await page.getByText('Not verified').waitFor();
    await page.getByText(/over HTTPS/).waitFor();
    await watched.assertAccessible();
  }));

test('the page of a screenshot invocation links to the image file and to the replay of the session', () =>
  visitAs(OWNER_EMAIL, DESKTOP, pathOf('screenshot'), async (page, watched) => {
    await page.getByText('Verified in this browser').waitFor();
    await watched.assertAccessible();
    const file = page.getByRole('link', { name: /^image\/png/ });
    const response = await fetch((await file.getAttribute('href')) ?? '');
    assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'image/png']);
    await response.body?.cancel();
    await page.getByRole('link', { name: 'Replay' }).click();
    await page.getByRole('heading', { name: 'Session', exact: true }).waitFor();
    assert.match(page.url(), new RegExp(`/sessions/${invocationOf('screenshot').sessionId}\\?tab=replay$`));
  }));

test('the page of a failed invocation shows the reason, and verifies the receipt', () =>
  visitAs(OWNER_EMAIL, PHONE, pathOf('failure'), async (page, watched) => {
    await page.getByText('Verified in this browser').waitFor();
    await page.getByText('failed, page_failed').waitFor();
    await page.getByText(/The page could not be loaded/).waitFor();
    // A read has no effect, so the page does not warn that there may have been one.
    assert.equal(await page.getByText('The effect may have happened.').count(), 0);
    await watched.assertAccessible();
  }));

test('a member with the viewer role can verify a receipt, but sees neither the input nor the output of the invocation', () =>
  visitAs(VIEWER_EMAIL, DESKTOP, pathOf('order'), async (page, watched) => {
    await page.getByText('Verified in this browser').waitFor();
    await page.getByText('The input is kept, but is shown only to developers, admins and owners.').waitFor();
    assert.equal(await page.getByText('A-1007').count(), 0);
    await watched.assertAccessible();
  }));

test('the page of an invocation reports an unknown id, and every element of the page for a known id can be reached by keyboard', async () => {
  await visitAs(OWNER_EMAIL, DESKTOP, `${list}/${server.applicationId}`, async (page, watched) => {
    await page
      .getByRole('alert')
      .getByText(/does not exist/)
      .waitFor();
    await watched.assertAccessible();
  });
  await visitAs(OWNER_EMAIL, DESKTOP, pathOf('order'), async page => {
    await page.getByText('Verified in this browser').waitFor();
    assert.deepEqual(await walkByKeyboard(page), { unreachable: [], unmarked: [] });
  });
});
