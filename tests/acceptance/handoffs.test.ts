// A session is handed over to a person, who works in the live view and then returns control to the agent. The agents
// use Playwright and Puppeteer.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { AGENT_KEY_SCOPES } from '../../contract/agent-keys.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { SessionEvent } from '../../contract/events.ts';
import type { ClaimedHandoff, Handoff } from '../../contract/handoffs.ts';
import { claimHandoff, handoffsPath, readHandoff, requestHandoff, sendWithLease } from '../harness/handoffs.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { LiveViewer } from '../harness/live-viewer.ts';
import { issueAgentKey } from '../harness/operations.ts';
import { openPages } from '../harness/pages.ts';
import { Person } from '../harness/person.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const pages = await openPages({
  '/code': `<!doctype html><title>Code</title><style>body{margin:0}input{position:absolute;left:20px;top:20px;width:300px;height:40px}</style>
    <form><input id="code" name="code" autocomplete="off"></form><a id="out" href="http://localhost:1/">out</a>`,
  '/order': `<!doctype html><title>Order</title><style>body{margin:0}input{position:absolute;left:20px;top:20px;width:300px;height:40px}</style>
    <input autocomplete="off" oninput="history.replaceState(null, '', '/order/' + encodeURIComponent(value))">`,
});
const server = await startServer({ pages, clock: 'test' });
const token = await createOwnerToken(server);
const person = await Person.setUpOwner(server);
const { key } = await issueAgentKey(server, { scopes: [...AGENT_KEY_SCOPES] });

interface HandoffEventParams {
  readonly handoffId: string;
  readonly outcome?: string;
  readonly note?: string;
  readonly callbackEvent?: string;
}

const openPage = async (path: string, settings: object = {}) => {
  const session = await server.createSession({ ...settings }, key);
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0] ?? assert.fail();
  await page.goto(pages.url + path);
  const cdp = await browser.contexts()[0]?.newCDPSession(page);
  assert.ok(cdp);
  return { ...session, browser, page, cdp };
};
const openCodePage = (settings: object = {}) => openPage('/code', settings);

/** Advances the clock while the agent's client sends commands, so that the client counts as connected. */
async function advanceWhileConnected(
  ms: number,
  cdp: { send(method: 'Page.getFrameTree'): Promise<unknown> },
): Promise<void> {
  for (let leftMs = ms; leftMs > 0; leftMs -= 20_000) {
    await cdp.send('Page.getFrameTree');
    await server.advance(Math.min(leftMs, 20_000));
  }
}

const listEventTypes = async (id: string): Promise<string[]> => {
  const { body } = await server.api<{ data: SessionEvent[] }>('GET', `/v1/browsers/sessions/${id}/events`, { key });
  return body.data.map(({ type }) => type).filter(type => type.startsWith('handoff.'));
};

/** Waits until the person has control, then types into the field. */
async function typeAs(viewer: LiveViewer, text: string): Promise<void> {
  await eventually('control of the person', () => viewer.last('control')?.who === 'you' && viewer.frameCount > 0);
  viewer.click(100, 40);
  viewer.sendInput({ type: 'text', text });
}

