// Certificate authorities: the files that can be uploaded, and the certificates that a session with an authority
// accepts and rejects.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Browser, chromium, type Page } from 'playwright-core';
import type { Certificate } from '../../contract/certificates.ts';
import type { SessionEventPage } from '../../contract/events.ts';
import type { Session } from '../../contract/sessions.ts';
import { makeAuthority } from '../harness/authority.ts';
import { createOtherApplicationKey } from '../harness/other-application.ts';
import { openSecurePages, SECURE_TITLE } from '../harness/secure-pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { uploadRequest } from '../harness/upload.ts';

const CERTIFICATES = '/v1/browsers/certificates';
const SESSIONS = '/v1/browsers/sessions';

const ourAuthority = makeAuthority('Ours');
const otherAuthority = makeAuthority('Another');
const trustedPort = await openSecurePages(ourAuthority.issue('a.test'));
const expiredPort = await openSecurePages(ourAuthority.issue('a.test', { from: -9, to: -2 }));
const unknownAuthorityPort = await openSecurePages(otherAuthority.issue('a.test'));

const server = await startServer({
  env: {
    BERTH_EGRESS_ALLOW: '127.0.0.1/32',
    BERTH_EGRESS_HOSTS: 'a.test=127.0.0.1,b.test=127.0.0.1',
    BERTH_WARM: '1',
  },
});

async function uploadCertificate(pem: string, key = server.key): Promise<Certificate> {
  const response = await server.api<Certificate>('POST', CERTIFICATES, {
    ...(await uploadRequest('ca.pem', pem)),
    key,
  });
  assert.equal(response.status, 200, response.text);
  return response.body;
}

const bodyTrusting = (...ids: readonly string[]) => ({ proxySettings: { caCertificates: ids }, keepAlive: true });

async function connectBrowser(session: { connectUrl: string }): Promise<{ browser: Browser; page: Page }> {
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page);
  return { browser, page };
}

/** Returns the network error that the page shows, or `none` if the page loads. */
async function failureAt(page: Page, url: string): Promise<string> {
  const whenShown = page.waitForEvent('framenavigated');
  const failure = await page.goto(url).then(
    () => 'none',
    error => /ERR_\w+/.exec(String(error))?.[0] ?? String(error),
  );
  // Chromium loads its error page slightly later, which would interrupt the next navigation.
  await whenShown;
  return failure;
}

const certificate = await uploadCertificate(ourAuthority.pem);
const session = await server.createSession(bodyTrusting(certificate.id));
const { browser, page } = await connectBrowser(session);

test('responses describe an uploaded certificate, but do not contain its bytes', async () => {
  const bundle = await uploadCertificate(ourAuthority.pem + otherAuthority.pem);
  assert.deepEqual(bundle.subjects, ['CN=Ours', 'CN=Another']);
  assert.equal(bundle.fingerprints.length, 2);
  assert.match(String(bundle.fingerprints[0]), /^sha256:[0-9a-f]{64}$/);
  assert.equal(bundle.projectId, server.applicationId);
  assert.equal(bundle.warnings, undefined);
  const { warnings: _, ...shownCertificate } = bundle;
  assert.deepEqual((await server.api('GET', `${CERTIFICATES}/${bundle.id}`)).body, shownCertificate);
  const list = await server.api<Certificate[]>('GET', CERTIFICATES);
  assert.deepEqual(
    list.body.map(({ id }) => id),
    [bundle.id, certificate.id],
  );
  assert.doesNotMatch(list.text, /BEGIN|"ders"/);
  assert.equal((await server.api('DELETE', `${CERTIFICATES}/${bundle.id}`)).status, 204);
  for (const verb of ['GET', 'DELETE'])
    assert.equal((await server.api(verb, `${CERTIFICATES}/${bundle.id}`)).status, 404);
});

test('a certificate can be uploaded in DER format as well as in PEM format', async () => {
  const response = await server.api<Certificate>(
    'POST',
    CERTIFICATES,
    await uploadRequest('ca.der', otherAuthority.der),
  );
  assert.equal(response.status, 200, response.text);
  const pemCertificate = await uploadCertificate(otherAuthority.pem);
  assert.deepEqual(response.body.fingerprints, pemCertificate.fingerprints);
  for (const { id } of [response.body, pemCertificate]) await server.api('DELETE', `${CERTIFICATES}/${id}`);
});

