// Calls that involve people: the operation `browser.handoff`, the step `handoff`, and receipts that name the person in
// control. The tests also cover calls in a session that a person controls, and calls in a session whose last client
// leaves.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import type { SessionEventPage } from '../../contract/events.ts';
import type { Handoff } from '../../contract/handoffs.ts';
import type { Invocation, InvocationPage } from '../../contract/invocations.ts';
import { type KeySet, type ReceiptClaims, ReceiptInvalid, verifyReceipt } from '../../sdk/verify-receipt.ts';
import { ACTION_SCOPES, ActionAgent, decide } from '../harness/actions.ts';
import { CdpClient } from '../harness/cdp.ts';
import { Owner } from '../harness/configured.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { claimHandoff, handoffsPath, requestHandoff, sendWithLease } from '../harness/handoffs.ts';
import type { HttpResult } from '../harness/http.ts';
import { LiveViewer } from '../harness/live-viewer.ts';
import { stepUp } from '../harness/members.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { createOtherApplicationKey } from '../harness/other-application.ts';
import { openPages } from '../harness/pages.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { waitForSessionEvent } from '../harness/session-events.ts';
import { eventually } from '../harness/until.ts';

const pages = await openPages({
  '/code': `<!doctype html><title>Code</title><style>body{margin:0}input{position:absolute;left:20px;top:20px;width:300px;height:40px}</style>
    <input id="code" autocomplete="off"><p id="out" style="margin-top:80px"></p>`,
});
const server = await startServer({ pages, clock: 'test', env: { BERTH_ENGINE: LIGHT_ENGINE, BERTH_SLOTS: '4' } });
const person = await Person.setUpOwner(server);
const scopes = ['browsers:read', 'browsers:write', 'browsers:connect', 'operations:invoke', 'invocations:read'];
const grants = [
  { operationId: 'browser.handoff' },
  { operationId: 'browser.steps' },
  { operationId: '*', effect: 'read' },
];
const { key, id: keyId } = await issueAgentKey(server, { scopes, grants });
const { body: keys } = await server.api<KeySet>('GET', '/.well-known/jwks.json', { key: null });
let callCount = 0;

const call = (operation: string, input: object, options: { key?: string; prefer?: string } = {}) => {
  callCount += 1;
  const headers = { 'idempotency-key': `call ${callCount}`, ...(options.prefer ? { prefer: options.prefer } : {}) };
  return invoke(server, options.key ?? key, operation, input, { headers });
};

const startCall = async (operation: string, input: object): Promise<Invocation> => {
  const { status, body, text } = await call(operation, input, { prefer: 'respond-async' });
  assert.equal(status, 202, text);
  return body;
};

const waitForEnd = async ({ id }: Pick<Invocation, 'id'>): Promise<Invocation> => {
  const { body } = await server.api<Invocation>('GET', agentPath(server, `invocations/${id}?wait=30`), { key });
  assert.ok(body.endedAt, 'the call has ended');
  return body;
};

/** Waits until a hand-off is requested in the session, and returns the hand-off. */
async function waitForHandoff(sessionId: string, by = key): Promise<Handoff> {
  const path = handoffsPath(server, `?sessionId=${sessionId}&status=requested`);
  const listHandoffs = async () => (await server.api<{ data: Handoff[] }>('GET', path, { key: by })).body.data;
  const [found = assert.fail()] = await eventually('the hand-off', listHandoffs, ({ length }) => length > 0);
  return found;
}

const verifyClaims = ({ receipt = '' }: Invocation): ReceiptClaims['berth'] => verifyReceipt(receipt, { keys }).berth;

