// Extensions: uploads, loading into warm browsers, and the actions that clients may perform with extensions.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { type Browser, chromium, type Page } from 'playwright-core';
import type { SessionEventPage } from '../../contract/events.ts';
import type { Extension } from '../../contract/extensions.ts';
import { CdpClient } from '../harness/cdp.ts';
import { blockingExtension, messagingExtension } from '../harness/extensions.ts';
import { createOtherApplicationKey } from '../harness/other-application.ts';
import { openPages } from '../harness/pages.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { uploadRequest } from '../harness/upload.ts';
import { createCrx3, type ZipEntry, zip } from '../harness/zip.ts';

const EXTENSIONS = '/v1/browsers/extensions';
const SESSIONS = '/v1/browsers/sessions';

const pages = await openPages({ '/refused': 'refused', '/open': 'open' });
const server = await startServer({ pages, env: { BERTH_WARM: '1' } });

async function uploadExtension(bytes: Buffer, name = 'extension.zip', key = server.key): Promise<Extension> {
  const response = await server.api<Extension>('POST', EXTENSIONS, { ...(await uploadRequest(name, bytes)), key });
  assert.equal(response.status, 200, response.text);
  return response.body;
}

async function connect(session: { connectUrl: string }): Promise<{ browser: Browser; page: Page }> {
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page);
  return { browser, page };
}

const said = (page: Page, name: string): Promise<unknown> =>
  eventually(
    `a message from ${name}`,
    () => page.evaluate<unknown>(`document.documentElement.dataset.${name}`),
    words => words !== undefined,
  );

const alpha = await uploadExtension(messagingExtension('alpha'), 'C:\\mine\\alpha.zip');
const beta = await uploadExtension(blockingExtension('beta'));
const warm = await eventually(
  'a warm browser',
  async () => (await server.fetchFromOperator('/metrics')).text,
  text => /^berth_warm_browsers 1$/m.test(text),
  60_000,
);
const session: CreatedSession = await server.createSession({
  extensionId: alpha.id,
  extensionIds: [beta.id],
  keepAlive: true,
});
const client = await CdpClient.connect(session.connectUrl);

interface ListedExtension {
  readonly id: string;
  readonly name: string;
  readonly path: string;
}
const listExtensions = async (cdp = client): Promise<readonly ListedExtension[]> => {
  const { extensions } = await cdp.send('Extensions.getExtensions');
  return Array.isArray(extensions) ? extensions : [];
};
const loadedExtensions = await listExtensions();
const pathOf = (name: string): string => loadedExtensions.find(one => one.name === name)?.path ?? '';
const idOf = (name: string): string => loadedExtensions.find(one => one.name === name)?.id ?? '';

test('an upload of an extension returns the name, the version and the manifest version from its manifest', async () => {
  assert.deepEqual(
    { ...alpha, id: '', createdAt: '', updatedAt: '', checksum: '', size: 0 },
    {
      ...{ id: '', createdAt: '', updatedAt: '', checksum: '', size: 0 },
      ...{
        fileName: 'alpha.zip',
        projectId: server.applicationId,
        name: 'alpha',
        version: '1.0.1',
        manifestVersion: 3,
      },
    },
  );
  assert.match(alpha.checksum, /^[0-9a-f]{64}$/);
  assert.deepEqual((await server.api('GET', `${EXTENSIONS}/${alpha.id}`)).body, alpha);
});

test('a session loads its extensions into a warm browser before the first client connects', async () => {
  assert.ok(warm);
  const { body } = await server.api<SessionEventPage>('GET', `${SESSIONS}/${session.id}/events`);
  assert.ok(body.data.some(({ type }) => type === 'session.claimed'));
  assert.deepEqual(loadedExtensions.map(({ name }) => name).sort(), ['alpha', 'beta']);
  const expectedUrls = ['alpha', 'beta'].map(name => `chrome-extension://${idOf(name)}/js/worker.js`).sort();
  const readWorkerUrls = async (): Promise<string[]> => {
    const { targetInfos } = await client.send('Target.getTargets', { filter: [{ type: 'service_worker' }] });
    return (Array.isArray(targetInfos) ? targetInfos : []).map(({ url }) => String(url)).sort();
  };
  // The create waits for the service workers only for a limited time, so they may appear later.
  await eventually('the workers of the extensions', readWorkerUrls, seen => String(seen) === String(expectedUrls));
});

