// Attempts to approve, change or repeat an Action. Each must fail.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { ACTION_SCOPES, ActionAgent, actionsPath, addPasskey, decide, signAction } from '../harness/actions.ts';
import type { Authenticator, Forgery } from '../harness/authenticator.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { claimFreePort } from '../harness/free-port.ts';
import { liftLimits } from '../harness/limits.ts';
import { stepUp } from '../harness/members.ts';
import { agentPath, issueAgentKey } from '../harness/operations.ts';
import { createOtherApplicationKey } from '../harness/other-application.ts';
import { registerOtherPerson } from '../harness/other-person.ts';
import { PageInSession, settingsForOwnPages } from '../harness/page-in-session.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { openUpstream, sendJson } from '../harness/upstream.ts';

const upstream = await openUpstream();
upstream.respondTo('/orders/', (_, response) => sendJson(response, 200, { state: 'cancelled' }));
const port = await claimFreePort();
const env = { ...settingsForOwnPages(port, upstream.port), BERTH_WARM: '0', BERTH_REGISTRATION: 'open' };
const server = await startServer({ clock: 'test', port, env });
await liftLimits(server);
const applicationOwner = await Owner.open(server);
await applicationOwner.publish(
  'orders.cancel',
  cancelOrderOperation(upstream, { effect: 'irreversible', approval: 'member' }),
);
const GRANTS = [{ operationId: 'orders.cancel' }];
const { key } = await issueAgentKey(server, { scopes: ACTION_SCOPES, grants: GRANTS });
const agent = new ActionAgent(server, key);
let owner: Person;
let stranger: Person;
let passkey: Authenticator;
let orderNumber = 0;
const prepareAction = () => agent.prepareSuccessfully('orders.cancel', { input: { orderId: `B-${++orderNumber}` } });
const hits = (): number => upstream.receivedRequests(`/orders/B-${orderNumber}/`).length;

before(async () => {
  owner = await Person.setUpOwner(server);
  stranger = await registerOtherPerson(server, 'stranger@example.com');
  await stepUp(owner);
  await stepUp(stranger);
  passkey = await addPasskey(server, owner);
});

test('an Action cannot be approved with an agent key, by a person who is not a member, or without a recent step-up', async () => {
  const action = await prepareAction();
  const body = { decision: 'approve', digest: action.digest };
  const agentKeyRefusal = await server.api('POST', actionsPath(server, `/${action.jobId}/decision`), { key, body });
  assert.equal(agentKeyRefusal.status, 401, agentKeyRefusal.text);
  assert.equal((await decide(server, stranger, action)).status, 404);
  assert.equal((await stranger.get(`/v1/approvals/${action.jobId}`)).status, 404);
  await server.advance(301_000);
  assert.equal((await decide(server, owner, action)).body.code, 'insufficient_user_authentication');
  assert.equal((await agent.read(action.jobId)).body.status, 'awaiting_approval');
});

test('the browser of a session in which a member has signed in cannot approve an Action', async () => {
  await stepUpByPasskey();
  const action = await prepareAction();
  const page = await PageInSession.open(server, owner.cookie ?? '');
  assert.equal((await page.send('GET', `/v1/approvals/${action.jobId}`)).status, 200, 'the page is signed in');
  const decision = { decision: 'approve', digest: action.digest };
  const refusal = await page.send('POST', actionsPath(server, `/${action.jobId}/decision`), decision);
  assert.deepEqual([refusal.status, refusal.code], [403, 'address_not_allowed']);
  assert.equal((await agent.read(action.jobId)).body.status, 'awaiting_approval');
  assert.equal(
    (await decide(server, owner, action)).status,
    200,
    'the same decision is accepted from outside the session',
  );
  await page.close();
});

test('an Action can be neither approved nor executed with the digest of another Action', async () => {
  const [firstAction, otherAction] = [await prepareAction(), await prepareAction()];
  const mixedAction = { jobId: firstAction.jobId, digest: otherAction.digest };
  assert.equal((await decide(server, owner, mixedAction)).body.code, 'digest_mismatch');
  const proof = await signAction(server, owner, passkey, otherAction);
  const decisionRefusal = await decide(server, owner, firstAction, { proof });
  assert.deepEqual([decisionRefusal.status, decisionRefusal.body.code], [422, 'verification_failed']);
  const executionRefusal = await agent.execute(mixedAction);
  assert.deepEqual([executionRefusal.status, executionRefusal.body.code], [409, 'digest_mismatch']);
});

