// An agent prepares an Action, a person approves it by its digest, and it is executed once.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Action, ApplicationAction, ApplicationActionPage } from '../../contract/actions.ts';
import type { AuditPage } from '../../contract/audit.ts';
import type { SessionEventPage } from '../../contract/events.ts';
import type { InvocationPage } from '../../contract/invocations.ts';
import { canonicalJson } from '../../sdk/canonical-json.ts';
import { type KeySet, verifyReceipt } from '../../sdk/verify-receipt.ts';
import { ACTION_SCOPES, ActionAgent, actionsPath, addPasskey, decide, signAction } from '../harness/actions.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { liftLimits } from '../harness/limits.ts';
import { joinApplication, stepUp, verifyEmail } from '../harness/members.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { openUpstream, sendJson } from '../harness/upstream.ts';

const upstream = await openUpstream();
upstream.respondTo('/orders/', (_, response) => sendJson(response, 200, { state: 'cancelled' }));
const server = await startServer({ clock: 'test', env: { ...upstream.settings, BERTH_WARM: '0' } });
await liftLimits(server);
const publisher = await Owner.open(server);
await publisher.publish('orders.cancel', {
  ...cancelOrderOperation(upstream, { effect: 'irreversible', approval: 'member' }),
  display: { summary: 'Cancel order {{input.orderId}}', fields: [{ label: 'Order', value: '/orderId' }] },
});
await publisher.publish('orders.refund', cancelOrderOperation(upstream, { approval: 'owner' }));
await publisher.publish('orders.hold', cancelOrderOperation(upstream, { approval: 'none' }));
const GRANTS = ['orders.cancel', 'orders.refund', 'orders.hold'].map(operationId => ({ operationId }));
const { key } = await issueAgentKey(server, { scopes: ACTION_SCOPES, grants: GRANTS });
const agent = new ActionAgent(server, key);
let owner: Person;
let admin: Person;
let developer: Person;
const hits = (orderId: string): number => upstream.receivedRequests(`/orders/${orderId}/`).length;

before(async () => {
  owner = await Person.setUpOwner(server);
  await verifyEmail(server, owner, 'ada@example.com');
  admin = (await joinApplication(server, owner, 'admin@example.com', 'admin')).person;
  developer = (await joinApplication(server, owner, 'dev@example.com', 'developer')).person;
});

test('a direct call of an operation that needs approval is refused, and the error contains the address for preparing the call', async () => {
  const callResponse = await invoke(
    server,
    key,
    'orders.cancel',
    { orderId: 'A-0' },
    { headers: { 'idempotency-key': 'x' } },
  );
  assert.deepEqual([callResponse.status, callResponse.body.code], [409, 'approval_required']);
  assert.match(callResponse.text, /operations\/orders\.cancel\/prepare/);
});

test('an input is refused if other programs might compute a different digest for the input', async () => {
  for (const orderId of ['\ud800', 2 ** 53]) {
    const refusal = await agent.prepare('orders.cancel', { input: { orderId } });
    assert.equal(refusal.status, 400, refusal.text);
    assert.match(refusal.text, /half of a surrogate pair/);
  }
});