test('browser.handoff ends when the person has finished, and its receipt states who had control, when, and that the hand-off was masked', async () => {
  const { id: sessionId } = await server.createSession({ keepAlive: true }, key);
  const invocation = await startCall('browser.handoff', { sessionId, instructions: 'Enter the code', reason: 'otp' });
  const handoff = await waitForHandoff(sessionId);
  assert.deepEqual(
    [handoff.origin, handoff.requestedBy, handoff.reason, handoff.claimableBy],
    ['operation', { kind: 'agent_key', id: keyId }, 'otp', ['members']],
  );
  const secondHandoffResponse = await call('browser.handoff', { sessionId, instructions: 'Again' });
  assert.deepEqual(
    [secondHandoffResponse.status, secondHandoffResponse.body.code],
    [409, 'handoff_exists'],
    secondHandoffResponse.text,
  );
  const claimedHandoff = await claimHandoff(server, person, handoff.id);
  const runningResponse = await server.api<Invocation>('GET', agentPath(server, `invocations/${invocation.id}`), {
    key,
  });
  assert.equal(runningResponse.body.status, 'running');
  const cancelRefusal = await server.api<ErrorBody>('POST', agentPath(server, `invocations/${invocation.id}/cancel`), {
    key,
  });
  assert.deepEqual([cancelRefusal.status, cancelRefusal.body.code], [409, 'not_ready'], 'its effect has started');
  await sendWithLease(server, claimedHandoff, 'complete', {
    outcome: 'completed',
    note: 'Secret of the note',
    evidence: { a: 1 },
  });
  const endedInvocation = await waitForEnd(invocation);
  assert.equal(endedInvocation.status, 'succeeded');
  const { url: _, ...output } = Object(endedInvocation.output);
  const expectedOutput = {
    handoffId: handoff.id,
    outcome: 'completed',
    note: 'Secret of the note',
    evidence: { a: 1 },
  };
  assert.deepEqual(output, expectedOutput);
  const { session } = verifyClaims(endedInvocation);
  const [controlPeriod, ...more] = session?.handoffs ?? [];
  assert.ok(controlPeriod && more.length === 0 && session?.id === sessionId);
  const { by, from, to, ...facts } = controlPeriod;
  assert.deepEqual(facts, { id: handoff.id, origin: 'operation', masked: true });
  assert.equal(by.kind, 'account');
  assert.ok(by.id && to && endedInvocation.startedAt && from >= endedInvocation.startedAt && to >= from);
  const { receipt = '' } = endedInvocation;
  assert.doesNotMatch(
    Buffer.from(receipt.split('.')[1] ?? '', 'base64url').toString(),
    /Secret of the note|Enter the code/,
  );
  await assertPrinted(receipt, new RegExp(`control +account ${by.id} from ${from} to ${to}, masked`));
  const [head = '', payload = '', signature = ''] = receipt.split('.');
  const forgedPayload = Buffer.from(payload, 'base64url').toString().replace('"masked":true', '"masked":!1  ');
  const forgedPayloads = [
    forgedPayload.replace('!1  ', 'null'),
    forgedPayload.replace('!1  ', 'true').replace(by.id, sessionId),
  ];
  for (const text of forgedPayloads)
    assert.throws(
      () => verifyReceipt(`${head}.${Buffer.from(text).toString('base64url')}.${signature}`, { keys }),
      ReceiptInvalid,
    );
  await server.release(sessionId);
});

/** Asserts the output of `berth receipts verify` when its only inputs are files: the receipt and the key set. */
async function assertPrinted(receipt: string, expected: RegExp): Promise<void> {
  const [file, jwks] = [
    join(server.dataDir, '..', `${callCount}.jws`),
    join(server.dataDir, '..', `${callCount}.json`),
  ];
  await writeFile(file, receipt);
  await writeFile(jwks, JSON.stringify(keys));
  const { code, stdout, stderr } = await server.berth('receipts', 'verify', file, '--jwks', jwks);
  assert.equal(code, 0, stderr);
  assert.match(stdout, expected);
}

