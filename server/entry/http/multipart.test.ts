import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { after, test } from 'node:test';
import fastify from 'fastify';
import { isFault } from '../../kit/fault.ts';
import { acceptMultipart, type UploadedFile, withUploadedFile } from './multipart.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-multipart-'));
const MAX = 200_000;
const UPLOAD_TIMEOUT_MS = 60_000;
const app = fastify();
acceptMultipart(app);
app.setErrorHandler((error, _, reply) => {
  void reply.send({ refused: isFault(error) ? error.code : String(error) });
});
app.post('/', request =>
  withUploadedFile(request, { folder, maxBytes: MAX }, new Date(), async (file: UploadedFile) => ({
    ...file,
    path: undefined,
    text: readFileSync(file.path, 'latin1').slice(0, 20),
  })),
);
const url = await app.listen({ port: 0, host: '127.0.0.1' });
after(async () => {
  await app.close();
  rmSync(folder, { recursive: true });
});

interface UploadResult {
  readonly refused?: string;
  readonly fileName?: string;
  readonly size?: number;
  readonly checksum?: string;
  readonly text?: string;
}

async function send(body: FormData | string | Buffer, contentType?: string): Promise<UploadResult> {
  const headers = contentType ? { 'content-type': contentType } : {};
  const response = await fetch(url, { method: 'POST', headers, body });
  const result: UploadResult = Object(await response.json());
  assert.deepEqual(readdirSync(folder), [], 'the temporary file is deleted');
  return result;
}

function form(...parts: ReadonlyArray<readonly [name: string, value: string | Blob, fileName?: string]>): FormData {
  const formData = new FormData();
  for (const [name, value, fileName] of parts)
    if (typeof value === 'string') formData.append(name, value);
    else formData.append(name, value, fileName);
  return formData;
}

const raw = (...lines: readonly string[]) => [lines.join('\r\n'), 'multipart/form-data; boundary=b'] as const;
const HEAD = 'Content-Disposition: form-data; name="file"; filename="a.txt"';

test('receives one file with its name, size and digest', async () => {
  const result = await send(form(['file', new Blob(['hello']), 'Grüße ☂.txt']));
  assert.deepEqual(result, {
    fileName: 'Grüße ☂.txt',
    size: 5,
    checksum: createHash('sha256').update('hello').digest('hex'),
    text: 'hello',
  });
});

test('accepts a file of the maximum size, and refuses a file that is one byte larger', async () => {
  assert.equal((await send(form(['file', new Blob(['x'.repeat(MAX)]), 'a']))).size, MAX);
  assert.equal((await send(form(['file', new Blob(['x'.repeat(MAX + 1)]), 'a']))).refused, 'payload_too_large');
  assert.equal((await send(form(['file', new Blob(['x'.repeat(20 * MAX)]), 'a']))).refused, 'payload_too_large');
});

test('preserves slashes in the file name', async () => {
  assert.equal(
    (await send(...raw('--b', HEAD.replace('a.txt', '../a/b.txt'), '', 'x', '--b--', ''))).fileName,
    '../a/b.txt',
  );
});

test('refuses a body that does not contain exactly one file', async () => {
  const file = new Blob(['x']);
  assert.equal((await send(form())).refused, 'missing_file');
  assert.equal((await send(form(['file', 'text']))).refused, 'missing_file');
  assert.equal((await send(form(['other', file, 'a']))).refused, 'missing_file');
  assert.equal((await send(form(['file', file, 'a'], ['file', file, 'b']))).refused, 'invalid_file');
  assert.equal((await send(form(['file', file, 'a'], ['more', 'text']))).refused, 'missing_file');
  assert.equal((await send(form(['__proto__', file, 'a']))).refused, 'invalid_file');
});

test('refuses a body that is not multipart or ends early', async () => {
  assert.equal((await send('{}', 'application/json')).refused, 'unsupported_media_type');
  assert.equal((await send('x', 'multipart/form-data')).refused, 'invalid_file');
  assert.equal((await send(...raw('--b', HEAD, '', 'the start of'))).refused, 'invalid_file');
  assert.equal((await send(...raw('nothing of the kind'))).refused, 'invalid_file');
});

test('reuses the connection after a refused upload', async t => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let connectionCount = 0;
  const onConnection = (): void => {
    connectionCount += 1;
  };
  app.server.on('connection', onConnection);
  t.after(() => {
    agent.destroy();
    app.server.off('connection', onConnection);
  });
  const chunkedHeaders = { 'transfer-encoding': 'chunked' };
  const uploadCases = [
    ['file', 20 * MAX, {}, 'payload_too_large'],
    ['file', 20 * MAX, chunkedHeaders, 'payload_too_large'],
    ['other', 20 * MAX, chunkedHeaders, 'missing_file'],
    ['other', 1, {}, 'missing_file'],
  ] as const;
  for (const [name, size, framing, refused] of uploadCases) {
    const [body, contentType] = raw('--b', HEAD.replace('file', name), '', 'x'.repeat(size), '--b--', '');
    const headers = { 'content-type': contentType, ...framing };
    const upload = request(url, { agent, method: 'POST', headers, signal: AbortSignal.timeout(UPLOAD_TIMEOUT_MS) }).end(
      body,
    );
    const [response] = await once(upload, 'response');
    const result: UploadResult = Object(await json(response));
    assert.equal(result.refused, refused);
  }
  assert.equal(connectionCount, 1);
});