test('an agent can execute an Action only after a member has approved its digest, and only once', async () => {
  const metadata = { note: 'x'.repeat(800) };
  const input = { orderId: 'A-1' };
  const action = await agent.prepareSuccessfully('orders.cancel', { input, reason: 'The customer asked.', metadata });
  assert.deepEqual([action.status, action.approver], ['awaiting_approval', 'member']);
  assert.equal(action.approvalUrl, `${server.url}/approve/${action.jobId}`);
  const { createHash } = await import('node:crypto');
  const digest = createHash('sha256').update(canonicalJson(action.action)).digest('hex');
  assert.equal(action.digest, `sha256:${digest}`);
  const earlyRefusal = await agent.execute(action);
  assert.deepEqual([earlyRefusal.status, earlyRefusal.body.code], [409, 'approval_required']);

  const actionResponse = await admin.get<ApplicationAction>(`/v1/approvals/${action.jobId}`);
  assert.equal(actionResponse.status, 200, actionResponse.text);
  assert.deepEqual(actionResponse.body.asksFor, {
    summary: 'Cancel order A-1',
    fields: [{ label: 'Order', value: 'A-1' }],
  });
  assert.deepEqual([actionResponse.body.reason, actionResponse.body.mayDecide], ['The customer asked.', true]);
  await stepUp(admin);
  const pendingRead = agent.read(action.jobId, '?wait=50&since=awaiting_approval');
  const approval = await decide(server, admin, action);
  assert.equal(approval.status, 200, approval.text);
  assert.equal((await pendingRead).body.status, 'approved');
  assert.deepEqual(approval.body.decision?.by.kind, 'member');

  const executeResponse = await agent.execute(action);
  assert.equal(executeResponse.status, 200, executeResponse.text);
  assert.deepEqual([executeResponse.body.status, executeResponse.body.output], ['succeeded', { state: 'cancelled' }]);
  assert.deepEqual([executeResponse.body.jobId, executeResponse.body.metadata], [action.jobId, metadata]);
  const callsOf = async (jobId: string) => {
    const path = agentPath(server, `invocations?jobId=${jobId}`);
    return (await server.api<InvocationPage>('GET', path, { key })).body.data.map(({ id }) => id);
  };
  assert.deepEqual(await callsOf(action.jobId.toUpperCase()), [executeResponse.body.id]);
  assert.deepEqual(await callsOf(executeResponse.body.id), [], 'no call of another Action');
  const secondExecuteResponse = await agent.execute(action);
  assert.deepEqual([secondExecuteResponse.body.id, hits('A-1')], [executeResponse.body.id, 1]);
  const readResponse = await agent.read(action.jobId);
  assert.deepEqual([readResponse.body.status, readResponse.body.invocationId], ['succeeded', executeResponse.body.id]);
  // The Action has ended, and its operation keeps no inputs.
  assert.equal(readResponse.body.action, undefined);
});

test('an Action for owners can be approved only by an owner with a fresh proof, and its receipt contains the passkey approval', async () => {
  await stepUp(owner);
  const passkey = await addPasskey(server, owner);
  const action = await agent.prepareSuccessfully('orders.refund', { input: { orderId: 'A-2' } });
  assert.equal(action.approver, 'owner');
  await stepUp(admin);
  const adminRefusal = await decide(server, admin, action);
  assert.deepEqual([adminRefusal.status, adminRefusal.body.code], [403, 'permission_denied']);
  await server.advance(301_000);
  const stepUpRefusal = await decide(server, owner, action);
  assert.deepEqual([stepUpRefusal.status, stepUpRefusal.body.code], [401, 'insufficient_user_authentication']);
  const proof = await signAction(server, owner, passkey, action);
  const approval = await decide(server, owner, action, { proof });
  assert.equal(approval.status, 200, approval.text);
  assert.deepEqual([approval.body.decision?.method, approval.body.decision?.acr], ['passkey', 'phr']);
  const executeResponse = await agent.execute(action);
  assert.deepEqual(
    [executeResponse.status, executeResponse.body.status, hits('A-2')],
    [200, 'succeeded', 1],
    executeResponse.text,
  );
  const keys = (await server.api<KeySet>('GET', '/.well-known/jwks.json', { key: null })).body;
  const options = { keys, issuer: server.url, input: { orderId: 'A-2' }, action: action.action };
  const { berth } = verifyReceipt(executeResponse.body.receipt ?? '', options);
  assert.equal(berth.action?.digest, action.digest);
  assert.deepEqual([berth.action?.approval.method, berth.action?.approval.rpId], ['passkey', 'localhost']);
});

