// Attacks with extensions: archives that write outside their folder, clients that load other folders, and extensions
// that try to read the host or other sessions or to bypass the egress proxy.
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Extension } from '../../contract/extensions.ts';
import { CdpClient } from '../harness/cdp.ts';
import { messagingExtension } from '../harness/extensions.ts';
import { createOtherApplicationKey } from '../harness/other-application.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { uploadRequest } from '../harness/upload.ts';
import { type ZipEntry, zip } from '../harness/zip.ts';

const EXTENSIONS = '/v1/browsers/extensions';
const SESSIONS = '/v1/browsers/sessions';

const pages = await openPages();
const secretPages = await openPages({ '/': 'secret' }); // On loopback, which sessions may not reach.
const server = await startServer({ pages });

async function uploadExtension(bytes: Buffer, key = server.key): Promise<Extension> {
  const response = await server.api<Extension>('POST', EXTENSIONS, { ...(await uploadRequest('e.zip', bytes)), key });
  assert.equal(response.status, 200, response.text);
  return response.body;
}

const spy = await uploadExtension(
  messagingExtension('spy', { permissions: ['storage', 'proxy', 'tabs', 'management', 'nativeMessaging', 'debugger'] }),
);
const otherExtension = await uploadExtension(messagingExtension('other'));
const session = await server.createSession({ extensionIds: [spy.id], keepAlive: true });
const neighbourSession = await server.createSession({ extensionIds: [otherExtension.id], keepAlive: true });
const client = await CdpClient.connect(session.connectUrl);
const page = await client.attachToPage();
await client.send('Page.navigate', { url: pages.a }, page);
await client.waitForValue(
  'the page to exist',
  "document.readyState === 'complete' && document.title",
  page,
  title => title === 'Home',
);

/** Calls a function in the extension's worker, and returns its result. */
const callSpy = (call: string, ...args: readonly unknown[]): Promise<unknown> =>
  client.evaluate(
    `new Promise(resolve => {
      addEventListener('message', ({ data }) => data.from === 'spy' && resolve(data.answer));
      postMessage({ to: 'spy', asked: ${JSON.stringify({ call, with: args })} });
    })`,
    page,
  );

const listExtensions = async (cdp: CdpClient): Promise<Array<{ id: string; name: string; path: string }>> => {
  const { extensions } = await cdp.send('Extensions.getExtensions');
  return Array.isArray(extensions) ? extensions : [];
};

test('a hostile extension can fetch from an allowed host name', async () => {
  assert.match(String(await callSpy('get', `${pages.a}/`)), /<h1>Home/);
});

test('extension archives that write outside their folder are refused', async () => {
  const manifest: ZipEntry = { name: 'manifest.json', bytes: '{"manifest_version":3,"name":"n","version":"1"}' };
  const mark = `berth-escaped-${process.pid}`;
  const depths = Array.from({ length: 12 }, (_, depth) => '../'.repeat(depth + 1));
  const names = [
    ...depths.map(up => `${up}${mark}`),
    ...depths.map(up => `a/${up}${mark}`),
    ...depths.map(up => `${up}tmp/${mark}`.replaceAll('/', '\\')),
    `/tmp/${mark}`,
    `//tmp/${mark}`,
    `${join(tmpdir(), mark)}`,
    `./../${mark}`,
    `a/./../../${mark}`,
  ];
  for (const name of names) {
    const refusal = await server.api(
      'POST',
      EXTENSIONS,
      await uploadRequest('e.zip', zip([manifest, { name, bytes: 'x' }])),
    );
    assert.equal(refusal.status, 400, name);
  }
  const symlinkArchive = zip([
    manifest,
    { name: 'out', bytes: tmpdir(), mode: 0o120777 },
    { name: `out/${mark}`, bytes: 'x' },
  ]);
  assert.equal((await server.api('POST', EXTENSIONS, await uploadRequest('e.zip', symlinkArchive))).status, 400);
  for (const folder of ['/', '/tmp', tmpdir(), server.dataDir, join(server.dataDir, '..')])
    assert.equal(existsSync(join(folder, mark)), false, folder);
  for (const folder of ['incoming', 'unpacking'])
    assert.deepEqual(readdirSync(join(server.dataDir, folder)), [], `${folder} is empty`);
});

test('zip bombs are refused, and those that declare a large size are refused before they are unpacked', async () => {
  const manifest: ZipEntry = { name: 'manifest.json', bytes: '{"manifest_version":3,"name":"n","version":"1"}' };
  const zeros = Buffer.alloc(30 * 1024 ** 2);
  // The second and the fourth archive contain fewer bytes than they declare. If they were unpacked, the reason would be
  // `damaged`.
  const bombs: ReadonlyArray<readonly [reason: string, entries: readonly ZipEntry[]]> = [
    ['compression_ratio', [{ name: 'a', bytes: zeros }]],
    ['compression_ratio', [{ name: 'a', bytes: 'x', size: zeros.length }]],
    ['damaged', [{ name: 'a', bytes: zeros, size: 100 }]],
    ['too_large_unpacked', [{ name: 'a', bytes: 'x', size: 2 ** 32 - 2 }]],
    ['too_many_entries', Array.from({ length: 20_000 }, (_, at) => ({ name: `${at}`, method: 0 }))],
  ];
  for (const [index, [reason, entries]] of bombs.entries()) {
    const bomb = zip([manifest, ...entries]);
    const { status, body } = await server.api('POST', EXTENSIONS, await uploadRequest('e.zip', bomb));
    assert.deepEqual([status, body.details?.reason], [400, reason], `bomb ${index}`);
  }
});