test('Playwright requests a hand-off over CDP, waits for a member, and continues with the same element handles', async () => {
  const { id, browser, page, cdp } = await openCodePage();
  const field = (await page.$('#code')) ?? assert.fail();
  const agentEvents: Array<[string, HandoffEventParams]> = [];
  for (const name of ['Berth.handoffRequested', 'Berth.handoffClaimed', 'Berth.handoffComplete'])
    cdp.on(name as never, (params: HandoffEventParams) => void agentEvents.push([name, params]));
  const ask = (method: string, params: object) => cdp.send(method as never, params as never) as Promise<unknown>;
  const { handoffId } = (await ask('Berth.handoff', {
    instructions: 'Enter the code',
    ttlSeconds: 600,
    callbackEvent: 'code.entered',
  })) as HandoffEventParams;
  await assert.rejects(ask('Berth.handoff', { instructions: 'Again' }), /handoff_exists/);
  await assert.rejects(ask('Berth.handoff', { ttlSeconds: 1 }), /instructions/);
  await assert.rejects(ask('Berth.handoff', { instructions: 'x', callbackEvent: 'No Name' }), /callbackEvent/);
  for (const mask of ['false', null, 0])
    await assert.rejects(ask('Berth.handoff', { instructions: 'x', mask }), /mask must be true or false/);
  for (const [mask, record] of [
    [true, 'keep'],
    [false, 'mask'],
  ])
    await assert.rejects(
      ask('Berth.handoff', { instructions: 'x', mask, record }),
      /mask is (true|false), which means/,
    );
  const claimedHandoff = await claimHandoff(server, person, handoffId);
  const secondClaimResponse = await person.post<ErrorBody>(handoffsPath(server, `/${handoffId}/claim`), {});
  assert.deepEqual([secondClaimResponse.status, secondClaimResponse.body.code], [409, 'handoff_claimed']);
  const viewer = await LiveViewer.open(claimedHandoff.liveViewUrl);
  let isTyped = false;
  const pendingTyping = page.keyboard.type(' and the agent').then(() => {
    isTyped = true;
  });
  await typeAs(viewer, 'the person');
  const pendingRead = readHandoff(server, key, handoffId, '?wait=30');
  const completionResponse = await sendWithLease(server, claimedHandoff, 'complete', {
    outcome: 'completed',
    note: 'Signed in.',
  });
  assert.equal(completionResponse.status, 200, completionResponse.text);
  assert.equal((await pendingRead).status, 'completed');
  await pendingTyping;
  assert.ok(isTyped);
  assert.equal(await field.inputValue(), 'the person and the agent');
  await eventually('the events of the agent', () => agentEvents.length === 3);
  assert.deepEqual(
    agentEvents.map(([name]) => name.replace('Berth.handoff', '')),
    ['Requested', 'Claimed', 'Complete'],
  );
  assert.deepEqual([agentEvents[2]?.[1].outcome, agentEvents[2]?.[1].note], ['completed', 'Signed in.']);
  assert.deepEqual([...new Set(agentEvents.map(([, { callbackEvent }]) => callbackEvent))], ['code.entered']);
  assert.equal((await readHandoff(server, key, handoffId)).callbackEvent, 'code.entered');
  assert.ok(viewer.last('ended'), 'the address of the person has ended');
  await assert.rejects(LiveViewer.open(claimedHandoff.liveViewUrl), /refused with 403/);
  await eventually('the events', async () => (await listEventTypes(id)).length === 3);
  assert.deepEqual(await listEventTypes(id), ['handoff.requested', 'handoff.claimed', 'handoff.completed']);
  await browser.close();
  await server.release(id);
});

test('Puppeteer requests a hand-off over CDP, and input that it sends during the hand-off is executed afterwards, in order', async () => {
  const { id, connectUrl } = await server.createSession({}, key);
  const browser = await puppeteer.connect({ browserWSEndpoint: connectUrl, defaultViewport: null });
  const [page = assert.fail()] = await browser.pages();
  await page.goto(`${pages.url}/code`);
  const cdp = await page.createCDPSession();
  const completeEvent = new Promise<HandoffEventParams>(resolve =>
    cdp.on('Berth.handoffComplete', told => resolve(told as HandoffEventParams)),
  );
  const handoff = await (cdp.send as (method: string, params: object) => Promise<HandoffEventParams>).call(
    cdp,
    'Berth.handoff',
    {
      instructions: 'Enter the code',
    },
  );
  const claimedHandoff = await claimHandoff(server, person, handoff.handoffId);
  const viewer = await LiveViewer.open(claimedHandoff.liveViewUrl);
  const pendingTyping = (async () => {
    await page.keyboard.type('-a');
    await page.keyboard.type('-b');
  })();
  await typeAs(viewer, 'x');
  await sendWithLease(server, claimedHandoff, 'complete', { outcome: 'declined' });
  await pendingTyping;
  assert.equal((await completeEvent).outcome, 'declined');
  assert.equal(await page.evaluate('document.getElementById("code").value'), 'x-a-b');
  await browser.disconnect();
  await server.release(id);
});

