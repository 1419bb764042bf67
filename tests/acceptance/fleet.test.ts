// Two hosts and a front that share one PostgreSQL database and one bucket. Every host must send the same response to a
// request.
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { describe, it, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { AGENT_KEY_SCOPES } from '../../contract/agent-keys.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { ConsumerReceiptPage } from '../../contract/consumer-data.ts';
import type { ConsumerHandoffPage } from '../../contract/consumer-handoffs.ts';
import type { Consent } from '../../contract/consumer-memory.ts';
import type { ConsumerTokens } from '../../contract/consumers.ts';
import type { Download, DownloadPage, UploadResponse } from '../../contract/files.ts';
import type { ClaimedHandoff, Handoff } from '../../contract/handoffs.ts';
import type { HostList, HostSessions, ListedHost } from '../../contract/hosts.ts';
import type { DebugUrls } from '../../contract/live.ts';
import type { Session } from '../../contract/sessions.ts';
import { ACTION_SCOPES, ActionAgent, decide } from '../harness/actions.ts';
import { makeAuthority } from '../harness/authority.ts';
import { CdpClient, expectUpgradeRefusal } from '../harness/cdp.ts';
import { cancelOrderOperation, Owner } from '../harness/configured.ts';
import { ConsumerFixture } from '../harness/consumers.ts';
import { createContext, persistentBody, waitForVersion } from '../harness/contexts.ts';
import { AUTHORIZATIONS, CLIENT_ID } from '../harness/device.ts';
import { addressAt, runStatement, startFleet } from '../harness/fleet.ts';
import { handoffsPath, readHandoff, requestHandoff, sendWithLease } from '../harness/handoffs.ts';
import { sendRequest } from '../harness/http.ts';
import { createOwnerToken, readLimits } from '../harness/limits.ts';
import { LiveViewer } from '../harness/live-viewer.ts';
import { runOnPage } from '../harness/logged-in.ts';
import { stepUp } from '../harness/members.ts';
import { invoke, issueAgentKey } from '../harness/operations.ts';
import { createOtherApplicationKey } from '../harness/other-application.ts';
import { openPages } from '../harness/pages.ts';
import { openPeerPath } from '../harness/peer-way.ts';
import { Person } from '../harness/person.ts';
import { listReplays, waitForPlaylist } from '../harness/recordings.ts';
import { startS3 } from '../harness/s3.ts';
import type { CreatedSession, TestServer } from '../harness/server.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { uploadRequest } from '../harness/upload.ts';
import { openUpstream, sendJson } from '../harness/upstream.ts';

const SESSIONS = '/v1/browsers/sessions';
const HOSTS = '/v1/operator/hosts';
const BYTES = randomBytes(200_000);

const pages = await openPages({
  '/files': '<!doctype html><title>Files</title><a id=report href=/report>report</a>',
  '/report': (_, response) => {
    const headers = { 'content-type': 'application/pdf', 'content-disposition': 'attachment; filename=report.pdf' };
    response.writeHead(200, headers).end(BYTES);
  },
});
const shop = await openUpstream();
shop.respondTo('/orders/', (_, response) => sendJson(response, 200, { state: 'cancelled' }));
/** Addresses that sessions and operations may reach. */
const allowedAddresses = [pages, shop].map(({ settings }) => settings.BERTH_EGRESS_ALLOW).join(',');
/**
 * The relay in front of the second host, which accepts connections from other hosts only over TLS. The first host and
 * the front accept such connections without TLS.
 */
const peerPath = await openPeerPath();
const fleet = await startFleet({
  ...{ pages, slots: [2, 2, 0], env: { BERTH_EGRESS_ALLOW: allowedAddresses, ...peerPath.sharedSettings } },
  secondEnv: peerPath.ownSettings,
});
const [one, two, front] = fleet.hosts;
assert.ok(front);
const token = await createOwnerToken(one);

/** Whether the browser of the session is running on this host, according to the log of the host. */
const runsOn = (host: TestServer, { id }: { readonly id: string }): boolean => host.boxOf(id) !== undefined;

/** Creates a session that runs on this host. Releases the sessions that were placed on other hosts. */
async function createSessionOn(host: TestServer, body: object = {}, key = one.key): Promise<CreatedSession> {
  const misplacedSessions: CreatedSession[] = [];
  try {
    for (let attempt = 0; attempt < 4; attempt += 1) {
      const session = await host.createSession({ keepAlive: true, ...body }, key);
      if (runsOn(host, session)) return session;
      misplacedSessions.push(session);
    }
    throw new Error('none of the created sessions was placed on the expected host');
  } finally {
    for (const { id } of misplacedSessions) await one.release(id);
  }
}

const createSessionOnOne = (body?: object, key?: string): Promise<CreatedSession> => createSessionOn(one, body, key);

describe('a session can be created through any host', () => {
  it('a session is placed on the host with the most free slots, even if a host without slots receives the create request', async () => {
    const sessions: CreatedSession[] = [];
    for (const host of [front, one, two, front]) sessions.push(await host.createSession({ keepAlive: true }));
    assert.deepEqual(
      [one, two, front].map(host => sessions.filter(session => runsOn(host, session)).length),
      [2, 2, 0],
    );
    const capacityRefusal = await front.api('POST', SESSIONS, { body: {} });
    assert.equal(capacityRefusal.status, 503, capacityRefusal.text);
    assert.equal(capacityRefusal.body.code, 'capacity');
    for (const host of fleet.hosts) {
      const listResponse = await host.api<Session[]>('GET', `${SESSIONS}?status=RUNNING`);
      assert.deepEqual(listResponse.body.map(({ id }) => id).sort(), sessions.map(({ id }) => id).sort());
    }
    const [first, ...rest] = sessions;
    assert.ok(first);
    const waitingCreate = front.api<CreatedSession>('POST', SESSIONS, { body: {}, headers: { prefer: 'wait=60' } });
    await two.release(first.id);
    const createResponse = await waitingCreate;
    assert.equal(createResponse.status, 201, createResponse.text);
    for (const { id } of [...rest, createResponse.body]) {
      assert.equal((await front.release(id)).status, 'COMPLETED');
      assert.equal((await one.read(id)).endReason, 'released');
    }
    await Promise.all([one.waitUntilSettled(), two.waitUntilSettled()]);
  });

  it('a create request with an idempotency key starts one session, even if several hosts receive the request', async () => {
    const key = randomUUID();
    // A create request may have no body. The front must pass such a request on unchanged.
    const create = (host: TestServer) =>
      host.api<CreatedSession>('POST', SESSIONS, { headers: { 'idempotency-key': key } });
    const responses = await Promise.all([create(one), create(two), create(front)]);
    const ids = new Set(responses.map(({ body }) => body.id));
    assert.deepEqual(
      [...new Set(responses.map(({ status, text }) => (status === 201 ? 'created' : text)))],
      ['created'],
    );
    assert.equal(ids.size, 1);
    for (const id of ids) await front.release(id);
  });
});

describe('create requests can wait for a free slot', () => {
  const wait = (host: TestServer, seconds = 50) =>
    host.api<CreatedSession>('POST', SESSIONS, { body: { keepAlive: true }, headers: { prefer: `wait=${seconds}` } });
  const countWaiting = async (): Promise<number> => (await readLimits(two, token)).usage.browsers.maxWaiting;

  it('waiting create requests are admitted in the order of arrival, regardless of which hosts receive the requests and which host has the free slot', async () => {
    const runningSessions: CreatedSession[] = [];
    for (let count = 0; count < 4; count += 1) runningSessions.push(await front.createSession({ keepAlive: true }));
    const admissionOrder: string[] = [];
    const all: Array<Promise<unknown>> = [];
    const enqueue = async (name: string, host: TestServer) => {
      const pendingCreate = wait(host);
      const waitForAdmission = async (): Promise<void> => {
        const { status, body } = await pendingCreate;
        admissionOrder.push(`${name} ${status}`);
        runningSessions.push(body);
      };
      all.push(waitForAdmission());
      await eventually(`${name} to be queued`, countWaiting, count => count === all.length);
    };
    for (const [name, host] of [
      ['first', one],
      ['second', front],
      ['third', two],
      ['fourth', one],
    ] as const)
      await enqueue(name, host);
    const abortController = new AbortController();
    const abandonedCreate = fetch(`${two.url}${SESSIONS}`, {
      ...{ method: 'POST', body: '{}', signal: abortController.signal },
      headers: { authorization: `Bearer ${fleet.key}`, 'content-type': 'application/json', prefer: 'wait=50' },
    });
    await eventually('the caller that will hang up to be queued', countWaiting, count => count === 5);
    abortController.abort();
    await assert.rejects(abandonedCreate);
    // A forged header. It claims that another host passed the request on, and that the request has waited for an hour
    // and is first in the queue.
    const forgedHeaders = { 'x-berth-line': '3600000 0 0' };
    const waitRefusal = await front.api('POST', SESSIONS, {
      body: {},
      headers: { prefer: 'wait=1', ...forgedHeaders },
    });
    assert.equal(waitRefusal.status, 503, waitRefusal.text);
    assert.equal(waitRefusal.body.details?.position, 5);
    assert.equal(waitRefusal.body.details?.waiting, 5);
    const refusal = await two.api('POST', SESSIONS, { body: {}, headers: forgedHeaders });
    assert.equal(refusal.status, 503, refusal.text);
    for (const from of [two, one, two, one]) {
      const countBefore = admissionOrder.length;
      const session = runningSessions.find(created => runsOn(from, created));
      assert.ok(session);
      runningSessions.splice(runningSessions.indexOf(session), 1);
      await front.release(session.id);
      await eventually(
        'the next create to be admitted',
        () => admissionOrder.length,
        length => length === countBefore + 1,
      );
    }
    await Promise.all(all);
    assert.deepEqual(admissionOrder, ['first 201', 'second 201', 'third 201', 'fourth 201']);
    assert.equal(await countWaiting(), 0);
    for (const { id } of runningSessions) await front.release(id);
  });
});

describe('the sessions and data of a host can be reached through the other hosts', () => {
  it('a CDP client can connect through every host with the same signing key', async () => {
    const session = await createSessionOnOne();
    for (const host of [two, front, one])
      await runOnPage(addressAt(host, session.connectUrl), async page => {
        await page.goto(`${pages.a}/files`);
        assert.equal(await page.title(), 'Files');
      });
    const refusal = await expectUpgradeRefusal(
      `${two.url.replace('http', 'ws')}${SESSIONS}/${session.id}/connect?signingKey=no`,
    );
    assert.equal(refusal.status, 401);
    assert.equal(refusal.body.code, 'invalid_credentials');
    await two.release(session.id);
    const refusalAfterEnd = await expectUpgradeRefusal(addressAt(two, session.connectUrl));
    assert.equal(refusalAfterEnd.status, 410);
  });

  it('a host serves uploads, downloads, logs, the live view and the replay of a session on another host', async () => {
    const session = await createSessionOnOne();
    const path = `${SESSIONS}/${session.id}`;
    const uploadResponse = await two.api<UploadResponse>(
      'POST',
      `${path}/uploads`,
      await uploadRequest('cv.pdf', BYTES),
    );
    assert.equal(uploadResponse.status, 200, uploadResponse.text);
    await runOnPage(addressAt(front, session.connectUrl), async page => {
      await page.goto(`${pages.a}/files`);
      await page.click('#report');
    });
    const listDownloads = () => two.api<DownloadPage>('GET', `/v1/browsers/downloads?sessionId=${session.id}`);
    const [download] = await eventually(
      'the download',
      async () => (await listDownloads()).body.downloads,
      (found: readonly Download[]) => found.length === 1,
    );
    assert.ok(download);
    const link = download.downloadUrl.startsWith(one.url)
      ? addressAt(front, download.downloadUrl)
      : download.downloadUrl;
    const fileResponse = await sendRequest(link, {});
    assert.equal(fileResponse.status, 200);
    const logsResponse = await two.api('GET', `${path}/logs`);
    assert.equal(logsResponse.status, 200, logsResponse.text);
    const debugResponse = await front.api<DebugUrls>('GET', `${path}/debug`);
    assert.equal(debugResponse.status, 200, debugResponse.text);
    assert.ok(debugResponse.body.wsUrl);
    const client = await CdpClient.connect(addressAt(two, debugResponse.body.wsUrl));
    assert.ok((await client.send('Browser.getVersion')).product);
    await client.close();
    assert.equal((await two.api('GET', `${path}/picture`)).status, 200);
    await front.release(session.id);
    const [replay] = await eventually(
      'a recording',
      () => listReplays(front, session.id),
      found => found.length > 0,
    );
    assert.ok(replay);
    for (const host of fleet.hosts)
      await waitForPlaylist(host, session.id, replay.pageId, text => text.includes('#EXT-X-ENDLIST'));
  });

  it('a host can load a context that another host saved', async () => {
    const context = await createContext(front);
    const savingSession = await createSessionOnOne(persistentBody(context.id));
    await runOnPage(addressAt(two, savingSession.connectUrl), async page => {
      await page.goto(`${pages.a}/files`);
      await page.evaluate("localStorage.setItem('kept', 'yes')");
    });
    await two.release(savingSession.id);
    await waitForVersion(front, context.id, 1);
    const loadingSession = await createSessionOn(two, { browserSettings: { context: { id: context.id } } });
    await runOnPage(addressAt(one, loadingSession.connectUrl), async page => {
      await page.goto(`${pages.a}/files`);
      assert.equal(await page.evaluate("localStorage.getItem('kept')"), 'yes');
    });
    await one.release(loadingSession.id);
  });

  it('a hand-off can be requested, read, claimed and completed through any host', async () => {
    const { key } = await issueAgentKey(one, { scopes: [...AGENT_KEY_SCOPES] });
    const session = await createSessionOnOne({}, key);
    const { id, claimUrl = assert.fail() } = await requestHandoff(two, key, session.id, {
      claimableBy: ['link'],
      leaseSeconds: 900,
    });
    const secret = new URL(claimUrl).hash.slice(1);
    const handoffResponse = await front.api<Handoff>('GET', handoffsPath(one, `/${id}`), { key: secret });
    assert.equal(handoffResponse.status, 200, handoffResponse.text);
    const cookie = handoffResponse.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? assert.fail();
    await runOnPage(addressAt(two, session.connectUrl), async page => {
      await page.setContent('<input id="code" style="position:absolute;left:0;top:0;width:300px;height:60px">');
      const pendingRead = readHandoff(front, key, id, '?wait=50');
      const claimOptions = { key: secret, headers: { cookie }, body: {} };
      const claimResponse = await two.api<ClaimedHandoff>('POST', handoffsPath(one, `/${id}/claim`), claimOptions);
      assert.equal(claimResponse.status, 200, claimResponse.text);
      assert.equal((await pendingRead).status, 'claimed');
      const viewer = await LiveViewer.open(addressAt(front, claimResponse.body.liveViewUrl));
      await eventually('control of the person', () => viewer.last('control')?.who === 'you' && viewer.frameCount > 0);
      let isRead = false;
      const read = invoke(two, key, 'browser.content', { sessionId: session.id }).finally(() => {
        isRead = true;
      });
      viewer.click(100, 30);
      viewer.sendInput({ type: 'text', text: 'from afar' });
      for (const host of fleet.hosts)
        assert.equal((await sendWithLease(host, claimResponse.body, 'renew')).status, 200);
      const { body: handoffList } = await two.api<{ data: Handoff[] }>('GET', handoffsPath(one, '?status=claimed'), {
        key,
      });
      assert.deepEqual(
        handoffList.data.map(handoff => handoff.id),
        [id],
      );
      assert.ok(!isRead, 'a call waits for the person');
      assert.equal((await sendWithLease(two, claimResponse.body, 'complete', { outcome: 'completed' })).status, 200);
      assert.equal(await page.inputValue('#code'), 'from afar');
      const { body, text } = await read;
      assert.equal(body.status, 'succeeded', text);
      await viewer.close();
    });
    const secondHandoff = await requestHandoff(front, key, session.id);
    const cancelResponse = await two.api<Handoff>('POST', handoffsPath(one, `/${secondHandoff.id}/cancel`), { key });
    assert.equal(cancelResponse.body.status, 'cancelled', cancelResponse.text);
    await front.release(session.id);
  });

  it('every host returns 404 for a session of another application', async () => {
    const session = await createSessionOnOne();
    const key = await createOtherApplicationKey(one);
    for (const host of fleet.hosts) {
      const refusal = await host.api('GET', `${SESSIONS}/${session.id}/debug`, { key });
      assert.equal(refusal.status, 404, refusal.text);
      assert.equal(refusal.body.code, 'not_found');
    }
    await two.release(session.id);
  });

  it('a host refuses a forged host token', async () => {
    for (const token of ['', 'x', 'e30.e30', `${Buffer.from('[]').toString('base64url')}.${'a'.repeat(43)}`]) {
      const headers = { 'x-berth-host-token': token };
      const refusal = await one.api('GET', SESSIONS, { headers });
      assert.equal(refusal.status, 403, refusal.text);
      assert.equal(refusal.body.code, 'permission_denied');
      const url = `${one.url.replace('http', 'ws')}${SESSIONS}/${randomUUID()}/connect?signingKey=no`;
      assert.equal((await expectUpgradeRefusal(url, headers)).status, 403);
    }
  });
});

describe('hosts can use TLS to communicate with each other', () => {
  it('the data that hosts pass on to each other is encrypted', async () => {
    const session = await createSessionOn(two);
    const debugResponse = await one.api<DebugUrls>('GET', `${SESSIONS}/${session.id}/debug`);
    assert.equal(debugResponse.status, 200, debugResponse.text);
    await runOnPage(addressAt(front, session.connectUrl), page => page.setContent('<title>Secret</title>'));
    const relayedText = peerPath.relayedBytes().toString('latin1');
    assert.ok(relayedText.length > 10_000, `${relayedText.length} bytes`);
    for (const secret of [fleet.key, 'x-berth-host-token', session.id, 'Secret'])
      assert.ok(!relayedText.includes(secret), secret);
    await two.release(session.id);
  });

  it('a host sends no data to a machine that impersonates another host with an untrusted, mismatched or expired certificate', async () => {
    const session = await createSessionOn(two);
    const path = `${SESSIONS}/${session.id}/debug`;
    const certificates = {
      'of another authority': makeAuthority('Hosts of the test').issue(peerPath.address),
      'of the authority for another name': peerPath.issue('127.0.0.3'),
      'of the authority that has expired': peerPath.issue(peerPath.address, { from: -3, to: -1 }),
    };
    for (const [what, certificate] of Object.entries(certificates))
      await peerPath.impersonate(certificate, async impostor => {
        const refusal = await one.api<ErrorBody>('GET', path);
        assert.deepEqual([refusal.status, refusal.body.code], [503, 'host_unreachable'], `${what}: ${refusal.text}`);
        assert.equal((await expectUpgradeRefusal(addressAt(front, session.connectUrl))).status, 503, what);
        assert.ok(impostor.connectionCount() > 0, what);
        assert.equal(impostor.receivedText(), '', what);
      });
    assert.equal((await one.api('GET', path)).status, 200);
    await one.release(session.id);
  });
});

describe('requests about consumers and Actions can be sent to any host', async () => {
  const owner = await Person.setUpOwner(one);
  const lab = await ConsumerFixture.open(one, owner);
  await (await Owner.open(one)).publish('orders.cancel', cancelOrderOperation(shop, { approval: 'end_user' }));
  const grants = [{ operationId: 'orders.cancel' }, { operationId: 'memory.get' }];
  const agent = await issueAgentKey(one, { scopes: ACTION_SCOPES, grants });
  const kim = await lab.signIn('kim@example.com');
  const endUser = { providerId: 'hosted', subject: kim.consumer.subject };
  const sendCommand = <Body>(host: TestServer, name: string, body: object, key = kim.accessToken) =>
    host.api<Body & ErrorBody>('POST', `/v1/consumer/applications/${lab.appId}/providers/hosted/${name}`, {
      key,
      body,
    });

  it('an Action can be prepared on one host and approved on another, and is executed only once even if all hosts get an execute request concurrently', async () => {
    const action = await new ActionAgent(one, agent.key).prepareSuccessfully('orders.cancel', {
      input: { orderId: 'F-1' },
      endUser,
    });
    const { jobId, digest } = action;
    const pendingRead = new ActionAgent(two, agent.key).read(jobId, '?wait=50&since=awaiting_approval');
    const approvalResponses = await Promise.all(
      fleet.hosts.map(host => sendCommand(host, 'actions.approve', { jobId, digest })),
    );
    assert.deepEqual(approvalResponses.map(({ status }) => status).sort(), [200, 409, 409]);
    assert.equal((await pendingRead).body.status, 'approved');
    const executionResponses = await Promise.all(
      [...fleet.hosts, ...fleet.hosts].map(host => new ActionAgent(host, agent.key).execute(action)),
    );
    assert.equal(new Set(executionResponses.map(({ body, text }) => body.id ?? text)).size, 1);
    const invocationResponse = await new ActionAgent(front, agent.key).readInvocation(
      executionResponses[0]?.body.id ?? '',
    );
    assert.equal(invocationResponse.body.status, 'succeeded', invocationResponse.text);
    assert.equal(shop.receivedRequests('/orders/F-1/').length, 1);
    const receiptsResponse = await sendCommand<ConsumerReceiptPage>(two, 'receipts.list', {});
    assert.deepEqual(
      receiptsResponse.body.data.map(({ jobId: of }) => of),
      [jobId],
    );
  });

  it('an agent can read memory that was written on another host, and is refused by all hosts after consent is withdrawn', async () => {
    assert.equal((await sendCommand(one, 'memory.put', { key: 'size', value: 42 })).status, 200);
    const consentResponse = await sendCommand<Consent>(two, 'memory.consent', {
      keyId: agent.id,
      keys: ['size'],
      access: 'read',
    });
    const get = (host: TestServer) => invoke(host, agent.key, 'memory.get', { endUser, key: 'size' });
    assert.equal(Object((await get(front)).body.output).item?.value, 42);
    assert.equal((await sendCommand(front, 'memory.withdraw', { id: consentResponse.body.id })).status, 200);
    for (const host of fleet.hosts) assert.equal((await get(host)).status, 403);
  });

  it('a consumer can claim a hand-off through any host, and loses the hand-off when the consumer session ends', async () => {
    const { key } = await issueAgentKey(one, { scopes: [...AGENT_KEY_SCOPES] });
    const session = await createSessionOnOne({}, key);
    const handoff = await requestHandoff(two, key, session.id, { claimableBy: { endUser }, leaseSeconds: 900 });
    const otherSignIn = await lab.signIn('kim@example.com');
    const claim = (host: TestServer, token?: string) =>
      sendCommand<ClaimedHandoff>(host, 'handoffs.claim', { id: handoff.id }, token);
    for (const host of fleet.hosts) {
      const listResponse = await sendCommand<ConsumerHandoffPage>(host, 'handoffs.list', { status: 'requested' });
      assert.deepEqual(
        listResponse.body.data.map(({ id }) => id),
        [handoff.id],
      );
      assert.equal((await sendCommand(host, 'handoffs.get', { id: handoff.id })).status, 200);
    }
    const claimResponses = await Promise.all(fleet.hosts.map(host => claim(host, otherSignIn.accessToken)));
    assert.deepEqual(claimResponses.map(({ status }) => status).sort(), [200, 409, 409]);
    const claimedHandoff = claimResponses.find(({ status }) => status === 200)?.body ?? assert.fail();
    assert.equal((await sendWithLease(front, claimedHandoff, 'renew')).status, 200);
    assert.equal((await sendCommand(two, 'session.end', {}, otherSignIn.accessToken)).status, 204);
    const readStatus = async () => (await readHandoff(front, key, handoff.id)).status;
    await eventually('the lease to be revoked', async () => (await readStatus()) === 'requested');
    assert.equal((await sendWithLease(two, claimedHandoff, 'renew')).status, 409);
    await front.release(session.id);
  });

  it('an Action in a session is executed by the host of the session, and an Action that opens a browser is executed by a host with a free slot', async () => {
    const { key } = await issueAgentKey(one, {
      scopes: [...AGENT_KEY_SCOPES],
      grants: [{ operationId: 'browser.handoff' }, { operationId: 'browser.content' }],
    });
    const session = await createSessionOnOne({}, key);
    const waitForHandoff = async (): Promise<Handoff> => {
      const handoffsResponse = await eventually(
        'the hand-off of the call',
        () =>
          two.api<{ data: Handoff[] }>('GET', handoffsPath(one, `?status=requested&sessionId=${session.id}`), { key }),
        ({ body }) => body.data.length === 1,
      );
      return handoffsResponse.body.data[0] ?? assert.fail();
    };
    await stepUp(owner);
    for (const executeOnApproval of [false, true]) {
      const input = { sessionId: session.id, instructions: `Look at it, ${executeOnApproval}` };
      const action = await new ActionAgent(two, key).prepareSuccessfully('browser.handoff', {
        input,
        executeOnApproval,
      });
      assert.equal((await decide(one, owner, action)).status, 200);
      const pendingExecution = executeOnApproval ? undefined : new ActionAgent(two, key).execute(action);
      const handoff = await waitForHandoff();
      assert.equal(handoff.instructions, input.instructions);
      await front.api('POST', handoffsPath(one, `/${handoff.id}/cancel`), { key });
      const { status, body, text } = (await pendingExecution) ?? { status: 202, body: undefined, text: '' };
      assert.ok(status === 200 || status === 202, text);
      const { invocationId = body?.id } = (await new ActionAgent(front, key).read(action.jobId)).body;
      const invocationResponse = await new ActionAgent(front, key).readInvocation(invocationId ?? assert.fail());
      assert.equal(invocationResponse.body.error?.code, 'handoff_cancelled', invocationResponse.text);
    }
    await front.release(session.id);
    const action = await new ActionAgent(front, key).prepareSuccessfully('browser.content', {
      input: { url: `${pages.url}/files` },
    });
    assert.equal((await decide(one, owner, action)).status, 200);
    const executionResponse = await new ActionAgent(front, key).execute(action);
    const invocationResponse = await new ActionAgent(front, key).readInvocation(
      executionResponse.body.id ?? assert.fail(executionResponse.text),
    );
    assert.equal(invocationResponse.body.status, 'succeeded', invocationResponse.text);
    await Promise.all([one.waitUntilSettled(), two.waitUntilSettled()]);
  });

  it('all hosts reject an access token after the consumer session is refreshed or ended on one host', async () => {
    for (const host of fleet.hosts) assert.equal((await sendCommand(host, 'session.get', {})).status, 200);
    const refreshResponse = await two.api<ConsumerTokens>(
      'POST',
      `/v1/consumer/applications/${lab.appId}/providers/hosted/session.refresh`,
      { key: null, body: { refreshToken: kim.refreshToken } },
    );
    const token = refreshResponse.body.accessToken ?? assert.fail(refreshResponse.text);
    const readStatusesWith = (key: string) => async () =>
      (await Promise.all(fleet.hosts.map(host => sendCommand(host, 'session.get', {}, key)))).map(
        ({ status }) => status,
      );
    const all401 = (seen: readonly number[]) => seen.every(status => status === 401);
    await eventually('the old token to be refused by all hosts', readStatusesWith(kim.accessToken), all401);
    assert.equal((await sendCommand(front, 'session.get', {}, token)).status, 200);
    assert.equal((await sendCommand(one, 'session.endAll', {}, token)).status, 204);
    await eventually('the session to be refused by all hosts', readStatusesWith(token), all401);
  });
});

describe('sign-in attempts and requests are counted across all hosts together', () => {
  const countStatuses = async (count: number, attempt: (host: TestServer) => Promise<{ status: number }>) => {
    const hosts = Array.from({ length: count }, (_, turn) => fleet.hosts[turn % fleet.hosts.length] ?? one);
    const statuses = (await Promise.all(hosts.map(attempt))).map(({ status }) => status);
    return Object.fromEntries([...new Set(statuses)].map(one => [one, statuses.filter(other => other === one).length]));
  };

  it('after ten failed sign-ins on all hosts together, sign-ins with the e-mail address are refused, and successful sign-ins are not counted', async () => {
    const person = await Person.setUpOwner(one, 'grace@example.com');
    const guess = (email: string) => (host: TestServer) =>
      eventually(
        'a place to check a password',
        () => new Person(host).signIn(email, 'not the password'),
        ({ status }) => status !== 503,
      );
    assert.deepEqual(await countStatuses(15, guess('nobody@example.com')), { 401: 10, 429: 5 });
    for (const host of fleet.hosts) {
      const refusal = await guess('nobody@example.com')(host);
      assert.equal(refusal.status, 429, refusal.text);
      assert.ok(Number(refusal.headers['retry-after']) > 500, 'the time until the first attempt is forgotten');
    }
    for (let turn = 0; turn < 4; turn += 1)
      for (const host of fleet.hosts)
        assert.equal((await new Person(host).signIn('grace@example.com')).status, 200, 'not counted');
    assert.equal((await person.get('/v1/account')).status, 200);
  });

  it('the number of requests from an address to all hosts together is limited', async () => {
    const startAuthorization = (host: TestServer) =>
      host.api('POST', AUTHORIZATIONS, { key: null, body: { client_id: CLIENT_ID } });
    assert.deepEqual(await countStatuses(36, startAuthorization), { 201: 30, 429: 6 });
  });
});

test('a host without slots places the sessions of an application on different hosts', async () => {
  const sessions = [await front.createSession({ keepAlive: true }), await front.createSession({ keepAlive: true })];
  assert.deepEqual(
    [one, two].map(host => sessions.filter(session => runsOn(host, session)).length),
    [1, 1],
  );
  for (const { id } of sessions) await front.release(id);
});

test('create, read and release succeed through a proxy that alternates between hosts', async () => {
  const headers = { authorization: `Bearer ${fleet.key}`, 'content-type': 'application/json' };
  for (let round = 0; round < 4; round += 1) {
    const createResponse = await sendRequest<CreatedSession>(`${fleet.url}${SESSIONS}`, {
      method: 'POST',
      headers,
      body: '{}',
    });
    assert.equal(createResponse.status, 201, createResponse.text);
    const path = `${fleet.url}${SESSIONS}/${createResponse.body.id}`;
    assert.equal((await sendRequest<Session>(path, { headers })).body.status, 'RUNNING');
    const body = JSON.stringify({ status: 'REQUEST_RELEASE' });
    const releaseResponse = await sendRequest<Session>(path, { method: 'POST', headers, body });
    assert.equal(releaseResponse.body.status, 'COMPLETED', releaseResponse.text);
  }
});

describe('MCP can be used through any host', () => {
  const connectClient = async ({ url }: Pick<TestServer, 'url'>): Promise<Client> => {
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    const endpoint = new URL(`${url}/v1/agent/applications/${one.applicationId}/mcp`);
    const requestInit = { headers: { authorization: `Bearer ${fleet.key}` } };
    await client.connect(new StreamableHTTPClientTransport(endpoint, { requestInit }));
    return client;
  };
  const callTool = async (client: Client, name: string, input: Record<string, unknown> = {}): Promise<string> => {
    const { content, isError } = await client.callTool({ name, arguments: input });
    const text = content.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('\n');
    assert.ok(!isError, text);
    return text;
  };

  it('over MCP, a session can be used through every host, with the same element references and the same hand-off', async () => {
    const clients = [await connectClient(front), await connectClient(one), await connectClient(two)] as const;
    const [first, second, third] = clients;
    const openedText = await callTool(first, 'browser_open', { url: `${pages.a}/files` });
    const [, sessionId = ''] = /Opened session (\S+)\./.exec(openedText) ?? [];
    const owner =
      [one, two].find(host => runsOn(host, { id: sessionId })) ?? assert.fail('the session runs on no host');
    const [, ref = ''] = /link "report".*\[ref=(\w+)\]/.exec(openedText) ?? [];
    for (const client of clients) {
      await callTool(client, 'browser_hover', { ref });
      await callTool(client, 'browser_hover', { ref, sessionId });
    }
    assert.ok((await callTool(second, 'browser_sessions')).includes(sessionId));
    const handoverText = await callTool(third, 'browser_hand_over', { instructions: 'Sign in' });
    const link = new URL(/http\S+/.exec(handoverText)?.[0] ?? '');
    const path = `/v1/applications/${one.applicationId}${link.pathname}`;
    const pendingWait = callTool(first, 'browser_hand_over_wait', { sessionId });
    const claimResponse = await owner.api<ClaimedHandoff>('POST', `${path}/claim`, { key: link.hash.slice(1) });
    assert.equal(claimResponse.status, 200, claimResponse.text);
    const body = { outcome: 'completed' };
    await owner.api('POST', `${path}/complete`, { key: claimResponse.body.leaseToken, body });
    assert.match(await pendingWait, /the person is done/);
    await callTool(second, 'browser_close');
    assert.equal((await third.callTool({ name: 'browser_snapshot', arguments: { sessionId } })).isError, true);
    for (const client of clients) await client.close();
    await Promise.all([one.waitUntilSettled(), two.waitUntilSettled()]);
  });

  it('browser_open opens a session on another host if the chosen host has become full, and returns an error if no host has a free slot', async () => {
    const firstSession = await createSessionOnOne();
    const clients = await Promise.all([front, one, two].map(connectClient));
    // All three calls choose the empty host. It has two slots, so the third session is opened on the other host.
    const openedTexts = await Promise.all(clients.map(client => callTool(client, 'browser_open')));
    const ids = openedTexts.map(text => /Opened session (\S+)\./.exec(text)?.[1] ?? assert.fail(text));
    assert.deepEqual(
      [one, two].map(host => ids.filter(id => runsOn(host, { id })).length),
      [1, 2],
    );
    for (const client of clients) {
      const { isError, content } = await client.callTool({ name: 'browser_open', arguments: {} });
      assert.equal(isError, true);
      assert.match(JSON.stringify(content), /No slot is free/);
    }
    for (const [at, client] of clients.entries()) {
      await callTool(client, 'browser_close', { sessionId: ids[at] });
      await client.close();
    }
    await front.release(firstSession.id);
    await Promise.all([one.waitUntilSettled(), two.waitUntilSettled()]);
  });
});

describe('a host that does not match the fleet is refused at startup, and the error states what to change', () => {
  interface UnfitHost {
    readonly env?: Readonly<Record<string, string | undefined>>;
    readonly aheadMs?: number;
    readonly expected: RegExp;
  }

  const start = ({ env = {}, aheadMs }: Omit<UnfitHost, 'expected'>): Promise<TestServer> =>
    startServer({
      key: fleet.key,
      env: { ...fleet.env, BERTH_SLOTS: '0', ...env },
      ...(aheadMs === undefined ? {} : { clock: 'test' as const, aheadMs }),
    });

  const cases: Readonly<Record<string, UnfitHost>> = {
    'a host with another secret is refused': {
      env: { BERTH_SECRET: 'x'.repeat(40) },
      expected: /secret of this server differs from that of host.*Set the same BERTH_SECRET for all hosts/,
    },
    'a host that keeps files on its disk is refused': {
      env: { BERTH_S3_BUCKET: undefined, BERTH_S3_ENDPOINT: undefined },
      expected: /keeps files on its disk.*set BERTH_S3_BUCKET for all of them/,
    },
    'a host with the address of another host is refused': {
      env: { BERTH_PEER_URL: one.url },
      expected: /is also the address of host.*Set BERTH_PEER_URL of each host/,
    },
    'a host with a clock that is ten seconds ahead is refused': {
      aheadMs: 10_000,
      expected: /clock of this server differs by 10 s from that of host.*with NTP/,
    },
  };
  for (const [what, { expected, ...unfit }] of Object.entries(cases))
    it(what, async () => {
      await assert.rejects(start(unfit), expected);
    });

  it('a host with a bucket of the same name in another store is refused', async () => {
    const otherStore = await startS3();
    try {
      const expectedError =
        /bucket of this server differs from that of host.*the same BERTH_S3_BUCKET and BERTH_S3_ENDPOINT/;
      await assert.rejects(start({ env: { ...otherStore.env } }), expectedError);
    } finally {
      await otherStore.close();
    }
  });

  it('a host whose version is older than the schema of the database is refused', async () => {
    const insertStatement = "insert into berth_migrations (name, timestamp) values ('9999-later', '2099-01-01')";
    await runStatement(fleet, insertStatement);
    try {
      await assert.rejects(
        start({}),
        /migrated by a newer version of Berth, so this version cannot use it. Nothing was changed. Start that version/,
      );
    } finally {
      await runStatement(fleet, "delete from berth_migrations where name = '9999-later'");
    }
    assert.equal((await one.api('GET', SESSIONS)).status, 200, 'hosts that run do not notice');
  });
});

test('the operator can list all hosts and their sessions, and a draining host gets no new sessions', async () => {
  const operator = await Person.setUpOwner(one);
  const list = async (): Promise<HostList> => (await operator.get<HostList>(HOSTS)).body;
  const { isAlone, data } = await list();
  assert.deepEqual([isAlone, data.map(({ slots }) => slots).toSorted()], [false, [0, 2, 2]]);
  assert.deepEqual([...new Set(data.map(({ state }) => state))], ['up']);
  assert.ok(data.every(({ heardAt, url, version }) => heardAt && url && version));
  const ownHost = data.find(({ isThis }) => isThis) ?? assert.fail();
  const otherHost = data.find(({ isThis, slots }) => !isThis && slots > 0) ?? assert.fail();
  const drainResponse = await operator.send<ListedHost>('PATCH', `${HOSTS}/${otherHost.id}`, { draining: true });
  assert.deepEqual([drainResponse.status, drainResponse.body.draining], [200, true], drainResponse.text);
  await eventually('the drain to be listed', async () => (await list()).data.some(({ draining }) => draining));
  const createdSessions = [await one.createSession({ keepAlive: true }), await one.createSession({ keepAlive: true })];
  const listSessionIds = async (host: string): Promise<string[]> =>
    (await operator.get<HostSessions>(`${HOSTS}/${host}/sessions`)).body.data.map(({ id }) => id);
  assert.deepEqual((await listSessionIds(ownHost.id)).toSorted(), createdSessions.map(({ id }) => id).toSorted());
  assert.deepEqual(await listSessionIds(otherHost.id), []);
  assert.equal((await operator.send('PATCH', `${HOSTS}/${otherHost.id}`, { draining: false })).status, 200);
  for (const { id } of createdSessions) await one.release(id);
  const refusal = await one.api<ErrorBody>('PATCH', `${HOSTS}/${otherHost.id}`, { body: { draining: true } });
  assert.equal(refusal.status, 401, 'an agent key');
});
