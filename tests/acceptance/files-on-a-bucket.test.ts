// Files and contexts are stored in, read from and deleted from an S3 bucket instead of the disk. The slow version,
// files-on-a-bucket.slow.test.ts, runs all acceptance tests for files.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, describe, it } from 'node:test';
import type { Context } from '../../contract/contexts.ts';
import type { Download, DownloadPage, UploadResponse } from '../../contract/files.ts';
import { createContext, persistentBody, waitForVersion } from '../harness/contexts.ts';
import { allMarks, findMarks, LOGIN_PAGES, leaveMarks, runOnPage, sitesOf } from '../harness/logged-in.ts';
import { openPages } from '../harness/pages.ts';
import { startS3 } from '../harness/s3.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { uploadRequest } from '../harness/upload.ts';

const FILE_BYTES = randomBytes(300_000);
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

const store = await startS3();
after(() => store.close());
const pages = await openPages({
  ...LOGIN_PAGES,
  '/files': '<!doctype html><title>Files</title><a id=report href=/report>report</a><input type=file id=file>',
  '/report': (_, response) => {
    const headers = { 'content-type': 'application/pdf', 'content-disposition': 'attachment; filename=report.pdf' };
    response.writeHead(200, headers).end(FILE_BYTES);
  },
});
const { secure } = sitesOf(pages);
const server = await startServer({ pages, env: store.env });

const listDownloads = async (session: string): Promise<readonly Download[]> =>
  (await server.api<DownloadPage>('GET', `/v1/browsers/downloads?sessionId=${session}`)).body.downloads;

describe('files and contexts can be stored in a bucket', () => {
  it('a page can read an upload, and a download is served from the bucket until the download is deleted', async () => {
    const session = await server.createSession({ keepAlive: true });
    const path = `/v1/browsers/sessions/${session.id}/uploads`;
    const uploadResponse = await server.api<UploadResponse>('POST', path, await uploadRequest('cv.pdf', FILE_BYTES));
    assert.equal(uploadResponse.body.checksum, sha256(FILE_BYTES));
    await runOnPage(session.connectUrl, async page => {
      await page.goto(`${pages.a}/files`);
      const client = await page.context().newCDPSession(page);
      const { root } = await client.send('DOM.getDocument');
      const { nodeId } = await client.send('DOM.querySelector', { nodeId: root.nodeId, selector: '#file' });
      await client.send('DOM.setFileInputFiles', { nodeId, files: [uploadResponse.body.filePath] });
      assert.equal(await page.evaluate('document.querySelector("#file").files[0].size'), FILE_BYTES.length);
      await page.click('#report');
    });
    const [download] = await eventually(
      'the download to be in the bucket',
      () => listDownloads(session.id),
      ([one]) => one?.downloadUrl.startsWith(`${store.endpoint}/`) ?? false,
    );
    assert.deepEqual([download?.filename, download?.checksum], ['report.pdf', sha256(FILE_BYTES)]);
    const link = String(download?.downloadUrl);
    assert.equal(sha256(Buffer.from(await (await fetch(link)).arrayBuffer())), sha256(FILE_BYTES));
    await server.release(session.id);
    assert.equal((await server.api('DELETE', `/v1/browsers/downloads/${download?.id}`)).status, 204);
    assert.equal((await fetch(link)).status, 404);
  });

  it('a context can be saved, loaded, restored and forked', async () => {
    const { id } = await createContext(server);
    for (const [version, mark] of [
      [1, 'one'],
      [2, 'two'],
    ] as const) {
      const session = await server.createSession(persistentBody(id));
      await runOnPage(session.connectUrl, async page => {
        if (version === 2) assert.deepEqual(await findMarks(page, secure), allMarks('one'));
        await leaveMarks(page, secure, mark);
      });
      await waitForVersion(server, id, version);
    }
    const forkResponse = await server.api<Context>('POST', `/v1/browsers/contexts/${id}/fork`, { body: {} });
    assert.equal(forkResponse.status, 201, forkResponse.text);
    const restoreOptions = { body: { version: 1 } };
    assert.equal((await server.api('POST', `/v1/browsers/contexts/${id}/restore`, restoreOptions)).status, 200);
    for (const [context, mark] of [
      [id, 'one'],
      [forkResponse.body.id, 'two'],
    ] as const) {
      const session = await server.createSession({ contextId: context });
      await runOnPage(session.connectUrl, async page =>
        assert.deepEqual(await findMarks(page, secure), allMarks(mark)),
      );
    }
  });
});