test('a key without a grant for the operation gets 404 for an Action, even with a wrong digest or after the end of the Action', async () => {
  const action = await prepareAction();
  const { key: ungrantedKey } = await issueAgentKey(server, {
    scopes: ACTION_SCOPES,
    grants: [{ operationId: 'browser.pdf' }],
  });
  const otherAgent = new ActionAgent(server, ungrantedKey);
  const readRefusal = await otherAgent.read(action.jobId);
  const wrongAction = { jobId: action.jobId, digest: `sha256:${'0'.repeat(64)}` };
  for (const sent of [action, wrongAction]) {
    const { status, body } = await otherAgent.execute(sent);
    assert.deepEqual([status, body.code, body.message], [404, 'not_found', readRefusal.body.message]);
  }
  await agent.cancel(action.jobId);
  assert.equal((await otherAgent.execute(action)).status, 404, 'the Action is not found after its end either');
});

test('a request to execute or update an Action cannot change its input', async () => {
  const action = await prepareApproved();
  const path = agentPath(server, `actions/${action.jobId}`);
  for (const more of [{ input: { orderId: 'B-other' } }, { action: { input: { orderId: 'B-other' } } }]) {
    const refusal = await server.api('POST', path, { key, body: { digest: action.digest, ...more } });
    assert.deepEqual([refusal.status, refusal.body.code], [400, 'unknown_field'], refusal.text);
  }
  for (const method of ['PUT', 'PATCH', 'DELETE'] as const) {
    const refusal = await server.api(method, path, { key, body: { input: { orderId: 'B-other' } } });
    assert.ok([404, 405].includes(refusal.status), `${method} ${refusal.text}`);
  }
  assert.deepEqual((await agent.read(action.jobId)).body.action?.input, action.action?.input);
  assert.equal((await agent.execute(action)).body.status, 'succeeded');
  assert.deepEqual([hits(), upstream.receivedRequests('/orders/B-other/').length], [1, 0]);
});