for (const [how, end, expected] of [
  ['the person declines', 'complete', ['succeeded', 'declined', undefined]],
  ['nobody claims the hand-off', 'expire', ['failed', undefined, 'handoff_expired']],
  ['a member cancels the hand-off', 'cancel', ['failed', undefined, 'handoff_cancelled']],
  ['the session ends', 'release', ['failed', undefined, 'session_not_running']],
] as const)
  test(`browser.handoff reports the correct outcome when ${how}`, async () => {
    const { id: sessionId } = await server.createSession({ keepAlive: true }, key);
    const invocation = await startCall('browser.handoff', { sessionId, instructions: 'Sign in', ttlSeconds: 60 });
    const { id } = await waitForHandoff(sessionId);
    if (end === 'complete')
      await sendWithLease(server, await claimHandoff(server, person, id), 'complete', { outcome: 'declined' });
    if (end === 'expire') await server.advance(61_000);
    if (end === 'cancel') {
      const { key: writingKey } = await issueAgentKey(server, { scopes: [...scopes, 'handoffs:write'], grants });
      const otherKeyResponse = await server.api('POST', handoffsPath(server, `/${id}/cancel`), { key: writingKey });
      assert.equal(otherKeyResponse.status, 404, 'by another key');
      assert.equal((await person.post<Handoff>(handoffsPath(server, `/${id}/cancel`), {})).body.status, 'cancelled');
    }
    if (end === 'release') await server.release(sessionId);
    const { status, output, error } = await waitForEnd(invocation);
    assert.deepEqual([status, Object(output).outcome, error?.code], expected);
    if (end !== 'release') await server.release(sessionId);
  });

test('browser.handoff continues with the same hand-off after the server is killed and restarted, and the person keeps control', async () => {
  const { id: sessionId } = await server.createSession({ keepAlive: true }, key);
  const invocation = await startCall('browser.handoff', { sessionId, instructions: 'Sign in' });
  const { id } = await waitForHandoff(sessionId);
  const claimedHandoff = await claimHandoff(server, person, id);
  await server.kill('SIGKILL');
  await server.start();
  await eventually('the call to be run again', async () => {
    const { body } = await server.api<Invocation>('GET', agentPath(server, `invocations/${invocation.id}`), { key });
    return body.attempts === 2;
  });
  const completionResponse = await sendWithLease(server, claimedHandoff, 'complete', { outcome: 'completed' });
  assert.equal(completionResponse.status, 200, completionResponse.text);
  const { status, output, attempts } = await waitForEnd(invocation);
  assert.deepEqual([status, Object(output).handoffId, attempts], ['succeeded', id, 2]);
  const listResponse = await server.api<{ data: Handoff[] }>('GET', handoffsPath(server, `?sessionId=${sessionId}`), {
    key,
  });
  assert.equal(listResponse.body.data.length, 1, 'it was asked for once');
  await server.release(sessionId);
});

test('an invalid or unauthorized call to browser.handoff is refused, and no hand-off is requested', async () => {
  const { id: sessionId } = await server.createSession({ keepAlive: true }, key);
  const input = { sessionId, instructions: 'Sign in' };
  const { key: invokeOnlyKey } = await issueAgentKey(server, { scopes: ['operations:invoke'], grants });
  const otherApplicationKey = await createOtherApplicationKey(server);
  const { id: foreignSessionId } = await server.createSession({ keepAlive: true }, otherApplicationKey);
  const releaseOptions = { key: otherApplicationKey, body: { status: 'REQUEST_RELEASE' } };
  const { key: reader } = await issueAgentKey(server, { scopes });
  for (const [more, status, code, by] of [
    [{}, 403, 'permission_denied', invokeOnlyKey],
    [{}, 403, 'operation_not_granted', reader],
    [{ sessionId: foreignSessionId }, 404, 'not_found', key],
    [{ instructions: '' }, 400, 'invalid_request', key],
    [{ claimableBy: ['link'] }, 400, 'invalid_request', key],
    [{ allowedOrigins: ['https://a.test:99999'] }, 400, 'invalid_request', key],
    [{ record: 'keep' }, 403, 'permission_denied', key],
  ] as const) {
    const refusal = await call('browser.handoff', { ...input, ...more }, { key: by });
    assert.deepEqual([refusal.status, refusal.body.code], [status, code], refusal.text);
  }
  const { body } = await server.api<{ data: Handoff[] }>('GET', handoffsPath(server, `?sessionId=${sessionId}`), {
    key,
  });
  assert.deepEqual(body.data, []);
  await server.release(sessionId);
  await server.api('POST', `/v1/browsers/sessions/${foreignSessionId}`, releaseOptions);
  const handoffRefusal = await call('browser.handoff', input);
  assert.deepEqual(
    [handoffRefusal.status, handoffRefusal.body.code],
    [409, 'session_not_running'],
    handoffRefusal.text,
  );
});