for (const record of ['keep', 'mask', 'pause'])
  test(`neither the report of a hand-off (record: ${record}) nor the log contains what the person typed, if the page puts it into addresses`, async () => {
    const { id, browser, page } = await openPage('/order');
    const claimedHandoff = await claimHandoff(server, person, (await requestHandoff(server, key, id, { record })).id);
    const viewer = await LiveViewer.open(claimedHandoff.liveViewUrl);
    await typeAs(viewer, 'blue heron 4417');
    await page.waitForURL(`${pages.url}/order/blue%20heron%204417`);
    const { body } = await sendWithLease<Handoff>(server, claimedHandoff, 'complete', { outcome: 'completed' });
    assert.equal(body.url, `${pages.url}/order/[redacted]`);
    await page.evaluate('fetch(`/later${location.pathname}`)');
    await browser.close();
    await server.release(id);
    const { text } = await server.api('GET', `/v1/browsers/sessions/${id}/logs`, { key });
    assert.match(text, /\/later\/order\/\[redacted\]/);
    assert.doesNotMatch(text, /heron/);
  });

test('a NUL in the instructions of a hand-off or an unpaired surrogate in its evidence is refused', async () => {
  const { id: sessionId } = await server.createSession({ keepAlive: true }, key);
  const body = { sessionId, instructions: 'Sign\0 in' };
  const refusal = await server.api<ErrorBody>('POST', handoffsPath(server), { key, body });
  assert.deepEqual([refusal.status, refusal.body.code], [400, 'invalid_request'], refusal.text);
  const claimedHandoff = await claimHandoff(server, person, (await requestHandoff(server, key, sessionId)).id);
  const report = { outcome: 'completed', evidence: { code: '\ud800' } };
  const evidenceRefusal = await sendWithLease<ErrorBody>(server, claimedHandoff, 'complete', report);
  assert.deepEqual([evidenceRefusal.status, evidenceRefusal.body.code], [400, 'invalid_request'], evidenceRefusal.text);
  assert.match(evidenceRefusal.body.message, /half of a surrogate pair/);
  await server.release(sessionId);
});

test('only one of twenty concurrent claims of a hand-off succeeds, and a returned lease gives no access', async () => {
  const { id, browser } = await openCodePage();
  const { id: handoff } = await requestHandoff(server, key, id, { reason: 'otp' });
  const claimResponses = await Promise.all(
    Array.from({ length: 20 }, () => person.post<ClaimedHandoff>(handoffsPath(server, `/${handoff}/claim`), {})),
  );
  assert.deepEqual(claimResponses.map(({ status }) => status).sort(), [200, ...Array.from({ length: 19 }, () => 409)]);
  const firstClaim = claimResponses.find(({ status }) => status === 200)?.body ?? assert.fail();
  assert.equal((await sendWithLease(server, firstClaim, 'renew')).status, 200);
  const firstViewer = await LiveViewer.open(firstClaim.liveViewUrl);
  await eventually('control of the person', () => firstViewer.last('control')?.who === 'you');
  assert.equal((await sendWithLease(server, firstClaim, 'cancel')).body.status, 'requested');
  for (const verb of ['renew', 'complete', 'cancel'] as const) {
    const { status, body } = await sendWithLease<ErrorBody>(
      server,
      firstClaim,
      verb,
      verb === 'complete' ? { outcome: 'failed' } : {},
    );
    assert.deepEqual([status, body.code], [409, 'stale_fence'], verb);
  }
  const secondClaim = await claimHandoff(server, person, handoff);
  assert.ok(secondClaim.fence > firstClaim.fence);
  await assert.rejects(LiveViewer.open(firstClaim.liveViewUrl), /refused with 403/);
  firstViewer.sendInput({ type: 'text', text: 'stale' });
  await sendWithLease(server, secondClaim, 'complete', { outcome: 'completed' });
  await browser.close();
  await server.release(id);
});

test('the lease of a hand-off ends if it is not renewed or its live view is closed, and an unclaimed hand-off expires', async () => {
  const { id, browser, page, cdp } = await openCodePage();
  const { id: handoff } = await requestHandoff(server, key, id, { ttlSeconds: 300, leaseSeconds: 90 });
  const firstClaim = await claimHandoff(server, person, handoff);
  await advanceWhileConnected(91_000, cdp);
  await eventually('the lease to end', async () => (await readHandoff(server, key, handoff)).status === 'requested');
  assert.equal((await sendWithLease(server, firstClaim, 'renew')).status, 409);
  const secondClaim = await claimHandoff(server, person, handoff);
  const viewer = await LiveViewer.open(secondClaim.liveViewUrl);
  await eventually('control of the person', () => viewer.last('control')?.who === 'you');
  await viewer.close();
  await advanceWhileConnected(61_000, cdp);
  await eventually(
    'the person to have left',
    async () => (await readHandoff(server, key, handoff)).status === 'requested',
  );
  await page.keyboard.type('x');
  await advanceWhileConnected(300_000, cdp);
  await eventually(
    'the hand-off to expire',
    async () => (await readHandoff(server, key, handoff)).status === 'expired',
  );
  await eventually('the events', async () => (await listEventTypes(id)).length === 6);
  await browser.close();
  await server.release(id);
});