test('an Action with executeOnApproval is executed on approval, without another request', async () => {
  const action = await agent.prepareSuccessfully('orders.hold', { input: { orderId: 'A-3' }, executeOnApproval: true });
  assert.equal(action.approver, 'member');
  await stepUp(admin);
  assert.equal((await decide(server, admin, action)).status, 200);
  const readResponse = await agent.read(action.jobId, '?wait=50&since=approved');
  const { invocationId = assert.fail('the Action has no invocation') } = readResponse.body;
  const { body } = await agent.readInvocation(invocationId);
  assert.deepEqual([body.status, hits('A-3')], ['succeeded', 1]);
  assert.equal((await agent.read(action.jobId)).body.status, 'succeeded');
});

test('a refused, expired, cancelled or withdrawn Action is not executed', async () => {
  const assertNotExecutable = async (action: Action, status: string): Promise<void> => {
    const refusal = await agent.execute(action);
    assert.deepEqual([refusal.status, refusal.body.code], [410, 'expired'], refusal.text);
    assert.equal((await agent.read(action.jobId)).body.status, status);
  };
  const refusedAction = await agent.prepareSuccessfully('orders.cancel', { input: { orderId: 'A-4' } });
  const decideResponse = await decide(server, admin, refusedAction, {
    decision: 'refuse',
    message: 'Ask them\u202e first.',
  });
  assert.deepEqual(
    [decideResponse.status, decideResponse.body.decision?.message],
    [200, 'Ask them first.'],
    decideResponse.text,
  );
  await assertNotExecutable(refusedAction, 'refused');
  const cancelledAction = await agent.prepareSuccessfully('orders.cancel', { input: { orderId: 'A-4' } });
  assert.equal((await agent.cancel(cancelledAction.jobId)).body.why, 'caller');
  await assertNotExecutable(cancelledAction, 'cancelled');
  const expiredAction = await agent.prepareSuccessfully('orders.cancel', { input: { orderId: 'A-4' }, expiresIn: 60 });
  await stepUp(admin);
  assert.equal((await decide(server, admin, expiredAction)).status, 200);
  await server.advance(61_000);
  await assertNotExecutable(expiredAction, 'expired');
  const withdrawnAction = await agent.prepareSuccessfully('orders.cancel', { input: { orderId: 'A-4' } });
  assert.equal((await decide(server, admin, withdrawnAction)).status, 200);
  assert.equal((await publisher.send('POST', 'operations/orders.cancel/withdraw')).status, 200);
  await assertNotExecutable(withdrawnAction, 'cancelled');
  assert.equal((await agent.read(withdrawnAction.jobId)).body.why, 'withdrawn');
  assert.equal((await publisher.send('POST', 'operations/orders.cancel/publish')).status, 200);
  await assertNotExecutable(withdrawnAction, 'cancelled');
  assert.equal(hits('A-4'), 0);
});

test('a repeated prepare request returns the same Action, and another request for an equal Action is refused while the first Action is open', async () => {
  const body = { input: { orderId: 'A-5' } };
  const firstResponse = await agent.prepare('orders.cancel', body, 'same');
  const secondResponse = await agent.prepare('orders.cancel', body, 'same');
  assert.deepEqual(
    [secondResponse.status, secondResponse.body.jobId, secondResponse.headers['idempotency-replayed']],
    [201, firstResponse.body.jobId, 'true'],
  );
  const conflictResponse = await agent.prepare('orders.cancel', { input: { orderId: 'A-6' } }, 'same');
  assert.deepEqual([conflictResponse.status, conflictResponse.body.code], [409, 'idempotency_conflict']);
  const duplicateRefusal = await agent.prepare('orders.cancel', { ...body, expiresIn: 120, reason: 'Again.' });
  assert.deepEqual([duplicateRefusal.status, duplicateRefusal.body.code], [409, 'already_prepared']);
  assert.deepEqual(Object(duplicateRefusal.body.details).jobId, firstResponse.body.jobId);
  await agent.cancel(firstResponse.body.jobId);
  assert.equal((await agent.prepare('orders.cancel', body)).status, 201);
});