test('steps wait for a person at a hand-off without using up their timeout, and continue on the same page', async () => {
  const invocation = await startCall('browser.steps', {
    url: `${pages.url}/code`,
    timeoutMs: 20_000,
    steps: [
      { do: 'fill', selector: '#code', value: 'agent ' },
      { do: 'handoff', instructions: 'Enter the code', reason: 'otp', ttlSeconds: 600 },
      { do: 'press', selector: '#code', key: '!' },
      { do: 'extract', fields: { code: { selector: '#out' } } },
    ],
  });
  const { sessionId = '' } = invocation;
  const handoff = await waitForHandoff(sessionId);
  assert.ok(handoff.expiresAt > invocation.createdAt);
  await server.advance(120_000);
  const claimedHandoff = await claimHandoff(server, person, handoff.id);
  const viewer = await LiveViewer.open(claimedHandoff.liveViewUrl);
  await eventually('control of the person', () => viewer.last('control')?.who === 'you' && viewer.frameCount > 0);
  viewer.click(100, 40);
  viewer.sendInput({ type: 'text', text: 'person' });
  await sendWithLease(server, claimedHandoff, 'complete', { outcome: 'completed', note: 'Done.' });
  const endedInvocation = await waitForEnd(invocation);
  assert.equal(endedInvocation.status, 'succeeded', JSON.stringify(endedInvocation.error));
  const { results } = Object(endedInvocation.output);
  assert.equal(results.length, 4);
  assert.deepEqual(results[1], { do: 'handoff', handoffId: handoff.id, note: 'Done.' });
  assert.deepEqual(
    verifyClaims(endedInvocation).session?.handoffs.map(({ id }) => id),
    [handoff.id],
  );
  assert.ok(endedInvocation.cost.meters.browserSeconds >= 120, 'the time of the person is metered');
  await server.waitUntilEnded(sessionId);
});

test('a configured browser operation fails at a step whose hand-off is declined', async () => {
  const owner = await Owner.open(server);
  await owner.publish('codes.enter', {
    ...{ title: 'Enter a code', description: 'A person enters a code.', kind: 'browser', effect: 'write' },
    inputSchema: { type: 'object', additionalProperties: false },
    binding: {
      url: `${pages.url}/code`,
      steps: [
        { do: 'sleep', ms: 1 },
        { do: 'handoff', instructions: 'Enter the code', allowedOrigins: [new URL(pages.url).origin] },
        { do: 'sleep', ms: 1 },
      ],
    },
  });
  const { key: codeEntryKey } = await issueAgentKey(server, { scopes, grants: [{ operationId: 'codes.enter' }] });
  const { body: invocation, text } = await call('codes.enter', {}, { key: codeEntryKey, prefer: 'respond-async' });
  assert.ok(invocation.sessionId, text);
  const { id } = await waitForHandoff(invocation.sessionId, codeEntryKey);
  const claimedHandoff = await claimHandoff(server, person, id);
  await sendWithLease(server, claimedHandoff, 'complete', { outcome: 'declined', note: 'No.' });
  const readPath = agentPath(server, `invocations/${invocation.id}?wait=30`);
  const { body } = await server.api<Invocation>('GET', readPath, { key: codeEntryKey });
  assert.deepEqual([body.status, body.error?.code], ['failed', 'handoff_declined']);
  assert.deepEqual(body.error?.details, { step: 1, handoffId: id, note: 'No.' });
  await server.waitUntilEnded(invocation.sessionId);
});

test('a session without keepAlive continues without clients while a call is running, and ends after the call', async () => {
  const answerRequest = Promise.withResolvers<ServerResponse>();
  const script = `fetch('/answer').then(() => document.body.append(document.createElement('hr')))`;
  pages.set('/late', `<!doctype html><title>Late</title><script>${script}</script>`);
  pages.set('/answer', (_, response) => answerRequest.resolve(response));
  const { id: sessionId, connectUrl } = await server.createSession({}, key);
  const client = await CdpClient.connect(connectUrl);
  const steps = [
    { do: 'goto', url: `${pages.url}/late` },
    { do: 'waitFor', selector: 'hr' },
  ];
  const invocation = await startCall('browser.steps', { sessionId, steps });
  const response = await answerRequest.promise;
  await client.close();
  await waitForSessionEvent(server, sessionId, 'client.disconnected', ({ clients }) => clients === 0);
  await server.advance(10_000);
  assert.equal((await server.read(sessionId)).status, 'RUNNING');
  response.end();
  assert.equal((await waitForEnd(invocation)).status, 'succeeded');
  await server.advance(3_000);
  const { status, endReason } = await server.waitUntilEnded(sessionId);
  assert.deepEqual([status, endReason], ['COMPLETED', 'client_disconnected']);
});