test('a session with a requested hand-off continues after the agent disconnects, and ends when the hand-off is over', async () => {
  const { id, browser } = await openCodePage();
  const { id: handoff } = await requestHandoff(server, key, id, { ttlSeconds: 900 });
  await browser.close();
  await server.advance(700_000);
  const { body } = await server.api<{ status: string }>('GET', `/v1/browsers/sessions/${id}`, { key });
  assert.equal(body.status, 'RUNNING');
  const cancelResponse = await server.api<Handoff>('POST', handoffsPath(server, `/${handoff}/cancel`), { key });
  assert.equal(cancelResponse.body.status, 'cancelled');
  await server.advance(120_000);
  await eventually('the session to end', async () => {
    const sessionResponse = await server.api<{ status: string }>('GET', `/v1/browsers/sessions/${id}`, { key });
    return sessionResponse.body.status === 'COMPLETED';
  });
});

test('a hand-off expires no later than its session, and can extend the session on request', async () => {
  const { id, expiresAt } = await server.createSession({ keepAlive: true, timeout: 300 }, key);
  const cut = await requestHandoff(server, key, id, { ttlSeconds: 3600 });
  assert.equal(cut.expiresAt, expiresAt);
  assert.deepEqual(
    cut.warnings?.map(({ code }) => code),
    ['ttl_cut'],
  );
  await server.api('POST', handoffsPath(server, `/${cut.id}/cancel`), { key });
  const extendedHandoff = await requestHandoff(server, key, id, { ttlSeconds: 3600, extendSession: true });
  assert.equal(extendedHandoff.warnings, undefined);
  const { body } = await server.api<{ expiresAt: string }>('GET', `/v1/browsers/sessions/${id}`, { key });
  assert.equal(body.expiresAt, extendedHandoff.expiresAt);
  const claimedHandoff = await claimHandoff(server, person, extendedHandoff.id);
  await server.release(id);
  await eventually('the hand-off to end with its session', async () => {
    return (await readHandoff(server, key, extendedHandoff.id)).status === 'session_ended';
  });
  assert.equal((await sendWithLease(server, claimedHandoff, 'complete', { outcome: 'completed' })).status, 409);
});

test('taking control in the live view creates a hand-off, and a second hand-off cannot be requested until the viewer gives control back', async () => {
  const { id, browser } = await openCodePage();
  const { body: urls } = await server.api<{ debuggerUrl: string }>('GET', `/v1/browsers/sessions/${id}/debug`, { key });
  const viewer = await LiveViewer.open(urls.debuggerUrl);
  await viewer.takeControl();
  const { body: listed } = await server.api<{ data: Handoff[] }>('GET', handoffsPath(server, `?sessionId=${id}`), {
    key,
  });
  assert.deepEqual(
    listed.data.map(({ origin, status }) => [origin, status]),
    [['viewer', 'claimed']],
  );
  const refusal = await server.api<ErrorBody>('POST', handoffsPath(server), {
    key,
    body: { sessionId: id, instructions: 'x' },
  });
  assert.deepEqual([refusal.status, refusal.body.code], [409, 'handoff_exists']);
  await viewer.giveControl();
  const { id: handoff } = await requestHandoff(server, key, id);
  viewer.send({ type: 'take' });
  await eventually('the request for control to be refused', () =>
    viewer.last('refused')?.why.includes('waits for a person'),
  );
  const cancelResponse = await server.api<Handoff>('POST', handoffsPath(server, `/${handoff}/cancel`), { key: token });
  assert.equal(cancelResponse.body.status, 'cancelled', 'by the owner of the application');
  await viewer.close();
  await browser.close();
  await server.release(id);
});

before(async () => {
  assert.equal((await server.api('GET', handoffsPath(server), { key })).status, 200);
});
