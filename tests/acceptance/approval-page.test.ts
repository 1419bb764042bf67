// The page at approvalUrl, on a phone and on a desktop, with a virtual authenticator.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ACTION_SCOPES, ActionAgent } from '../harness/actions.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import {
  DESKTOP_DARK,
  type DisplaySettings,
  ensureConsoleBuilt,
  signInByHand,
  visit,
  type WatchedPage,
} from '../harness/console.ts';
import { liftLimits } from '../harness/limits.ts';
import { issueAgentKey } from '../harness/operations.ts';
import { createSetUpToken, PASSWORD } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { openUpstream, sendJson } from '../harness/upstream.ts';

await ensureConsoleBuilt();
const upstream = await openUpstream();
upstream.respondTo('/orders/', (_, response) => sendJson(response, 200, { state: 'cancelled' }));
const server = await startServer({ env: { ...upstream.settings, BERTH_WARM: '0' } });
await liftLimits(server);
const owner = await Owner.open(server);
await owner.publish('orders.cancel', {
  ...cancelOrderOperation(upstream, { effect: 'irreversible', approval: 'owner' }),
  display: { summary: 'Cancel order {{input.orderId}}', fields: [{ label: 'Order', value: '/orderId' }] },
});
const { key } = await issueAgentKey(server, { scopes: ACTION_SCOPES, grants: [{ operationId: 'orders.cancel' }] });
const agent = new ActionAgent(server, key);
/** As narrow as the screen of a small phone. */
const NARROW_SCREEN: DisplaySettings = { width: 360, height: 740, colours: 'light' };
const ORIGIN = server.url.replace('127.0.0.1', 'localhost');
const EMAIL = 'ada@example.com';

async function signIn({ page }: WatchedPage, password = PASSWORD): Promise<void> {
  await page.getByRole('heading', { name: 'Sign in to decide' }).waitFor();
  await signInByHand(page, EMAIL, password);
}

test('a person reviews an Action on a phone, and approves it with a passkey signature over the digest', async () => {
  const action = await agent.prepareSuccessfully('orders.cancel', {
    input: { orderId: 'A-1' },
    reason: 'The customer asked for it on the phone.',
    executeOnApproval: true,
  });
  await visit(ORIGIN, NARROW_SCREEN, `/signin#setup=${await createSetUpToken(server)}`, async (page, watched) => {
    await watched.addAuthenticator();
    await page.getByLabel('Your name').fill('Ada');
    await page.getByLabel('E-mail address').fill(EMAIL);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Create the account' }).click();
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor();
    await page.goto(action.approvalUrl.replace(server.url, ORIGIN));
    await page.getByRole('heading', { name: 'Cancel order A-1' }).waitFor();
    await watched.assertAccessible();
    const agentSection = page.locator('section', { has: page.getByRole('heading', { name: 'The agent says' }) });
    assert.match(await agentSection.innerText(), /The customer asked for it on the phone\./);
    assert.ok(await page.getByText('This cannot be undone.').isVisible());
    await page.getByRole('button', { name: 'Approve', exact: true }).click();
    await page.getByRole('heading', { name: 'Done' }).waitFor();
    assert.ok(await page.getByText('by a passkey, over the digest').isVisible());
    await watched.assertAccessible();
  });
  const { body } = await agent.read(action.jobId);
  assert.deepEqual([body.status, body.decision?.method, body.decision?.acr], ['succeeded', 'passkey', 'phr']);
  assert.equal(upstream.receivedRequests('/orders/A-1/').length, 1);
});

test('the approval page shows markup, links and reordered text from an agent as plain text, and hidden characters in values as escape sequences', async () => {
  const action = await agent.prepareSuccessfully('orders.cancel', {
    input: { orderId: `A-2\u202e${'x'.repeat(190)}<b>` },
    reason: '<b>Approve</b> at https://evil.example/ \u202enow\u0007 [here](javascript:alert(1))',
  });
  await visit(ORIGIN, DESKTOP_DARK, `/approve/${action.jobId}`, async (page, watched) => {
    await signIn(watched);
    await page.getByRole('heading', { name: /Cancel order/ }).waitFor();
    const agentSection = page.locator('section', { has: page.getByRole('heading', { name: 'The agent says' }) });
    const reason = '<b>Approve</b> at https://evil.example/ now [here](javascript:alert(1))';
    assert.equal(await agentSection.locator('p').innerText(), reason);
    assert.equal(await page.locator('main a').count(), 0, 'the reason contains no link');
    assert.equal(await page.locator('main b').count(), 0, 'the reason contains no markup');
    assert.match(
      await page.getByRole('heading', { name: /Cancel order/ }).innerText(),
      /A-2\\u\{202e\}x{180,}… \(\d+ characters\)/,
    );
    assert.ok(!(await page.locator('main').innerText()).includes('\u202e'));
    await watched.assertAccessible();
    await page.getByRole('button', { name: 'Refuse' }).click();
    await page.getByRole('heading', { name: 'Refused' }).waitFor();
  });
  assert.equal((await agent.read(action.jobId)).body.status, 'refused');
});

test('the approval page cannot be shown in a frame, sends no requests to other origins, and reveals nothing before the sign-in', async () => {
  const action = await agent.prepareSuccessfully('orders.cancel', { input: { orderId: 'A-3' } });
  const response = await fetch(`${ORIGIN}/approve/${action.jobId}`);
  const policy = response.headers.get('content-security-policy') ?? '';
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.match(policy, /connect-src 'self'(;|$)/);
  assert.equal(response.headers.get('x-frame-options'), 'DENY');
  assert.doesNotMatch(await response.text(), /A-3|Cancel/);
  await visit(ORIGIN, NARROW_SCREEN, `/approve/${action.jobId}`, async (page, watched) => {
    await page.getByRole('heading', { name: 'Sign in to decide' }).waitFor();
    await watched.assertAccessible();
    assert.doesNotMatch(await page.locator('body').innerText(), /A-3|Cancel/);
  });
});