test('a client cannot load another folder as an extension, however the path is spelled', async () => {
  const [ownExtension] = await listExtensions(client);
  assert.ok(ownExtension);
  const neighbourClient = await CdpClient.connect(neighbourSession.connectUrl);
  const [foreignExtension] = await listExtensions(neighbourClient);
  assert.ok(foreignExtension);
  assert.notEqual(foreignExtension.path, ownExtension.path);
  const paths = [
    '/',
    '/session',
    '/session/profile',
    '/session/downloads',
    '/tmp/.uploads',
    '/etc',
    server.dataDir,
    join(server.dataDir, 'sessions', neighbourSession.id, 'box'),
    foreignExtension.path,
    foreignExtension.path.replace('/session/', `${server.dataDir}/sessions/${neighbourSession.id}/box/`),
    otherExtension.id,
    spy.checksum,
    `${ownExtension.path}/`,
    `${ownExtension.path}/js`,
    `${ownExtension.path}/../../downloads`,
    ownExtension.path.toUpperCase(),
    `${ownExtension.path}\0`,
    '',
    'relative',
  ];
  for (const path of paths) {
    const { error } = await client.ask('Extensions.loadUnpacked', { path });
    assert.match(String(error?.message), /refused/, path);
  }
  for (const params of [{}, { path: null }, { path: [ownExtension.path] }, { path: { toString: ownExtension.path } }])
    assert.ok((await client.ask('Extensions.loadUnpacked', params)).error, JSON.stringify(params));
  const disguisedResponse = await client.askRaw(
    id => `{"id":${id},"method":"Extensions.loadUnp\\u0061cked","params":{"path":"/session/downloads"}}`,
  );
  assert.match(String(disguisedResponse.error?.message), /refused/);
  const pageResponse = await client.ask('Extensions.loadUnpacked', { path: '/session/downloads' }, page);
  assert.match(String(pageResponse.error?.message), /refused/);
  assert.deepEqual(
    (await listExtensions(client)).map(({ name }) => name),
    ['spy'],
  );
  await neighbourClient.close();
});

test('a client cannot use the Extensions domain of CDP to access extensions of other sessions or the PDF viewer', async () => {
  const pdfViewer = 'mhjfbmdgcfjbbpaeojofohoefgiehjai';
  const neighbourClient = await CdpClient.connect(neighbourSession.connectUrl);
  const neighbourChannel = await neighbourClient.attachToPage();
  await neighbourClient.visit(pages.a, neighbourChannel); // The storage can be accessed from a page with the content script.
  const [foreignExtension] = await listExtensions(neighbourClient);
  assert.ok(foreignExtension);
  const storageParams = { id: foreignExtension.id, storageArea: 'local' };
  await neighbourClient.send('Extensions.setStorageItems', { ...storageParams, values: { kept: 1 } }, neighbourChannel);
  for (const id of [foreignExtension.id, pdfViewer, 'a'.repeat(32), '', '*'])
    for (const method of [
      'uninstall',
      'triggerAction',
      'getStorageItems',
      'setStorageItems',
      'clearStorageItems',
      'removeStorageItems',
    ]) {
      const { error } = await client.ask(
        `Extensions.${method}`,
        { id, storageArea: 'local', values: {}, keys: [] },
        page,
      );
      assert.match(String(error?.message), /refused/, `${method} ${id}`);
    }
  assert.deepEqual((await neighbourClient.send('Extensions.getStorageItems', storageParams, neighbourChannel)).data, {
    kept: 1,
  });
  await neighbourClient.close();
});

test('a session with an extension of another application cannot be created', async () => {
  const key = await createOtherApplicationKey(server);
  const refusal = await server.api('POST', SESSIONS, { body: { extensionIds: [spy.id] }, key });
  assert.deepEqual([refusal.status, refusal.body.code], [400, 'unknown_extension']);
});

test('an extension cannot access files of the host or internal pages', async () => {
  const box = join(server.dataDir, 'sessions', neighbourSession.id, 'box');
  const files = ['/etc/passwd', '/etc/hostname', '/root/.profile', join(server.dataDir, 'secret'), box];
  const urls = [...files.map(path => `file://${path}`), 'chrome://version', 'chrome://policy', 'devtools://devtools/'];
  for (const url of urls) assert.match(String(await callSpy('get', url)).slice(0, 60), /Error|Failed/, url);
});

test('an extension cannot bypass the egress proxy, even with its own proxy setting', async () => {
  assert.match(String(await callSpy('get', `${server.url}/healthz`)), /refused|Error|^$/i);
  const hitsBefore = secretPages.hits('/');
  const fetchResult = await callSpy('get', secretPages.url).then(String);
  assert.doesNotMatch(fetchResult, /^secret$/);
  const directResult = await callSpy('direct', secretPages.url).then(String);
  assert.doesNotMatch(directResult, /^secret$/);
  assert.equal(secretPages.hits('/'), hitsBefore, 'a proxy setting of the extension does not bypass the egress proxy');
});

test('ended sessions leave no process, file or unfinished database row behind', async () => {
  await client.close();
  await server.release(session.id);
  await server.release(neighbourSession.id);
  await server.waitUntilSettled();
});