test('an expired certificate that is not a CA certificate can be uploaded, and the response contains a warning for each defect', async () => {
  const leaf = await uploadCertificate(ourAuthority.issue('a.test', { from: -9, to: -2 }).cert);
  assert.deepEqual(
    leaf.warnings?.map(({ code }) => code),
    ['not_a_ca', 'expired'],
  );
  await server.api('DELETE', `${CERTIFICATES}/${leaf.id}`);
});

test('an upload of an unusable file is refused, and the error contains the reason', async () => {
  const { key } = ourAuthority.issue('a.test');
  const cases: ReadonlyArray<
    readonly [what: string, ask: Awaited<ReturnType<typeof uploadRequest>>, number, string, RegExp]
  > = [
    ['a private key', await uploadRequest('ca.pem', ourAuthority.pem + key), 400, 'invalid_file', /private key/],
    [
      'half of one in DER form',
      await uploadRequest('ca.der', ourAuthority.der.subarray(0, 100)),
      400,
      'invalid_file',
      /DER/,
    ],
    ['no certificate', await uploadRequest('ca.pem', 'hello'), 400, 'invalid_file', /BEGIN CERTIFICATE/],
    [
      'another field',
      await uploadRequest('ca.pem', ourAuthority.pem, 'certificate'),
      400,
      'missing_file',
      /named `?file/,
    ],
    [
      'too much',
      await uploadRequest('ca.pem', ourAuthority.pem.padEnd(1_000_001)),
      413,
      'payload_too_large',
      /1000000/,
    ],
    ['JSON', { body: { file: ourAuthority.pem } }, 415, 'unsupported_media_type', /multipart/],
  ];
  for (const [what, ask, status, code, words] of cases) {
    const refusal = await server.api('POST', CERTIFICATES, ask);
    assert.deepEqual([refusal.status, refusal.body.code], [status, code], what);
    assert.match(refusal.body.message, words, what);
  }
});

test('a repeated upload with the same idempotency key returns the same certificate, and a different upload with this key is refused', async () => {
  const { body, headers } = await uploadRequest('ca.pem', otherAuthority.pem);
  const ask = { body, headers: { ...headers, 'idempotency-key': 'once' } };
  const [first, second] = [
    await server.api<Certificate>('POST', CERTIFICATES, ask),
    await server.api<Certificate>('POST', CERTIFICATES, ask),
  ];
  assert.equal(second.body.id, first.body.id);
  assert.equal(second.headers['idempotency-replayed'], 'true');
  const changedRequest = await uploadRequest('ca.pem', ourAuthority.pem);
  const conflictResponse = await server.api('POST', CERTIFICATES, {
    ...changedRequest,
    headers: { ...changedRequest.headers, 'idempotency-key': 'once' },
  });
  assert.equal(conflictResponse.body.code, 'idempotency_conflict');
  await server.api('DELETE', `${CERTIFICATES}/${first.body.id}`);
});

test('a session that trusts an authority can use pages, workers, WebSockets and downloads of a server whose certificate the authority issued', async () => {
  assert.equal(await failureAt(page, `https://a.test:${trustedPort}/`), 'none');
  assert.equal(await page.title(), SECURE_TITLE);
  assert.equal(await page.evaluate(workerScript), 'data');
  assert.equal(await page.evaluate(webSocketScript), 'HELLO');
  const whenDownloaded = page.waitForEvent('download');
  await page.click('#get');
  const download = await whenDownloaded;
  assert.equal(await download.failure(), null);
});

test('new browser contexts of a session trust the authority of the session', async () => {
  const context = await browser.newContext();
  assert.equal(await failureAt(await context.newPage(), `https://a.test:${trustedPort}/`), 'none');
  await context.close();
});

test('a session that trusts the authority still rejects a wrong name, an expired certificate and an unknown issuer', async () => {
  assert.equal(await failureAt(page, `https://b.test:${trustedPort}/`), 'ERR_CERT_COMMON_NAME_INVALID');
  assert.equal(await failureAt(page, `https://a.test:${expiredPort}/`), 'ERR_CERT_DATE_INVALID');
  assert.equal(await failureAt(page, `https://a.test:${unknownAuthorityPort}/`), 'ERR_CERT_AUTHORITY_INVALID');
});

test('a session that does not trust the authority rejects its certificates', async () => {
  const plainSession = await server.createSession({ keepAlive: true });
  const otherConnection = await connectBrowser(plainSession);
  assert.equal(await failureAt(otherConnection.page, `https://a.test:${trustedPort}/`), 'ERR_CERT_AUTHORITY_INVALID');
  await otherConnection.browser.close();
  await server.release(plainSession.id);
});

test('a session with the same authorities as an earlier session gets a warm browser that trusts these authorities', async () => {
  const sameCertificate = await uploadCertificate(`# again\n${ourAuthority.pem}`);
  const claimedSession = await eventually(
    'a session that was claimed',
    async () => {
      const { id, connectUrl } = await server.createSession(bodyTrusting(sameCertificate.id));
      const { body } = await server.api<SessionEventPage>('GET', `${SESSIONS}/${id}/events`);
      if (body.data.some(({ type }) => type === 'session.claimed')) return { id, connectUrl };
      await server.release(id);
      return undefined;
    },
    found => found !== undefined,
    60_000,
  );
  assert.ok(claimedSession);
  const warmConnection = await connectBrowser(claimedSession);
  assert.equal(await failureAt(warmConnection.page, `https://a.test:${trustedPort}/`), 'none');
  assert.equal(
    await failureAt(warmConnection.page, `https://a.test:${unknownAuthorityPort}/`),
    'ERR_CERT_AUTHORITY_INVALID',
  );
  await warmConnection.browser.close();
  await server.release(claimedSession.id);
});

test('a certificate of another application cannot be read, deleted or used in a session', async () => {
  const key = await createOtherApplicationKey(server);
  const foreignCertificate = await uploadCertificate(otherAuthority.pem, key);
  for (const verb of ['GET', 'DELETE'])
    assert.equal((await server.api(verb, `${CERTIFICATES}/${foreignCertificate.id}`)).status, 404);
  const refusal = await server.api('POST', SESSIONS, { body: bodyTrusting(certificate.id, foreignCertificate.id) });
  assert.deepEqual([refusal.status, refusal.body.code], [400, 'unknown_certificate']);
  assert.deepEqual(refusal.body.details, { field: 'proxySettings.caCertificates', id: foreignCertificate.id });
  assert.deepEqual((await server.api<Certificate[]>('GET', CERTIFICATES, { key })).body.length, 1);
});

test('a session still trusts its uploaded authority after a server restart', async () => {
  await browser.close();
  await server.restart();
  const newConnection = await connectBrowser(session);
  assert.equal(await failureAt(newConnection.page, `https://a.test:${trustedPort}/?again`), 'none');
  await newConnection.browser.close();
});

test('a running session still trusts a deleted authority, but a create request with the deleted authority is refused', async () => {
  assert.equal((await server.api('DELETE', `${CERTIFICATES}/${certificate.id}`)).status, 204);
  const runningConnection = await connectBrowser(session);
  assert.equal(await failureAt(runningConnection.page, `https://a.test:${trustedPort}/?later`), 'none');
  await runningConnection.browser.close();
  const refusal = await server.api('POST', SESSIONS, { body: bodyTrusting(certificate.id) });
  assert.deepEqual([refusal.status, refusal.body.code], [400, 'unknown_certificate']);
  const openSessionsResponse = await server.api<Session[]>('GET', `${SESSIONS}?status=PENDING,RUNNING`);
  assert.deepEqual(
    openSessionsResponse.body.map(({ id }) => id),
    [session.id],
  );
  await server.release(session.id);
});

// ---- scripts that run in the page -----------------------------------------------------------------------------------

const workerScript = `new Promise(resolve => { new Worker('/worker.js').onmessage = ({ data }) => resolve(data); })`;
const webSocketScript = `new Promise(resolve => {
  const socket = new WebSocket('wss://' + location.host + '/ws');
  socket.onopen = () => socket.send('hello');
  socket.onmessage = ({ data }) => resolve(data);
  socket.onerror = () => resolve('failed');
})`;