test('an Action uses the operation revision for which it was prepared, and is not executed before its start time', async () => {
  const notBefore = new Date(server.now().getTime() + 120_000).toISOString();
  const action = await agent.prepareSuccessfully('orders.hold', { input: { orderId: 'A-7' }, notBefore });
  await publisher.publish('orders.hold', cancelOrderOperation(upstream, { approval: 'none', title: 'Hold it' }));
  await stepUp(admin);
  assert.equal((await decide(server, admin, action)).status, 200);
  const earlyRefusal = await agent.execute(action);
  assert.deepEqual([earlyRefusal.status, earlyRefusal.body.code], [409, 'not_ready'], earlyRefusal.text);
  await server.advance(121_000);
  const executeResponse = await agent.execute(action);
  assert.deepEqual(
    [executeResponse.body.status, executeResponse.body.operationRevision],
    ['succeeded', 1],
    executeResponse.text,
  );
});

test('members can list Actions, but only members who may decide an Action can open its approval page', async () => {
  const action = await agent.prepareSuccessfully('orders.refund', { input: { orderId: 'A-8' } });
  const listResponse = await developer.get<ApplicationActionPage>(actionsPath(server, '?limit=3'));
  assert.equal(listResponse.body.data[0]?.jobId, action.jobId);
  assert.deepEqual(
    [listResponse.body.data[0]?.mayDecide, listResponse.body.data[0]?.action?.input.orderId],
    [false, 'A-8'],
  );
  assert.equal((await developer.get(`/v1/approvals/${action.jobId}`)).status, 404);
  assert.equal((await admin.get(`/v1/approvals/${action.jobId}`)).status, 404);
  assert.equal((await owner.get(`/v1/approvals/${action.jobId}`)).status, 200);
  const refusedListResponse = await owner.get<ApplicationActionPage>(actionsPath(server, '?status=refused'));
  assert.deepEqual(
    refusedListResponse.body.data.map(({ status }) => status),
    ['refused'],
  );
});

test('decisions and executions are recorded as events, in order and with their actors', async () => {
  const path = '/v1/browsers/events?limit=1000&type=action.prepared,action.approved,action.refused,action.executed';
  const { body, text } = await server.api<SessionEventPage>('GET', path);
  const firstJobId = body.data[0]?.detail.jobId;
  const eventsOfFirstJob = body.data.filter(({ detail }) => detail.jobId === firstJobId);
  assert.deepEqual(
    eventsOfFirstJob.map(({ type, actor }) => [type, actor.kind]),
    [
      ['action.prepared', 'agentKey'],
      ['action.approved', 'account'],
      ['action.executed', 'agentKey'],
    ],
  );
  assert.ok(body.data.some(({ type }) => type === 'action.refused'));
  assert.ok(body.data.some(({ type, detail }) => type === 'action.approved' && detail.method === 'passkey'));
  const executedEvent = body.data.find(({ type }) => type === 'action.executed');
  assert.match(String(executedEvent?.detail.invocationId), /^[0-9a-f-]{36}$/);
  assert.doesNotMatch(text, /A-\d|customer/);
});

test('the audit log records every step of an Action with the digest, but without the input', async () => {
  const { body, text } = await publisher.send<AuditPage>('GET', 'audit?limit=100');
  const actions = new Set(body.data.map(({ action }) => action));
  for (const step of ['prepared', 'approved', 'refused', 'expired', 'executed', 'cancelled'] as const)
    assert.ok(actions.has(`action.${step}`), step);
  const actionEntries = body.data.filter(({ action }) => action.startsWith('action.'));
  for (const { details } of actionEntries) assert.match(String(details?.digest), /^sha256:/);
  assert.doesNotMatch(text, /A-\d/);
});
