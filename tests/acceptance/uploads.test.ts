// Uploads as callers send them and pages read them. An upload is stored completely or not at all, under a safe name,
// and is listed even if the response was lost.
import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import Browserbase from '@browserbasehq/sdk';
import { chromium, type Page } from 'playwright-core';
import type { UploadResponse } from '../../contract/files.ts';
import type { Session } from '../../contract/sessions.ts';
import { boxesOf } from '../harness/boxes.ts';
import { createOwnerToken, setLimits } from '../harness/limits.ts';
import { createOtherApplicationKey } from '../harness/other-application.ts';
import { openPages } from '../harness/pages.ts';
import { openChosenStore } from '../harness/s3.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { listEvents } from '../harness/session-events.ts';
import { eventually } from '../harness/until.ts';
import { uploadRequest } from '../harness/upload.ts';

const pages = await openPages({ '/form': '<!doctype html><title>Form</title><input type=file id=file multiple>' });
const store = await openChosenStore();
const server = await startServer({ pages, env: { BERTH_SESSION_UPLOADS: '3000000', ...store?.env } });
const sha256 = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex');

const send = async (session: string, name: string, bytes: Buffer | string, headers: Record<string, string> = {}) => {
  const request = await uploadRequest(name, bytes);
  return server.api<UploadResponse & { code?: string }>('POST', `/v1/browsers/sessions/${session}/uploads`, {
    ...request,
    headers: { ...request.headers, ...headers },
  });
};
const readUploads = async (session: string): Promise<NonNullable<Session['uploads']>> =>
  (await server.read(session)).uploads ?? [];

async function withSession(work: (session: CreatedSession) => Promise<void>): Promise<void> {
  const session = await server.createSession({ keepAlive: true });
  await work(session);
  await server.release(session.id);
}

async function withForm(session: CreatedSession, work: (page: Page) => Promise<void>): Promise<void> {
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page);
  await page.goto(`${pages.a}/form`);
  await work(page);
  await browser.close();
}

/** Attaches files as clients like Stagehand do: by absolute path, over CDP. */
async function attach(page: Page, files: readonly string[]): Promise<string[]> {
  const client = await page.context().newCDPSession(page);
  const { root } = await client.send('DOM.getDocument');
  const { nodeId } = await client.send('DOM.querySelector', { nodeId: root.nodeId, selector: '#file' });
  await client.send('DOM.setFileInputFiles', { nodeId, files: [...files] });
  await client.detach();
  return page.evaluate(
    `Promise.all([...document.querySelector('#file').files].map(async file => file.name + ':' + await file.text()))`,
  );
}