test('forged passkey signatures cannot approve an Action', async () => {
  const action = await prepareAction();
  const forgeries: readonly Forgery[] = [
    { challenge: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' },
    { rpId: 'evil.example' },
    { origin: 'https://evil.example' },
    { isVerified: false },
    { type: 'webauthn.create' },
  ];
  for (const forgery of forgeries) {
    const proof = await signAction(server, owner, passkey, action, forgery);
    const { status, body } = await decide(server, owner, action, { proof });
    assert.deepEqual([status, body.code], [422, 'verification_failed'], JSON.stringify(forgery));
  }
  assert.equal((await decide(server, owner, action, { proof: { id: 'x' } })).body.code, 'verification_failed');
  assert.equal((await agent.read(action.jobId)).body.status, 'awaiting_approval');
});

test('only one of several concurrent decisions takes effect, and a hundred concurrent requests to execute an Action execute it once', async () => {
  const action = await prepareAction();
  await stepUpByPasskey();
  const decisionResponses = await Promise.all(
    Array.from({ length: 10 }, (_, at) =>
      decide(server, owner, action, { decision: at % 2 === 0 ? 'approve' : 'refuse' }),
    ),
  );
  assert.equal(decisionResponses.filter(({ status }) => status === 200).length, 1);
  for (const { status, body } of decisionResponses) if (status !== 200) assert.equal(body.code, 'already_decided');
  const { status } = (await agent.read(action.jobId)).body;
  const approvedAction = status === 'approved' ? action : await prepareApproved();
  const responses = await Promise.all(Array.from({ length: 100 }, () => agent.execute(approvedAction)));
  for (const { status: code, text } of responses) assert.ok(code === 200 || code === 202, text);
  assert.equal(new Set(responses.map(({ body }) => body.id)).size, 1);
  assert.equal((await agent.execute(approvedAction)).body.status, 'succeeded');
  assert.equal(hits(), 1);
});

test('if an approval and an expiry coincide, only one takes effect, and nothing is executed after the expiry', async () => {
  for (let round = 0; round < 6; round += 1) {
    await stepUpByPasskey();
    const action = await agent.prepareSuccessfully('orders.cancel', {
      input: { orderId: `B-${++orderNumber}` },
      expiresIn: 60,
    });
    await server.advance(59_000);
    const [decision, , execution] = await Promise.all([
      decide(server, owner, action),
      server.advance(1_000 + round),
      agent.execute(action),
    ]);
    const { body } = await agent.read(action.jobId);
    const isApproved = decision.status === 200;
    if (!isApproved) assert.ok(['expired', 'already_decided'].includes(decision.body.code ?? ''), decision.text);
    assert.equal(body.decision !== undefined, isApproved, JSON.stringify(body));
    const wasExecuted = execution.status === 200 || execution.status === 202;
    assert.ok(isApproved || !wasExecuted, execution.text);
    if (!wasExecuted) assert.equal(body.status, 'expired');
    assert.equal((await agent.execute(action)).status === 410, !wasExecuted);
    assert.equal(hits(), wasExecuted ? 1 : 0);
  }
});

test('another key can execute an Action only if its grant allows the input, and a key of another application can neither read nor execute the Action', async () => {
  const action = await prepareApproved();
  const agentWithoutGrant = new ActionAgent(
    server,
    (await issueAgentKey(server, { scopes: ACTION_SCOPES, grants: [] })).key,
  );
  assert.equal((await agentWithoutGrant.read(action.jobId)).status, 404);
  assert.equal((await agentWithoutGrant.execute(action)).status, 404);
  const grantedAgent = new ActionAgent(
    server,
    (await issueAgentKey(server, { scopes: ACTION_SCOPES, grants: GRANTS })).key,
  );
  assert.equal(
    (await grantedAgent.cancel(action.jobId)).status,
    404,
    'only the key that prepared the Action can cancel it',
  );
  const otherApplicationKey = await createOtherApplicationKey(server, { scopes: ACTION_SCOPES });
  const foreignAgent = new ActionAgent(server, otherApplicationKey);
  for (const { status } of [await foreignAgent.read(action.jobId), await foreignAgent.execute(action)])
    assert.equal(status, 404);
  const narrowGrant = { grants: [{ ...GRANTS[0], input: { properties: { orderId: { const: 'no other' } } } }] };
  const boundedAgent = new ActionAgent(
    server,
    (await issueAgentKey(server, { scopes: ACTION_SCOPES, ...narrowGrant })).key,
  );
  assert.equal((await boundedAgent.execute(action)).body.code, 'input_not_granted');
  assert.equal((await grantedAgent.execute(action)).status, 200);
  assert.equal(hits(), 1);
});

test('an approved Action is executed at most once if the server is killed after the approval', async () => {
  const action = await agent.prepareSuccessfully('orders.cancel', {
    input: { orderId: `B-${++orderNumber}` },
    executeOnApproval: true,
  });
  upstream.respondTo(`/orders/B-${orderNumber}/`, (_, response) => sendJson(response, 200, { state: 'cancelled' }));
  await decide(server, owner, action, { proof: await signAction(server, owner, passkey, action) });
  await server.kill();
  await server.start();
  const { invocationId } = (await agent.read(action.jobId, '?wait=50&since=approved')).body;
  assert.ok(invocationId, 'the task has executed the Action');
  const invocationResponse = await agent.readInvocation(invocationId);
  // If the server was killed while dispatching, the effect of a write is unknown, and the write is not sent again.
  assert.ok(['succeeded', 'ambiguous'].includes(invocationResponse.body.status), invocationResponse.text);
  assert.ok(hits() <= 1);
});

async function prepareApproved() {
  const action = await prepareAction();
  const proof = await signAction(server, owner, passkey, action);
  const { status, text } = await decide(server, owner, action, { proof });
  assert.equal(status, 200, text);
  return action;
}

/** Steps up with the passkey, because a password is not the strongest proof for this account. */
async function stepUpByPasskey(): Promise<void> {
  const at = { origin: server.url.replace('127.0.0.1', 'localhost') };
  const { body } = await owner.send<{ ticket: string; publicKey: Record<string, unknown> }>(
    'POST',
    '/v1/account/step-up/options',
    {},
    at,
  );
  const proof = { method: 'passkey', ticket: body.ticket, response: passkey.get(body.publicKey) };
  const { status, text } = await owner.send('POST', '/v1/account/step-up', proof, at);
  assert.equal(status, 200, text);
}
