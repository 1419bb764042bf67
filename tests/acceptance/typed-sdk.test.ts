// The typed client against a real server: every failure is a BerthError, and `waitFor` and `paginate` replace the loops
// that a program would otherwise need.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { BerthError, berthClient, connect, dataOf, paginate, waitFor } from '../../sdk/index.ts';
import { claimFreePort } from '../harness/free-port.ts';
import { CHECKOUT, startServer } from '../harness/server.ts';

const server = await startServer();
const createdToken: { token: string } = JSON.parse((await server.operate('tokens', 'create', '--json')).stdout);
const berth = berthClient({ url: server.url, key: server.key, token: createdToken.token });
const UNKNOWN_ID = '01a1fa50-5319-7450-a6b3-c787ada50631';

async function expectFailure(work: Promise<unknown>): Promise<BerthError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof BerthError, `${error}`);
  return error;
}

const createSession = (run: string) =>
  dataOf(berth.POST('/v1/browsers/sessions', { body: { keepAlive: true, userMetadata: { run } } }));

const release = (id: string) =>
  berth.POST('/v1/browsers/sessions/{id}', { params: { path: { id } }, body: { status: 'REQUEST_RELEASE' } });

test('the SDK can create, read, list and release sessions', async () => {
  const ids = [(await createSession('list')).id, (await createSession('list')).id];
  for (const id of ids) assert.equal((await waitFor(berth, id, 'RUNNING')).id, id);
  const listedSessions = paginate(before =>
    berth.GET('/v1/browsers/sessions', {
      params: { query: { limit: 1, q: "user_metadata['run']:'list'", ...(before ? { before } : {}) } },
    }),
  );
  assert.deepEqual((await Array.fromAsync(listedSessions)).map(({ id }) => id).sort(), ids.sort());
  for (const id of ids) await release(id);
  for (const id of ids) assert.equal((await waitFor(berth, id, ['COMPLETED', 'ERROR'])).endReason, 'released');
});

test('the SDK uses the token for operations on applications', async () => {
  const applications = await Array.fromAsync(
    paginate(cursor =>
      berth.GET('/v1/applications', { params: { query: { limit: 1, ...(cursor ? { cursor } : {}) } } }),
    ),
  );
  assert.deepEqual(
    applications.map(({ id }) => id),
    [server.applicationId],
  );
  const { data: keys } = await dataOf(
    berth.GET('/v1/applications/{appId}/agent-keys', { params: { path: { appId: server.applicationId } } }),
  );
  assert.equal(keys.length, 1);
});

test('Playwright can be connected in an `await using` block, and the session is released at the end of the block', async () => {
  let id: string;
  {
    await using connection = await connect(berth, url => chromium.connectOverCDP(url), { timeout: 300 });
    id = connection.session.id;
    const page = connection.browser.contexts()[0]?.pages()[0];
    await page?.goto('data:text/html,<title>From the SDK</title>');
    assert.equal(await page?.title(), 'From the SDK');
  }
  const session = await server.read(id);
  assert.deepEqual([session.status, session.endReason], ['COMPLETED', 'released']);
});

test('connect() can connect Puppeteer, and release() succeeds if the session has already ended', async () => {
  const connection = await connect(berth, url => puppeteer.connect({ browserWSEndpoint: url, defaultViewport: null }));
  assert.equal((await connection.browser.pages()).length, 1);
  await connection.browser.close();
  await server.waitUntilEnded(connection.session.id);
  await connection.release();
  await connection.release();
});

test('connect() releases the session if its callback throws', async () => {
  let id = '';
  const failedConnection = connect(berth, (_, session) => {
    id = session.id;
    throw new Error('no client');
  });
  await assert.rejects(failedConnection, /no client/);
  assert.equal((await server.read(id)).endReason, 'released');
});

