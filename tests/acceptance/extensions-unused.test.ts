// Deletion of unused extensions and their files, deletion of uploads that a killed server was receiving, and uploads
// with the official SDK.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import Browserbase, { NotFoundError, toFile } from '@browserbasehq/sdk';
import type { Extension } from '../../contract/extensions.ts';
import { makeAuthority } from '../harness/authority.ts';
import { messagingExtension } from '../harness/extensions.ts';
import { filesUnder } from '../harness/files-under.ts';
import { type ApiOptions, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { uploadRequest } from '../harness/upload.ts';

const EXTENSIONS = '/v1/browsers/extensions';
const DAY_MS = 86_400_000;
/** The number of uploads that an application may have in progress at the same time. */
const UPLOADS_AT_ONCE_MAX = 16;

const server = await startServer({ clock: 'test', env: { BERTH_EXTENSION_DAYS: '30', BERTH_SLOTS: '2' } });

async function uploadExtension(bytes: Buffer): Promise<Extension> {
  const uploadResponse = await server.api<Extension>('POST', EXTENSIONS, await uploadRequest('e.zip', bytes));
  assert.equal(uploadResponse.status, 200, uploadResponse.text);
  return uploadResponse.body;
}

const listStoredFiles = (): string[] => filesUnder(join(server.dataDir, 'artifacts', 'objects'));
const isStored = ({ checksum }: Extension): boolean => listStoredFiles().some(path => path.endsWith(checksum));
const statusOf = async ({ id }: Extension): Promise<number> => (await server.api('GET', `${EXTENSIONS}/${id}`)).status;

for (const path of ['', '/v1/browsers'])
  test(`the official client uploads, reads and deletes extensions and certificates with the base path ${path || '/'}`, async () => {
    const sdk = new Browserbase({ apiKey: server.key, baseURL: `${server.url}${path}`, maxRetries: 0 });
    const extension = await sdk.extensions.create({ file: await toFile(messagingExtension('sdk'), 'sdk.zip') });
    assert.deepEqual([extension.fileName, extension.projectId], ['sdk.zip', server.applicationId]);
    assert.deepEqual(await sdk.extensions.retrieve(extension.id), extension);
    await sdk.extensions.delete(extension.id);
    await assert.rejects(sdk.extensions.retrieve(extension.id), NotFoundError);
    const certificate = await sdk.certificates.create({
      file: await toFile(Buffer.from(makeAuthority('S').pem), 'ca.pem'),
    });
    assert.deepEqual(await sdk.certificates.retrieve(certificate.id), certificate);
    assert.deepEqual(await sdk.certificates.list(), [certificate]);
    await sdk.certificates.delete(certificate.id);
    assert.deepEqual(await sdk.certificates.list(), []);
  });

test('identical extensions are stored in one file, which is deleted after the last of them is deleted', async () => {
  const [first, second] = [
    await uploadExtension(messagingExtension('twin')),
    await uploadExtension(messagingExtension('twin')),
  ];
  assert.equal(listStoredFiles().filter(path => path.endsWith(first.checksum)).length, 1);
  await server.api('DELETE', `${EXTENSIONS}/${first.id}`);
  await server.advance(DAY_MS);
  assert.ok(isStored(second));
  await server.api('DELETE', `${EXTENSIONS}/${second.id}`);
  await server.advance(DAY_MS);
  await server.eventuallyHourly(
    'the file to be removed',
    () => isStored(second),
    stored => !stored,
  );
});

test('an extension and its file are deleted after the configured number of days without use', async () => {
  const unusedExtension = await uploadExtension(messagingExtension('unused'));
  const usedExtension = await uploadExtension(messagingExtension('used'));
  await server.advance(29 * DAY_MS);
  const session = await server.createSession({ extensionIds: [usedExtension.id] });
  await server.release(session.id);
  await server.advance(2 * DAY_MS);
  await server.eventuallyHourly(
    'the extension to be deleted',
    () => statusOf(unusedExtension),
    status => status === 404,
  );
  await server.eventuallyHourly(
    'the file of the extension to be removed',
    () => isStored(unusedExtension),
    stored => !stored,
  );
  assert.equal(await statusOf(usedExtension), 200);
  assert.ok(isStored(usedExtension));
});

test('the start of a server removes partial uploads and unpacked files that a killed server left behind', async () => {
  await server.kill();
  const leftPaths = ['incoming', 'unpacking'].map(folder => join(server.dataDir, folder, 'half'));
  for (const path of leftPaths) {
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, 'half');
  }
  await server.start();
  for (const path of leftPaths) assert.equal(existsSync(path), false, path);
});

test('an upload beyond the limit of concurrent uploads is refused, and is accepted after the other uploads have ended', async () => {
  const ask = await uploadRequest('e.zip', messagingExtension('many'));
  const slowUploads = Array.from({ length: UPLOADS_AT_ONCE_MAX }, () => startSlowUpload(ask));
  const countIncoming = (): number => filesUnder(join(server.dataDir, 'incoming')).length;
  await eventually('all uploads to be accepted', countIncoming, count => count === UPLOADS_AT_ONCE_MAX);
  const refusal = await server.api('POST', EXTENSIONS, ask);
  assert.deepEqual([refusal.status, refusal.body.code], [429, 'rate_limited']);
  assert.deepEqual([refusal.body.details?.limit, refusal.headers['x-should-retry']], [UPLOADS_AT_ONCE_MAX, 'true']);
  for (const { finish } of slowUploads) finish();
  for (const { responded } of slowUploads) assert.equal(await responded, 200);
  assert.equal((await server.api('POST', EXTENSIONS, ask)).status, 200);
});

/** Starts an upload whose last byte is sent when `finish` is called. */
function startSlowUpload({ body, headers }: ApiOptions): {
  finish: () => void;
  responded: Promise<number | undefined>;
} {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
  const outgoingRequest = request(`${server.url}${EXTENSIONS}`, {
    method: 'POST',
    headers: { ...headers, authorization: `Bearer ${server.key}`, 'content-length': bytes.length },
    agent: false,
  });
  const responseStatus = new Promise<number | undefined>((resolve, reject) => {
    outgoingRequest.once('response', response => resolve(response.resume().statusCode));
    outgoingRequest.once('error', reject);
  });
  outgoingRequest.write(bytes.subarray(0, -1));
  return { finish: () => void outgoingRequest.end(bytes.subarray(-1)), responded: responseStatus };
}