test('steps with too many hand-offs, an invalid hand-off, or both a hand-off and credentials are refused', async () => {
  const handoff = { do: 'handoff', instructions: 'x' };
  for (const [steps, message] of [
    [Array.from({ length: 6 }, () => handoff), /at most 5/],
    [[{ do: 'fill', selector: '#a', credential: 'bank', field: 'password' }, handoff], /type credentials/],
    [[{ do: 'handoff' }], /is required by handoff/],
    [[{ do: 'handoff', instructions: 'x', selector: '#a' }], /has no effect in handoff/],
  ] as const) {
    const refusal = await call('browser.steps', { url: `${pages.url}/code`, steps });
    assert.equal(refusal.status, 400, refusal.text);
    assert.match(refusal.text, message);
  }
});

/** Waits until exactly this many calls with the key are running, and returns the calls. */
async function waitForRunning(by: string, count: number): Promise<readonly Invocation[]> {
  const path = agentPath(server, 'invocations?status=running');
  const listRunning = async () => (await server.api<InvocationPage>('GET', path, { key: by })).body.data;
  return eventually(`${count} calls to be running`, listRunning, ({ length }) => length === count);
}

test('a call that waits for a person can be cancelled before it is started, and its receipt has the status cancelled', async () => {
  const { id: sessionId } = await server.createSession({ keepAlive: true }, key);
  const { key: askingKey } = await issueAgentKey(server, { scopes: [...scopes, 'handoffs:write'], grants });
  const handoff = await requestHandoff(server, askingKey, sessionId, { leaseSeconds: 900 });
  await claimHandoff(server, person, handoff.id);
  const askingOptions = { key: askingKey };
  const responses = Promise.all([
    call('browser.content', { sessionId }, askingOptions),
    call('browser.steps', { sessionId, steps: [{ do: 'press', key: 'x' }] }, askingOptions),
  ]);
  for (const { id } of await waitForRunning(askingKey, 2)) {
    const path = agentPath(server, `invocations/${id}/cancel`);
    const { status, body, text } = await server.api<Invocation>('POST', path, askingOptions);
    const invocationFacts = [status, body.status, body.error?.code, body.error?.phase, body.attempts];
    assert.deepEqual(invocationFacts, [200, 'cancelled', 'cancelled', 'before', 0], text);
  }
  for (const { status, body, text } of await responses) {
    assert.deepEqual([status, body.status], [200, 'cancelled'], text);
    assert.equal(verifyClaims(body).status, 'cancelled');
  }
  const eventsPath = '/v1/browsers/events?limit=10&type=invocation.cancelled';
  const listEvents = async () => (await server.api<SessionEventPage>('GET', eventsPath, askingOptions)).body.data;
  await eventually('the events', listEvents, ({ length }) => length === 2);
  await server.release(sessionId);
});

test('a call that waits for a person when the service stops is refused with 503, and can be sent again', async () => {
  const { id: sessionId } = await server.createSession({ keepAlive: true }, key);
  const { key: askingKey } = await issueAgentKey(server, { scopes: [...scopes, 'handoffs:write'], grants });
  const handoff = await requestHandoff(server, askingKey, sessionId, { leaseSeconds: 900 });
  const claimedHandoff = await claimHandoff(server, person, handoff.id);
  const readContent = () =>
    invoke(server, askingKey, 'browser.content', { sessionId }, { headers: { 'idempotency-key': 'while stopping' } });
  const interruptedCall = readContent();
  await waitForRunning(askingKey, 1);
  await server.restart('SIGTERM');
  const { status, body, text } = await interruptedCall;
  assert.deepEqual([status, Object(body).code], [503, 'service_stopping'], text);
  assert.equal((await sendWithLease(server, claimedHandoff, 'complete', { outcome: 'completed' })).status, 200);
  const secondResponse = await readContent();
  assert.deepEqual([secondResponse.status, secondResponse.body.status], [200, 'succeeded'], secondResponse.text);
  await server.release(sessionId);
});

