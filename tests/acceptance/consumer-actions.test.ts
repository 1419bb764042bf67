// An agent prepares an Action for an end user, who approves its digest with a passkey on a phone. The Action runs once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApplicationAction, ApplicationActionPage } from '../../contract/actions.ts';
import type { ErrorBody } from '../../contract/common.ts';
import { ACTION_SCOPES, ActionAgent } from '../harness/actions.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { type DisplaySettings, ensureConsoleBuilt, visit } from '../harness/console.ts';
import { ConsumerFixture } from '../harness/consumers.ts';
import { liftLimits } from '../harness/limits.ts';
import { issueAgentKey } from '../harness/operations.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { openUpstream, sendJson } from '../harness/upstream.ts';

const SMALL_SCREEN: DisplaySettings = { width: 360, height: 740, colours: 'light' };

await ensureConsoleBuilt();
const upstream = await openUpstream();
upstream.respondTo('/orders/', (_, response) => sendJson(response, 200, { state: 'cancelled' }));
const server = await startServer({ env: { ...upstream.settings, BERTH_WARM: '0' } });
await liftLimits(server);
const publisher = await Owner.open(server);
const display = { summary: 'Cancel order {{input.orderId}}', fields: [{ label: 'Order', value: '/orderId' }] };
await publisher.publish('orders.cancel', {
  ...cancelOrderOperation(upstream, { effect: 'irreversible', approval: 'end_user' }),
  display,
});
await publisher.publish('orders.refund', { ...cancelOrderOperation(upstream, { approval: 'member' }), display });
const grants = [{ operationId: 'orders.cancel' }, { operationId: 'orders.refund' }];
const { key } = await issueAgentKey(server, { scopes: ACTION_SCOPES, grants });
const agent = new ActionAgent(server, key);
const lab = await ConsumerFixture.open(server, await Person.setUpOwner(server));
const base = server.url.replace('127.0.0.1', 'localhost');
const kim = await lab.signIn('kim@example.com');
const lee = await lab.signIn('lee@example.com');
const hits = (orderId: string): number => upstream.receivedRequests(`/orders/${orderId}/`).length;

const prepare = (orderId: string, subject = kim.consumer.subject, more: object = {}) =>
  agent.prepareSuccessfully('orders.cancel', {
    input: { orderId },
    endUser: { providerId: 'hosted', subject },
    ...more,
  });

test('a consumer approves an Action with a passkey on a phone, and concurrent execute requests of the agent execute the Action once', async () => {
  const action = await prepare('A-1', kim.consumer.subject, { reason: 'You asked me to.' });
  assert.equal(action.approvalUrl, `${server.url}/consumer/${lab.appId}/approve/${action.jobId}`);
  await visit(base, SMALL_SCREEN, `/consumer/${lab.appId}`, async (page, watched) => {
    await watched.addAuthenticator();
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByLabel('E-mail address').fill('kim@example.com');
    await page.getByRole('button', { name: 'Send me a code' }).click();
    await page.getByText('a six-digit code is on its way').waitFor();
    await page.getByLabel('Code').fill(await lab.codeMailedTo('kim@example.com'));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('link', { name: 'Account' }).click();
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await page.getByRole('button', { name: 'Remove the passkey' }).waitFor();
    await page.goto(base + new URL(action.approvalUrl).pathname);
    await page.getByRole('heading', { name: 'Cancel order A-1' }).waitFor();
    await page.getByText('You asked me to.').waitFor();
    await watched.assertAccessible();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('You have approved this.').waitFor();
    await watched.assertAccessible();
  });
  assert.equal(hits('A-1'), 0);
  const executeResponses = await Promise.all(Array.from({ length: 5 }, () => agent.execute(action)));
  assert.deepEqual([...new Set(executeResponses.map(({ body }) => body.id))].length, 1);
  const invocationResponse = await agent.readInvocation(executeResponses[0]?.body.id ?? '');
  assert.equal(invocationResponse.body.status, 'succeeded', invocationResponse.text);
  assert.equal(hits('A-1'), 1);
  const readResponse = await agent.read(action.jobId);
  assert.deepEqual(
    [readResponse.body.decision?.by.kind, readResponse.body.decision?.method],
    ['end_user', 'passkey'],
    readResponse.text,
  );
});