test('content scripts run in the first page, and can send messages to the service workers of their extensions', async () => {
  const { browser, page } = await connect(session);
  await page.goto(pages.a);
  assert.equal(await said(page, 'alpha'), 'worker of alpha hears alpha');
  assert.equal(await said(page, 'beta'), 'worker of beta hears beta');
  const get = (path: string): Promise<string> =>
    page.evaluate(
      one =>
        fetch(one)
          .then(response => response.text())
          .catch(() => 'blocked'),
      path,
    );
  assert.deepEqual([await get('/open'), await get('/refused')], ['open', 'blocked'], 'its rules apply');
  await browser.close();
});

test('a client can use the Extensions domain with the extensions of its session', async () => {
  const id = idOf('alpha');
  const pageChannel = await client.attachToPage();
  await client.send('Extensions.setStorageItems', { id, storageArea: 'local', values: { a: 1 } }, pageChannel);
  const { data } = await client.send('Extensions.getStorageItems', { id, storageArea: 'local' }, pageChannel);
  assert.deepEqual(data, { a: 1 });
  await client.send('Extensions.uninstall', { id });
  assert.deepEqual(
    (await listExtensions()).map(({ name }) => name),
    ['beta'],
  );
  assert.equal((await client.send('Extensions.loadUnpacked', { path: pathOf('alpha') })).id, id, 'the id is stable');
  assert.equal((await client.send('Extensions.loadUnpacked', { path: alpha.id })).id, id, 'by its id as well');
  assert.deepEqual((await listExtensions()).map(({ name }) => name).sort(), ['alpha', 'beta']);
});

test('identical uploads have the same extension id in the browser, and are loaded only once into a session', async () => {
  const secondUpload = await uploadExtension(messagingExtension('alpha'));
  assert.notEqual(secondUpload.id, alpha.id);
  assert.equal(secondUpload.checksum, alpha.checksum);
  const otherSession = await server.createSession({ extensionIds: [secondUpload.id, alpha.id] });
  const cdp = await CdpClient.connect(otherSession.connectUrl);
  assert.deepEqual(
    await listExtensions(cdp),
    loadedExtensions.filter(({ name }) => name === 'alpha').map(one => ({ ...one, enabled: true })),
  );
  await cdp.close();
  await server.release(otherSession.id);
});

test('two versions of a .crx file with the same key have the same extension id, and cannot be loaded into one session', async () => {
  const key = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const signedExtension = await uploadExtension(createCrx3(messagingExtension('gamma'), key), 'gamma.crx');
  const newerExtension = await uploadExtension(
    createCrx3(messagingExtension('gamma', { version: '2' }), key),
    'gamma.crx',
  );
  const duplicateRefusal = await server.api('POST', SESSIONS, {
    body: { extensionIds: [signedExtension.id, newerExtension.id] },
  });
  assert.equal(duplicateRefusal.status, 400);
  assert.match(duplicateRefusal.body.message, /versions of the same extension/);
  const ids = new Set<string>();
  for (const { id } of [signedExtension, newerExtension]) {
    const one = await server.createSession({ extensionIds: [id] });
    const cdp = await CdpClient.connect(one.connectUrl);
    for (const extension of await listExtensions(cdp)) ids.add(extension.id);
    await cdp.close();
    await server.release(one.id);
  }
  assert.equal(ids.size, 1);
});

test("a create request is refused with Chromium's message if an extension cannot be loaded", async () => {
  const brokenExtension = await uploadExtension(
    messagingExtension('broken', { content_scripts: [{ matches: ['<all_urls>'], js: ['none.js'] }] }),
  );
  const refusal = await server.api('POST', SESSIONS, { body: { extensionIds: [brokenExtension.id] } });
  assert.deepEqual([refusal.status, refusal.body.code], [400, 'invalid_file']);
  assert.match(refusal.body.message, /none\.js/);
});