test('a receipt names a person only for the time in which they had control, even if they gave the hand-off back unfinished', async () => {
  const { id: sessionId } = await server.createSession({ keepAlive: true }, key);
  const invocation = await startCall('browser.handoff', { sessionId, instructions: 'Enter the code' });
  const { id } = await waitForHandoff(sessionId);
  const claimedHandoff = await claimHandoff(server, person, id);
  assert.equal((await sendWithLease(server, claimedHandoff, 'cancel')).body.status, 'requested');
  const { body, text } = await call('browser.content', { sessionId });
  assert.equal(body.status, 'succeeded', text);
  assert.deepEqual(verifyClaims(body).session?.handoffs, []);
  assert.equal((await person.post<Handoff>(handoffsPath(server, `/${id}/cancel`), {})).body.status, 'cancelled');
  const [control = assert.fail('nobody had control')] =
    verifyClaims(await waitForEnd(invocation)).session?.handoffs ?? [];
  assert.ok(control.to && control.to >= control.from && control.to <= body.createdAt, JSON.stringify(control));
  await server.release(sessionId);
});

test('calls in a session that a person controls wait until the person has finished, and are refused after a timeout', async () => {
  const { id: sessionId } = await server.createSession({ keepAlive: true }, key);
  const { key: askingKey } = await issueAgentKey(server, {
    ...{ scopes: [...new Set([...scopes, 'handoffs:write', ...ACTION_SCOPES])], grants },
  });
  const handoff = await requestHandoff(server, askingKey, sessionId, { leaseSeconds: 900 });
  const earlyResponse = await call('browser.content', { sessionId });
  assert.equal(earlyResponse.body.status, 'succeeded', 'nobody has claimed it');
  const agent = new ActionAgent(server, askingKey);
  const action = await agent.prepareSuccessfully('browser.content', { input: { sessionId } });
  await stepUp(person);
  assert.equal((await decide(server, person, action)).status, 200);
  const claimedHandoff = await claimHandoff(server, person, handoff.id);
  const callWithSameKey = (headers: Readonly<Record<string, string>> = {}) =>
    invoke(
      server,
      askingKey,
      'browser.content',
      { sessionId },
      { headers: { 'idempotency-key': 'twice', ...headers } },
    );
  const pendingCalls = [
    call('browser.screenshot', { sessionId }),
    call('browser.steps', { sessionId, steps: [{ do: 'press', key: 'x' }] }),
    // These three calls share one idempotency key. All three are refused, even the one that does not wait for the end
    // of its invocation.
    ...[callWithSameKey(), callWithSameKey(), callWithSameKey({ prefer: 'respond-async' })],
    ...[agent.execute(action), agent.execute(action)],
  ];
  const responses = Promise.all<HttpResult<{ code: string }>>(pendingCalls);
  await waitForRunning(askingKey, 2);
  let isSettled = false;
  void responses.finally(() => {
    isSettled = true;
  });
  // The clock is advanced several times, because a call that arrives after one advance waits until the next advance.
  // The lease is longer than all advances together.
  let advanceCount = 0;
  const advanceAndCheck = async (): Promise<boolean> => {
    if (advanceCount < 20) await server.advance(31_000);
    advanceCount += 1;
    return isSettled;
  };
  await eventually('the calls to be refused', advanceAndCheck, Boolean, undefined, 100);
  for (const { status, body, text } of await responses) {
    assert.deepEqual([status, body.code], [409, 'handoff_claimed'], text);
    assert.equal(Object(body).details.handoffId, handoff.id);
  }
  assert.equal((await agent.read(action.jobId)).body.status, 'approved', 'the Action can be executed again');
  const waitingCall = call('browser.screenshot', { sessionId });
  await sendWithLease(server, claimedHandoff, 'complete', { outcome: 'completed' });
  const { body, text } = await waitingCall;
  assert.equal(body.status, 'succeeded', text);
  await server.release(sessionId);
});