test('waitFor() rejects on a timeout, on an abort, and if the session ends with another status', async () => {
  const { id } = await createSession('wait');
  const timeoutError = await expectFailure(waitFor(berth, id, 'COMPLETED', { timeoutMs: 20 }));
  assert.equal(timeoutError.code, 'wait_timeout');
  await assert.rejects(waitFor(berth, id, 'COMPLETED', { signal: AbortSignal.abort() }), { name: 'AbortError' });
  await release(id);
  const wrongEndError = await expectFailure(waitFor(berth, id, 'RUNNING'));
  assert.deepEqual(
    [wrongEndError.code, wrongEndError.details],
    ['wrong_end', { status: 'COMPLETED', endReason: 'released' }],
  );
});

test('an error has a code, a status, a request id, details and advice', async () => {
  const path = { id: UNKNOWN_ID };
  const notFoundError = await expectFailure(berth.GET('/v1/browsers/sessions/{id}', { params: { path } }));
  assert.deepEqual([notFoundError.code, notFoundError.status], ['not_found', 404]);
  assert.ok(notFoundError.requestId);
  assert.ok(notFoundError.advice);
  const invalidError = await expectFailure(berth.POST('/v1/browsers/sessions', { body: { timeout: 1 } }));
  assert.equal(invalidError.code, 'invalid_request');
  assert.ok(Array.isArray(invalidError.details?.issues));
  const refusedError = await expectFailure(
    berthClient({ url: server.url, key: 'bak_wrong' }).GET('/v1/browsers/sessions'),
  );
  assert.deepEqual([refusedError.code, refusedError.status], ['invalid_credentials', 401]);
});

test('the SDK sends no request without a credential, and reports which credential is missing', async () => {
  const anonymousClient = berthClient({ url: server.url, key: '', token: '' });
  const keyError = await expectFailure(anonymousClient.GET('/v1/browsers/sessions'));
  assert.deepEqual([keyError.code, keyError.status], ['no_credential', undefined]);
  assert.match(`${keyError.message} ${keyError.advice}`, /agent key.*BERTH_KEY/);
  const tokenError = await expectFailure(anonymousClient.GET('/v1/applications'));
  assert.match(`${tokenError.message} ${tokenError.advice}`, /token.*BERTH_TOKEN/);
});

test('the SDK reports different errors if nothing listens at the address and if another service responds', async () => {
  const unreachableError = await expectFailure(
    berthClient({ url: `http://127.0.0.1:${await claimFreePort()}` }).GET('/healthz'),
  );
  assert.deepEqual([unreachableError.code, unreachableError.status], ['unreachable', undefined]);
  assert.match(unreachableError.message, /ECONNREFUSED/);
  const otherServer = createServer((_, response) => response.writeHead(502).end('<h1>Bad gateway</h1>'));
  await new Promise<void>(resolve => otherServer.listen(0, '127.0.0.1', resolve));
  after(() => otherServer.close());
  const address = otherServer.address();
  assert.ok(typeof address === 'object' && address !== null);
  const unexpectedError = await expectFailure(berthClient({ url: `http://127.0.0.1:${address.port}` }).GET('/healthz'));
  assert.deepEqual([unexpectedError.code, unexpectedError.status], ['unexpected_answer', 502]);
});

test('the SDK can be imported as a package by a program in another folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-sdk-'));
  after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'node_modules/@berth'), { recursive: true });
  symlinkSync(join(CHECKOUT, 'sdk'), join(folder, 'node_modules/@berth/sdk'));
  writeFileSync(
    join(folder, 'program.ts'),
    `import { berthClient, dataOf } from '@berth/sdk';
     console.log((await dataOf(berthClient().GET('/v1/browsers/sessions'))).length);`,
  );
  const env = { ...process.env, BERTH_URL: server.url, BERTH_KEY: server.key };
  const { stdout } = await promisify(execFile)(process.execPath, ['program.ts'], { cwd: folder, env });
  assert.match(stdout, /^\d+\n$/);
});

test('ended sessions leave no process, file or unfinished database row behind', () => server.waitUntilSettled());