const MANIFEST: ZipEntry = { name: 'manifest.json', bytes: '{"manifest_version":3,"name":"n","version":"1"}' };
const BAD: ReadonlyArray<readonly [reason: string, archive: Buffer]> = [
  ['not_a_zip', Buffer.from('hello')],
  ['path_escape', zip([MANIFEST, { name: '../../../evil.js' }])],
  ['absolute_path', zip([MANIFEST, { name: '/tmp/evil.js' }])],
  ['link', zip([MANIFEST, { name: 'passwd', bytes: '/etc/passwd', mode: 0o120777 }])],
  ['duplicate_name', zip([MANIFEST, { name: 'a' }, { name: 'a' }])],
  ['case_collision', zip([MANIFEST, { name: 'a' }, { name: 'A' }])],
  ['encrypted', zip([MANIFEST, { name: 'a', flags: 1 }])],
  ['compression_ratio', zip([MANIFEST, { name: 'a', bytes: Buffer.alloc(20 * 1024 ** 2) }])],
  ['too_many_entries', zip([MANIFEST, ...Array.from({ length: 10_000 }, (_, at) => ({ name: `${at}` }))])],
  ['manifest_missing', zip([{ name: 'a' }])],
  ['manifest_not_at_root', zip([{ ...MANIFEST, name: 'my/manifest.json' }])],
  ['manifest_not_json', zip([{ name: 'manifest.json', bytes: 'no' }])],
  ['manifest_version', zip([{ name: 'manifest.json', bytes: '{"manifest_version":2,"name":"n","version":"1"}' }])],
  ['manifest_field', zip([{ name: 'manifest.json', bytes: '{"manifest_version":3,"version":"1"}' }])],
  ['crx_version', Buffer.from('Cr24\x02\x00\x00\x00\x00\x00\x00\x00')],
];

test('an invalid archive is refused, and the error contains the reason', async () => {
  const messages = new Set<string>();
  for (const [reason, archive] of BAD) {
    const refusal = await server.api('POST', EXTENSIONS, await uploadRequest('bad.zip', archive));
    assert.deepEqual([refusal.status, refusal.body.code, refusal.body.details], [400, 'invalid_file', { reason }]);
    messages.add(refusal.body.message);
  }
  assert.equal(messages.size, BAD.length);
});

test('a create request with an extension of another application, an unknown extension or too many extensions is refused', async () => {
  const key = await createOtherApplicationKey(server);
  const foreignExtension = await uploadExtension(messagingExtension('foreign'), 'f.zip', key);
  for (const verb of ['GET', 'DELETE'])
    assert.equal((await server.api(verb, `${EXTENSIONS}/${foreignExtension.id}`)).status, 404);
  const unknownId = crypto.randomUUID();
  for (const id of [foreignExtension.id, unknownId]) {
    const refusal = await server.api('POST', SESSIONS, { body: { extensionIds: [alpha.id, id] } });
    assert.deepEqual([refusal.status, refusal.body.code], [400, 'unknown_extension']);
    assert.deepEqual(refusal.body.details, { field: 'extensionIds', id });
  }
  const many = Array.from({ length: 10 }, () => crypto.randomUUID());
  const limitRefusal = await server.api('POST', SESSIONS, { body: { extensionIds: many, extensionId: alpha.id } });
  assert.deepEqual([limitRefusal.status, limitRefusal.body.code], [400, 'invalid_request']);
});

test('extensions work after a server restart, and a client can load an extension again', async () => {
  await server.restart();
  const secondClient = await CdpClient.connect(session.connectUrl);
  assert.deepEqual((await listExtensions(secondClient)).map(({ name }) => name).sort(), ['alpha', 'beta']);
  const id = idOf('alpha');
  await secondClient.send('Extensions.uninstall', { id });
  assert.equal((await secondClient.send('Extensions.loadUnpacked', { path: alpha.id })).id, id);
  await secondClient.close();
});

test('a running session keeps a deleted extension, but a create request with the deleted extension is refused', async () => {
  assert.equal((await server.api('DELETE', `${EXTENSIONS}/${alpha.id}`)).status, 204);
  assert.equal((await server.api('GET', `${EXTENSIONS}/${alpha.id}`)).status, 404);
  const refusal = await server.api('POST', SESSIONS, { body: { extensionIds: [alpha.id] } });
  assert.deepEqual([refusal.status, refusal.body.code], [400, 'unknown_extension']);
  const { browser, page } = await connect(session);
  await page.goto(pages.b);
  assert.equal(await said(page, 'alpha'), 'worker of alpha hears alpha');
  await browser.close();
  await server.release(session.id);
});