describe('files can be uploaded to a session', () => {
  it('an upload is acknowledged with its checksum, is listed on the session, and can be read by the page at its path', () =>
    withSession(async session => {
      const uploadResponse = await send(session.id, 'Grüße ☂.txt', 'hello');
      assert.equal(uploadResponse.status, 200, uploadResponse.text);
      assert.deepEqual(uploadResponse.body, {
        ...{ message: 'File uploaded', fileName: 'Grüße ☂.txt', filePath: '/tmp/.uploads/Grüße ☂.txt' },
        ...{ size: 5, checksum: sha256('hello') },
      });
      const [listedUpload, ...more] = await readUploads(session.id);
      assert.deepEqual(more, []);
      assert.deepEqual(
        [listedUpload?.fileName, listedUpload?.size, listedUpload?.checksum],
        ['Grüße ☂.txt', 5, sha256('hello')],
      );
      await withForm(session, async page => {
        assert.deepEqual(await attach(page, [uploadResponse.body.filePath]), ['Grüße ☂.txt:hello']);
      });
      const [told] = await listEvents(server, session.id, 'file.uploaded');
      assert.deepEqual([told?.actor.kind, told?.detail.checksum], ['agentKey', sha256('hello')]);
    }));

  it('an upload atomically replaces a file of the same name', () =>
    withSession(async session => {
      await send(session.id, 'cv.pdf', 'first');
      await Promise.all(['second', 'third'].map(bytes => send(session.id, 'cv.pdf', bytes)));
      const [listedUpload, ...more] = await readUploads(session.id);
      assert.deepEqual(more, []);
      await withForm(session, async page => {
        const [seen = ''] = await attach(page, ['/tmp/.uploads/cv.pdf']);
        assert.equal(listedUpload?.checksum, sha256(seen.slice('cv.pdf:'.length)));
      });
    }));

  it("an upload works with the official client, and does not affect Playwright's setInputFiles", () =>
    withSession(async session => {
      const client = new Browserbase({ apiKey: server.key, baseURL: server.url });
      const file = new File([randomBytes(1000)], 'from sdk.bin');
      assert.deepEqual(Object(await client.sessions.uploads.create(session.id, { file })).message, 'File uploaded');
      assert.deepEqual(
        (await readUploads(session.id)).map(({ fileName, size }) => [fileName, size]),
        [['from sdk.bin', 1000]],
      );
      await withForm(session, async page => {
        await page.setInputFiles('#file', { name: 'small.txt', mimeType: 'text/plain', buffer: Buffer.from('inline') });
        const text = await page.evaluate("document.querySelector('#file').files[0].text()");
        assert.equal(text, 'inline');
      });
    }));

  for (const name of ['../escape', '/etc/passwd', 'a/b', '..', '.', 'a\\b', 'x'.repeat(300), '☂'.repeat(86)])
    it(`an upload with the name ${JSON.stringify(name.slice(0, 16))} is refused`, () =>
      withSession(async session => {
        const uploadResponse = await send(session.id, name, 'x');
        assert.deepEqual([uploadResponse.status, uploadResponse.body.code], [400, 'invalid_file'], uploadResponse.text);
        assert.deepEqual(await readUploads(session.id), []);
      }));

  for (const name of ['...', '.hidden', 'שלום\u200f.txt', '\u202egpj.exe', `${'☂'.repeat(85)}`])
    it(`an upload with the unusual name ${JSON.stringify(name.slice(0, 16))} is accepted`, () =>
      withSession(async session => {
        assert.equal((await send(session.id, name, 'x')).body.fileName, name);
        await withForm(session, async page => {
          assert.equal((await attach(page, [`/tmp/.uploads/${name}`])).length, 1);
        });
      }));

  it('an upload is refused if it contains no file or two files, is not a multipart form, or exceeds a size limit', () =>
    withSession(async session => {
      const path = `/v1/browsers/sessions/${session.id}/uploads`;
      const postUpload = async (options: object): Promise<unknown[]> => {
        const response = await server.api('POST', path, options);
        return [response.status, response.body.code];
      };
      assert.deepEqual(await postUpload(await uploadRequest('a', 'x', 'other')), [400, 'missing_file']);
      assert.deepEqual(await postUpload({ body: {} }), [415, 'unsupported_media_type']);
      const twoFilesForm = new FormData();
      for (const one of ['a', 'b']) twoFilesForm.append('file', new Blob(['x']), one);
      const encodedForm = new Response(twoFilesForm);
      const headers = { 'content-type': encodedForm.headers.get('content-type') ?? '' };
      assert.deepEqual(await postUpload({ body: Buffer.from(await encodedForm.arrayBuffer()), headers }), [
        400,
        'invalid_file',
      ]);
      assert.deepEqual(await postUpload(await uploadRequest('big', randomBytes(3_000_001))), [
        413,
        'payload_too_large',
      ]);
      assert.equal((await send(session.id, 'half', randomBytes(2_000_000))).status, 200);
      assert.deepEqual(await postUpload(await uploadRequest('other half', randomBytes(1_500_000))), [
        413,
        'payload_too_large',
      ]);
      const token = await createOwnerToken(server);
      await setLimits(server, token, { maxUploadBytes: 1000 });
      const readRefusalMessage = async (size: number): Promise<string> =>
        (await server.api('POST', path, await uploadRequest('over the limit', randomBytes(size)))).body.message;
      assert.match(await readRefusalMessage(1001), /at most 1000 bytes.* maxUploadBytes .*Send a smaller file/);
      await setLimits(server, token, { maxStoredBytes: 2_000_000 });
      assert.match(await readRefusalMessage(1), /at most 0 bytes.* maxStoredBytes .* 2000000 .*Delete downloads/);
      await setLimits(server, token, {});
      assert.equal((await send(session.id, 'half', randomBytes(2_000_000))).status, 200, 'replaces the first one');
      assert.deepEqual(
        (await readUploads(session.id)).map(({ fileName }) => fileName),
        ['half'],
      );
    }));

  it('an upload is refused for a session that has ended, is unknown, or belongs to another application', () =>
    withSession(async session => {
      const uploadOptions = await uploadRequest('a', 'x');
      const path = `/v1/browsers/sessions/${session.id}/uploads`;
      assert.equal(
        (await server.api('POST', path, { ...uploadOptions, key: await createOtherApplicationKey(server) })).status,
        404,
      );
      assert.equal((await server.api('POST', path, { ...uploadOptions, key: null })).status, 401);
      assert.equal((await send(randomUUID(), 'a', 'x')).status, 404);
      const endedSession = await server.createSession();
      await server.release(endedSession.id);
      const refusal = await send(endedSession.id, 'a', 'x');
      assert.deepEqual([refusal.status, refusal.body.code], [409, 'session_not_running']);
      assert.equal(refusal.headers['x-should-retry'], 'false');
    }));

  it('an interrupted upload leaves no file behind', () =>
    withSession(async session => {
      const { body, headers = {} } = await uploadRequest('half.bin', randomBytes(500_000));
      assert.ok(Buffer.isBuffer(body));
      const { hostname, port } = new URL(server.url);
      const socket = connect(Number(port), hostname);
      socket.write(
        `POST /v1/browsers/sessions/${session.id}/uploads HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${server.key}\r\n` +
          `content-type: ${headers['content-type']}\r\ncontent-length: ${body.length}\r\n\r\n`,
      );
      socket.write(body.subarray(0, 300_000));
      await eventually('the upload to begin', () => readdirSync(join(server.dataDir, 'incoming')).length === 1);
      socket.destroy();
      await eventually('the file to be removed', () => readdirSync(join(server.dataDir, 'incoming')).length === 0);
      assert.deepEqual(await readUploads(session.id), []);
      assert.deepEqual(filesIn(session.id), []);
      assert.equal((await send(session.id, 'half.bin', 'whole')).status, 200);
    }));

  it('an upload that races with the release of the session is either complete and listed, or refused', async () => {
    for (const lead of [0, 0, 0, 1, 1, 1, 2, 2]) {
      const { id } = await server.createSession({ keepAlive: true });
      const bytes = randomBytes(1_000_000);
      const pendingUpload = send(id, 'raced.bin', bytes);
      // Reads the session `lead` times before the release, so that more of the upload has arrived by then.
      for (let read = 0; read < lead; read += 1) await server.read(id);
      await server.release(id);
      const uploadResponse = await pendingUpload;
      const listedFiles = (await readUploads(id)).map(({ fileName, checksum }) => [fileName, checksum]);
      if (uploadResponse.status === 200) assert.deepEqual(listedFiles, [['raced.bin', sha256(bytes)]]);
      else {
        assert.deepEqual(
          [uploadResponse.status, uploadResponse.body.code],
          [409, 'session_not_running'],
          uploadResponse.text,
        );
        assert.deepEqual(listedFiles, []);
      }
    }
  });

  it('an upload that is sent again with its Idempotency-Key creates no second file, and other bytes with the same key are refused', () =>
    withSession(async session => {
      const key = { 'idempotency-key': randomUUID() };
      assert.equal((await send(session.id, 'once.txt', 'bytes', key)).status, 200);
      const [seen] = await readUploads(session.id);
      assert.equal(seen?.checksum, sha256('bytes'));
      const resendResponse = await send(session.id, 'once.txt', 'bytes', key);
      assert.deepEqual([resendResponse.status, resendResponse.headers['idempotency-replayed']], [200, 'true']);
      assert.equal(resendResponse.body.checksum, sha256('bytes'));
      assert.deepEqual(await readUploads(session.id), [seen]);
      assert.deepEqual(filesIn(session.id), ['once.txt']);
      assert.equal((await send(session.id, 'once.txt', 'other bytes', key)).status, 409);
    }));

  it('an upload that is sent again with its Idempotency-Key after the end of the session gets the first response, and a new upload is refused', async () => {
    const session = await server.createSession();
    const key = { 'idempotency-key': randomUUID() };
    const firstResponse = await send(session.id, 'once.txt', 'bytes', key);
    await server.release(session.id);
    const resendResponse = await send(session.id, 'once.txt', 'bytes', key);
    assert.deepEqual(
      [resendResponse.status, resendResponse.headers['idempotency-replayed']],
      [200, 'true'],
      resendResponse.text,
    );
    assert.deepEqual(resendResponse.body, firstResponse.body);
    const refusal = await send(session.id, 'once.txt', 'bytes', { 'idempotency-key': randomUUID() });
    assert.deepEqual([refusal.status, refusal.body.code], [409, 'session_not_running']);
  });

  it('an uploaded file cannot be modified by the browser, and is deleted at the end of the session but stays in the list', async () => {
    const session = await server.createSession({ keepAlive: true });
    await send(session.id, 'a.txt', 'kept');
    await withForm(session, async page => {
      const client = await page.context().browser()?.newBrowserCDPSession();
      await client?.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: '/tmp/.uploads' });
      await page.evaluate(
        "Object.assign(document.createElement('a'), { href: URL.createObjectURL(new Blob(['evil'])), download: 'a.txt' }).click()",
      );
      await eventually('the download to be listed', async () => {
        const response = await server.api<{ total: number }>('GET', `/v1/browsers/downloads?sessionId=${session.id}`);
        return response.body.total === 1;
      });
      assert.deepEqual(await attach(page, ['/tmp/.uploads/a.txt']), ['a.txt:kept']);
    });
    await server.release(session.id);
    assert.deepEqual(
      (await readUploads(session.id)).map(({ fileName }) => fileName),
      ['a.txt'],
    );
    assert.deepEqual(boxesOf(server.dataDir), []);
  });
});

const filesIn = (session: string): string[] =>
  readdirSync(join(server.dataDir, 'sessions', server.boxOf(session) ?? session, 'uploads'));