test('a consumer sees only their own Actions, and can refuse an Action with a message to the agent', async () => {
  const { body: other } = await lab.owner.post<{ id: string }>('/v1/applications', { name: 'Other' });
  const otherLab = await ConsumerFixture.open(server, lab.owner, other.id);
  const stranger = await otherLab.signIn('lee@example.com');
  const action = await prepare('A-2', lee.consumer.subject);
  const listResponse = await lab.send<ApplicationActionPage>('actions.list', { limit: 10 }, lee.accessToken);
  assert.deepEqual([listResponse.status, listResponse.body.data[0]?.jobId], [200, action.jobId], listResponse.text);
  assert.equal(listResponse.body.data[0]?.asksFor?.summary, 'Cancel order A-2');
  for (const name of ['actions.get', 'actions.approve', 'actions.refuse']) {
    const body = { jobId: action.jobId, ...(name === 'actions.get' ? {} : { digest: action.digest }) };
    const otherConsumerRefusal = await lab.send<ErrorBody>(name, body, kim.accessToken);
    assert.deepEqual([otherConsumerRefusal.status, otherConsumerRefusal.body.code], [404, 'not_found'], name);
    for (const from of [lab, otherLab]) {
      const otherApplicationRefusal = await from.send<ErrorBody>(name, body, stranger.accessToken);
      assert.deepEqual(
        [otherApplicationRefusal.status, otherApplicationRefusal.body.code],
        [404, 'not_found'],
        `${name} of another application`,
      );
    }
  }
  const otherAction = await prepare('A-3', lee.consumer.subject);
  const swappedResponse = await lab.send<ErrorBody>(
    'actions.approve',
    { jobId: action.jobId, digest: otherAction.digest },
    lee.accessToken,
  );
  assert.deepEqual([swappedResponse.status, swappedResponse.body.code], [409, 'digest_mismatch'], swappedResponse.text);
  const refuseResponse = await lab.send<ApplicationAction>(
    'actions.refuse',
    { jobId: action.jobId, digest: action.digest, message: 'Not mine.' },
    lee.accessToken,
  );
  assert.deepEqual([refuseResponse.status, refuseResponse.body.status], [200, 'refused'], refuseResponse.text);
  const approvalRefusal = await lab.send<ErrorBody>(
    'actions.approve',
    { jobId: action.jobId, digest: action.digest },
    lee.accessToken,
  );
  assert.deepEqual([approvalRefusal.status, approvalRefusal.body.code], [409, 'already_decided'], approvalRefusal.text);
  assert.equal((await agent.execute(action)).status, 410);
});

test('a consumer can see, but not decide, an Action that a member must decide', async () => {
  const endUser = { providerId: 'hosted', subject: kim.consumer.subject };
  const { jobId, digest } = await agent.prepareSuccessfully('orders.refund', { input: { orderId: 'A-7' }, endUser });
  const listResponse = await lab.send<ApplicationActionPage>('actions.list', { limit: 1 }, kim.accessToken);
  assert.equal(listResponse.body.data[0]?.jobId, jobId, listResponse.text);
  const readResponse = await lab.send<ApplicationAction>('actions.get', { jobId }, kim.accessToken);
  assert.equal(readResponse.status, 200, readResponse.text);
  assert.deepEqual(readResponse.body, listResponse.body.data[0]);
  assert.deepEqual([readResponse.body.approver, readResponse.body.mayDecide], ['member', false]);
  for (const name of ['actions.approve', 'actions.refuse'])
    assert.equal((await lab.send(name, { jobId, digest }, kim.accessToken)).status, 404, name);
  assert.equal((await lab.send('actions.get', { jobId }, lee.accessToken)).status, 404);
  assert.equal((await agent.read(jobId)).body.status, 'awaiting_approval');
});

test('an Action for an unknown end user is refused, a deleted end user cannot decide, and the Actions of a deleted end user are cancelled', async () => {
  const unknownUserResponse = await agent.prepare('orders.cancel', {
    ...{ input: { orderId: 'A-4' }, endUser: { providerId: 'hosted', subject: 'u_nobody' } },
  });
  assert.deepEqual(
    [unknownUserResponse.status, unknownUserResponse.body.code],
    [400, 'invalid_request'],
    unknownUserResponse.text,
  );
  const action = await prepare('A-5', lee.consumer.subject);
  const approveResponse = await lab.send(
    'actions.approve',
    { jobId: action.jobId, digest: action.digest },
    lee.accessToken,
  );
  assert.equal(approveResponse.status, 200, approveResponse.text);
  const open = await prepare('A-6', lee.consumer.subject);
  assert.equal((await lab.send('profile.delete', {}, lee.accessToken)).status, 202);
  // A person who signs in again after deleting the profile is a new end user.
  const newTokens = await lab.signIn('lee@example.com');
  const unknownToken = lee.accessToken.replace(/.{8}$/, '00000000');
  for (const [accessToken, status] of [
    [lee.accessToken, 401],
    [unknownToken, 401],
    [newTokens.accessToken, 404],
  ] as const)
    for (const name of ['actions.get', 'actions.approve', 'actions.refuse']) {
      const body = { jobId: open.jobId, ...(name === 'actions.get' ? {} : { digest: open.digest }) };
      assert.equal((await lab.send(name, body, accessToken)).status, status, name);
    }
  for (const one of [action, open]) {
    const { status, body } = await agent.execute(one);
    assert.deepEqual([status, body.code, body.details?.status], [410, 'expired', 'cancelled']);
    assert.equal((await agent.read(one.jobId)).body.why, 'end_user_deleted');
  }
  for (const orderId of ['A-5', 'A-6']) assert.equal(hits(orderId), 0);
});
